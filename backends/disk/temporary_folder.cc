// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/disk/places.h"
#include "base/status.h"
#include "base/trusted_path.h"

namespace torch_lazy::backends {
namespace {

constexpr char kBeginning[] = "torch_lazy-";
constexpr size_t kLetters = 6;

int OpenFolder(const std::string& path) { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

bool IsOurName(const std::string& name) {
  return name.size() == sizeof(kBeginning) - 1 + kLetters && name.rfind(kBeginning, 0) == 0 &&
         std::all_of(name.end() - kLetters, name.end(), [](unsigned char c) { return isalnum(c) != 0; });
}

// With all that is in it, as far as that can be done. Not by std::filesystem: Note [No std::filesystem].
void Remove(const std::string& path) {
  constexpr int kMostOpen = 16;
  const auto remove = [](const char* file, const struct stat*, int, FTW*) {
    std::remove(file);
    return 0;
  };
  nftw(path.c_str(), remove, kMostOpen, FTW_DEPTH | FTW_PHYS);
}

// A folder is made first and locked then, hence the minute.
void RemoveIfLeft(const std::string& path) {
  constexpr time_t kSeconds = 60;
  const int folder = OpenFolder(path);
  if (folder < 0) return;
  struct stat info = {};
  const bool is_ours = fstat(folder, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  if (is_ours && info.st_mtim.tv_sec + kSeconds < time(nullptr) && flock(folder, LOCK_EX | LOCK_NB) == 0) Remove(path);
  close(folder);
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make() {
  LAZY_ASSIGN_OR_RETURN(const std::string place, TemporaryPlace());
  std::string path = absl::StrCat(place, "/", kBeginning, std::string(kLetters, 'X'));
  if (mkdtemp(path.data()) == nullptr) return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  const int lock = OpenFolder(path);
  if (lock < 0) {  // another process might take it for one that was left
    const std::string error = strerror(errno);
    rmdir(path.c_str());
    return absl::UnavailableError(absl::StrCat(path, ": ", error));
  }
  flock(lock, LOCK_EX | LOCK_NB);
  return TemporaryFolder(std::move(path), lock);
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) Remove(path_);
  if (lock_ >= 0) close(lock_);
}

void SweepTemporaryFolders() {
  for (const std::string& place : TemporaryPlaces()) {
    if (!base::CheckPlace(place).ok()) continue;  // others could give a folder of ours such a name
    DIR* const folder = opendir(place.c_str());
    if (folder == nullptr) continue;
    std::vector<std::string> found;
    while (const dirent* const entry = readdir(folder)) {
      if (IsOurName(entry->d_name)) found.push_back(absl::StrCat(place, "/", entry->d_name));
    }
    closedir(folder);
    for (const std::string& path : found) RemoveIfLeft(path);
  }
}

}  // namespace torch_lazy::backends
