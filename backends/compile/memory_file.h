// SPDX-License-Identifier: Apache-2.0
// A file without a name, in memory, which a child may have, too.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torch_lazy::backends {

class MemoryFile {
 public:
  MemoryFile() = default;  // none
  static absl::StatusOr<MemoryFile> Make();
  MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~MemoryFile();

  int file() const { return file_; }
  absl::Status Write(std::string_view bytes);
  void Rewind();                       // for who reads it next
  absl::StatusOr<std::string> Read();  // from its beginning

 private:
  explicit MemoryFile(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace torch_lazy::backends
