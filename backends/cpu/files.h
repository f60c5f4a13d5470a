// SPDX-License-Identifier: Apache-2.0
// Private folders and files that appear whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torch_lazy::backends {

// Makes the folder, and those above it, if missing. An error unless it is a real folder, ours, that
// nobody else may use.
absl::Status MakePrivateFolder(const std::string& path);

std::string ReadFile(const std::string& path);  // empty if it cannot be read
// Written under another name, synced, then renamed.
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

// A new private folder in $TMPDIR or /tmp, removed with its files at the end.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace torch_lazy::backends
