// SPDX-License-Identifier: Apache-2.0
// Folders for a while, and what killed processes have left of them.
//
// Note [No std::filesystem]
// libtorch.so exports a copy of std::filesystem from another compiler. In a C++ program it comes before libstdc++, so
// that calls of ours end there, and some crash. tools/check_includes.py refuses the header in the library.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace torch_lazy::backends {

// A new private folder in TemporaryPlace(), removed with its files at the end. Locked as long as it
// lives.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_;  // the folder itself, open
};

// Removes such folders of ours that nobody has locked, a minute after their last change.
void SweepTemporaryFolders();

}  // namespace torch_lazy::backends
