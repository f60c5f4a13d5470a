// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace torch_lazy::backends {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return file.good() ? bytes.str() : "";
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
}

FileLock FileLock::Try(std::shared_ptr<const base::Folder> folder, const std::string& name) {
  FileLock lock;
  if (folder == nullptr || !folder->can_write()) return lock;
  lock.file_ = folder->OpenLock(name);
  if (!lock.file_.is_open()) return lock;
  lock.held_ = flock(lock.file_.number(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  lock.folder_ = std::move(folder);
  lock.name_ = name;
  return lock;
}

std::string FileLock::path() const { return file_.is_open() ? absl::StrCat(folder_->path(), "/", name_) : ""; }

FileLock::~FileLock() {
  if (!file_.is_open() || !held_) return;
  folder_->Remove(name_);
  flock(file_.number(), LOCK_UN);  // a child of the program may have a copy of the file
}

}  // namespace torch_lazy::backends
