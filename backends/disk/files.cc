// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/flags.h"

namespace torch_lazy::backends {
namespace {

absl::Status ErrorOf(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
}

int64_t Nanoseconds(const timespec& time) {
  return int64_t{1000000000} * time.tv_sec + time.tv_nsec;
}

absl::Status WriteAndSync(const std::string& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return ErrorOf(path);
  bool ok = true;
  while (ok && !bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(written);
    ok = written > 0 || (written < 0 && errno == EINTR);
  }
  ok = ok && fsync(file) == 0;
  const absl::Status status = ok ? absl::OkStatus() : ErrorOf(path);
  close(file);
  return status;
}

}  // namespace

absl::Status MakePrivateFolder(const std::string& path) {
  std::error_code ignored;  // what is wrong shows below
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return ErrorOf(path);
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return ErrorOf(path);
  if (!S_ISDIR(info.st_mode))
    return absl::PermissionDeniedError(absl::StrCat(path, " is not a folder"));
  if (info.st_uid != geteuid())
    return absl::PermissionDeniedError(absl::StrCat(path, " belongs to somebody else"));
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is open to others (wants mode 0700)"));
  }
  return absl::OkStatus();
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return file.good() ? bytes.str() : "";
}

absl::Status WriteFileWhole(const std::string& path, std::string_view bytes) {
  static std::atomic<int> number{0};
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".", number++, kUnfinished);
  absl::Status status = WriteAndSync(unfinished, bytes);
  if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0) status = ErrorOf(path);
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

void TouchFile(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

std::vector<FileInfo> ListFiles(const std::string& folder) {
  std::vector<FileInfo> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info = {};
    const std::string path = it->path().string();
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files.push_back({path, info.st_size, Nanoseconds(info.st_mtim)});
  }
  std::sort(files.begin(), files.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
  return files;
}

int64_t ChangedAt(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 ? Nanoseconds(info.st_mtim) : -1;
}

FileLock FileLock::Try(const std::string& path) {
  if (path.empty()) return FileLock(path, -1, true);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return FileLock(path, -1, true);
  return FileLock(path, file, flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), held_(other.held_) {}

FileLock::~FileLock() {
  if (file_ < 0) return;
  if (held_) unlink(path_.c_str());
  if (held_) flock(file_, LOCK_UN);  // a child of the program may have a copy of the file
  close(file_);
}

}  // namespace torch_lazy::backends
