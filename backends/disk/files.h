// SPDX-License-Identifier: Apache-2.0
// Private folders and files that appear whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace torch_lazy::backends {

// Makes the folder, and those above it, if missing. An error unless it is a real folder, ours, that
// nobody else may use.
absl::Status MakePrivateFolder(const std::string& path);

std::string ReadFile(const std::string& path);  // empty if it cannot be read
// Written under another name, which ends in kUnfinished, synced, then renamed.
inline constexpr char kUnfinished[] = ".tmp";
absl::Status WriteFileWhole(const std::string& path, std::string_view bytes);
void TouchFile(const std::string& path);

struct FileInfo {
  std::string path;
  int64_t size_bytes;
  int64_t changed_at;  // nanoseconds
};
std::vector<FileInfo> ListFiles(
    const std::string& folder);              // sorted by path; links are not followed
int64_t ChangedAt(const std::string& path);  // -1 if there is none

// A lock between processes, which the system releases when its holder dies. The file is removed by
// the holder: whoever gets the lock after it looks again whether what it wanted is there.
class FileLock {
 public:
  // Held, unless another has the lock; held too if there can be no such file, or `path` is empty.
  static FileLock Try(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();
  bool held() const { return held_; }
  int file() const { return file_; }  // whoever has it open holds the lock, too; -1: there is none
  const std::string& path() const { return path_; }

 private:
  FileLock(std::string path, int file, bool held)
      : path_(std::move(path)), file_(file), held_(held) {}
  std::string path_;
  int file_;
  bool held_;
};

}  // namespace torch_lazy::backends
