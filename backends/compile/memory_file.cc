// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/memory_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace torch_lazy::backends {
namespace {

absl::Status Error() { return absl::UnavailableError(absl::StrCat("a file in memory: ", strerror(errno))); }

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Make() {
  const int file = memfd_create("torch_lazy", MFD_CLOEXEC);
  if (file < 0) return Error();
  return MemoryFile(file);
}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) close(file_);
}

absl::Status MemoryFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Error();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

void MemoryFile::Rewind() { lseek(file_, 0, SEEK_SET); }

absl::StatusOr<std::string> MemoryFile::Read() {
  struct stat info = {};
  if (fstat(file_, &info) != 0) return Error();
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t size = pread(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error();
    done += static_cast<size_t>(size);
  }
  return bytes;
}

}  // namespace torch_lazy::backends
