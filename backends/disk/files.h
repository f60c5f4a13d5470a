// SPDX-License-Identifier: Apache-2.0
// Files in folders of ours alone, and locks between processes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/folder.h"

namespace torch_lazy::backends {

// For paths in folders of ours alone, such as a TemporaryFolder.
std::string ReadFile(const std::string& path);  // empty if it cannot be read
absl::Status WriteFile(const std::string& path, std::string_view bytes);

// A lock between processes, which the system releases when its holder dies. The file is removed by
// the holder: whoever gets the lock after it looks again whether what it wanted is there.
class FileLock {
 public:
  // Held, unless another has the lock; held too if there can be no such file, or no folder.
  static FileLock Try(std::shared_ptr<const base::Folder> folder, const std::string& name);
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();
  bool held() const { return held_; }
  int file() const { return file_.number(); }  // whoever has it open holds the lock, too; -1: there is none
  std::string path() const;                    // of the file; empty: there is none

 private:
  FileLock() = default;
  std::shared_ptr<const base::Folder> folder_;
  std::string name_;
  base::Descriptor file_;
  bool held_ = true;
};

}  // namespace torch_lazy::backends
