// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/places.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/flags.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/trusted_path.h"

namespace torch_lazy::backends {
namespace {

// Empty if the variable is not set, or names a folder by a path that depends on the current one.
std::string FolderOf(const char* variable) {
  const std::string path = base::Environment(variable);
  if (path.empty() || absl::StartsWith(path, "/")) return path;
  base::WarnOnce(variable, absl::StrCat(variable, "=", path, " is ignored: expected an absolute path"));
  return "";
}

std::string DefaultRoot() {
  const std::string caches = FolderOf("XDG_CACHE_HOME");
  if (!caches.empty()) return absl::StrCat(caches, "/torch_lazy");
  const std::string home = FolderOf("HOME");
  if (!home.empty()) return absl::StrCat(home, "/.cache/torch_lazy");
  base::WarnOnce("disk cache",
                 "compiled kernels are not kept on disk: HOME is not set (LAZY_CACHE_DIR names a "
                 "folder for them)");
  return "";
}

absl::Status CheckTemporaryPlace(const std::string& path) {
  const absl::Status status = base::CheckPlace(path);
  if (!status.ok() || access(path.c_str(), W_OK | X_OK) == 0) return status;
  return base::ErrorOf(path);
}

}  // namespace

std::string CacheRoot() {
  const std::string chosen = base::FixedText(base::Option::kCacheDir);
  if (!chosen.empty()) return chosen;
  static const std::string& root = *new std::string(DefaultRoot());
  return root;
}

std::vector<std::string> TemporaryPlaces() {
  std::vector<std::string> places = {base::Environment("TMPDIR"), "/tmp", CacheRoot()};
  places.erase(std::remove(places.begin(), places.end(), ""), places.end());
  return places;
}

absl::StatusOr<std::string> TemporaryPlace() {
  std::vector<std::string> errors;
  for (const std::string& place : TemporaryPlaces()) {
    const absl::Status status = CheckTemporaryPlace(place);
    if (status.ok() && !errors.empty()) {
      base::WarnOnce("temporary folder",
                     absl::StrCat("temporary files are in ", place, ", since ", absl::StrJoin(errors, ", and ")));
    }
    if (status.ok()) return place;
    errors.emplace_back(status.message());
  }
  return absl::UnavailableError(absl::StrCat("no place for temporary files: ", absl::StrJoin(errors, ", ")));
}

}  // namespace torch_lazy::backends
