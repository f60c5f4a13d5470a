// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/trusted_path.h"

namespace torch_lazy::base {
namespace {

int64_t Nanoseconds(const timespec& time) { return int64_t{1000000000} * time.tv_sec + time.tv_nsec; }

absl::Status WriteAll(const Descriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrorOf(path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

std::string File::Read() const {
  std::string bytes(static_cast<size_t>(identity_.size_bytes), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t read =
        pread(descriptor_.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return "";  // also if it has become shorter
    done += static_cast<size_t>(read);
  }
  return bytes;
}

std::string File::LoadPath() const {
  static std::atomic<uint32_t> next{1};
  std::string path = "/proc/self";
  for (uint32_t bits = next++; bits != 0; bits >>= 1) path += (bits & 1) != 0 ? "/." : "/";
  return absl::StrCat(path, "/fd/", descriptor_.number());
}

void File::Touch() const { futimens(descriptor_.number(), nullptr); }

absl::StatusOr<Folder> Folder::Make(const std::string& path) {
  LAZY_ASSIGN_OR_RETURN(const Descriptor found, MakeWay(path));
  Descriptor folder(openat(found.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return Checked(std::move(folder), path);
}

absl::StatusOr<Folder> Folder::OpenIn(const std::string& name, bool makes) const {
  const std::string path = absl::StrCat(path_, "/", name);
  if (makes && mkdirat(descriptor_.number(), name.c_str(), 0700) != 0 && errno != EEXIST) return ErrorOf(path);
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  return Checked(Descriptor(openat(descriptor_.number(), name.c_str(), kFlags)), path);
}

absl::StatusOr<Folder> Folder::Checked(Descriptor descriptor, std::string path) {
  if (!descriptor.is_open()) return ErrorOf(path);
  LAZY_ASSIGN_OR_RETURN(const struct stat info, StatOf(descriptor, path));
  LAZY_RETURN_IF_ERROR(CheckOwner(info, path));
  if ((info.st_mode & kOthersWrite) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(path, " may be written by others (chmod 700 ", path, ")"));
  }
  Folder folder;
  folder.can_write_ = info.st_uid == geteuid() && (info.st_mode & S_IWUSR) != 0 &&
                      faccessat(descriptor.number(), ".", W_OK, AT_EACCESS) == 0;
  folder.is_private_ = (info.st_mode & 077) == 0;
  folder.descriptor_ = std::move(descriptor);
  folder.path_ = std::move(path);
  return folder;
}

absl::StatusOr<File> Folder::Open(const std::string& name) const {
  const std::string path = absl::StrCat(path_, "/", name);
  File file;  // O_NONBLOCK: what is no file must not make us wait
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  file.descriptor_ = Descriptor(openat(descriptor_.number(), name.c_str(), kFlags));
  if (!file.descriptor_.is_open()) return ErrorOf(path);
  LAZY_ASSIGN_OR_RETURN(const struct stat info, StatOf(file.descriptor_, path));
  LAZY_RETURN_IF_ERROR(CheckOwner(info, path));
  if (!S_ISREG(info.st_mode) || (info.st_mode & kOthersWrite) != 0)
    return absl::PermissionDeniedError(absl::StrCat(path, " may be written by others"));
  file.identity_ = {info.st_dev, info.st_ino, info.st_size};
  return file;
}

std::string Folder::Read(const std::string& name) const {
  const absl::StatusOr<File> file = Open(name);
  return file.ok() ? file->Read() : "";
}

bool Folder::WriteNew(const std::string& name, std::string_view bytes, bool lasting) const {
  const Descriptor file(openat(descriptor_.number(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file.is_open() || !WriteAll(file, bytes, name).ok() || (lasting && fsync(file.number()) != 0)) return false;
  const std::string link = absl::StrCat("/proc/self/fd/", file.number());
  return linkat(AT_FDCWD, link.c_str(), descriptor_.number(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

absl::Status Folder::Write(const std::string& name, std::string_view bytes, bool lasting) const {
  static std::atomic<int> number{0};
  const int folder = descriptor_.number();
  const std::string path = absl::StrCat(path_, "/", name);
  if (WriteNew(name, bytes, lasting)) return absl::OkStatus();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  std::string unfinished;
  Descriptor file;
  do {  // a killed process of the same number may have left one
    unfinished = absl::StrCat(name, ".", getpid(), ".", number++, kUnfinished);
    file = Descriptor(openat(folder, unfinished.c_str(), kFlags, 0600));
  } while (!file.is_open() && errno == EEXIST);
  if (!file.is_open()) return ErrorOf(path);
  absl::Status status = WriteAll(file, bytes, path);
  if (status.ok() && lasting && fsync(file.number()) != 0) status = ErrorOf(path);
  if (status.ok() && renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) status = ErrorOf(path);
  if (!status.ok()) Remove(unfinished);
  return status;
}

void Folder::Remove(const std::string& name) const { unlinkat(descriptor_.number(), name.c_str(), 0); }

std::vector<FileInfo> Folder::List() const {
  std::vector<FileInfo> files;
  // A description of its own: where reading has got to belongs to it.
  const int again = openat(descriptor_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return files;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(again), &closedir);
  if (entries == nullptr) {
    close(again);
    return files;
  }
  while (const dirent* const entry = readdir(entries.get())) {
    struct stat info = {};
    if (fstatat(again, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    files.push_back({entry->d_name, info.st_size, Nanoseconds(info.st_mtim)});
  }
  std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return files;
}

int64_t Folder::ChangedAt() const {
  struct stat info = {};
  return fstat(descriptor_.number(), &info) == 0 ? Nanoseconds(info.st_mtim) : -1;
}

Descriptor Folder::OpenLock(const std::string& name) const {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  return Descriptor(openat(descriptor_.number(), name.c_str(), kFlags, 0600));
}

}  // namespace torch_lazy::base
