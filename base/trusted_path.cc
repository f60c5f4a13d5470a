// SPDX-License-Identifier: Apache-2.0
#include "base/trusted_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace torch_lazy::base {
namespace {

constexpr int kMostLinks = 40;  // on one way, as the kernel has it

// Root may do anything anyway; so may, to whoever names a file by its path, the owner of "/", who
// is root as containers see it that have no root of their own.
bool IsTrusted(uid_t owner) {
  static const uid_t owner_of_root = [] {
    struct stat info = {};
    return stat("/", &info) == 0 ? info.st_uid : 0;
  }();
  return owner == geteuid() || owner == 0 || owner == owner_of_root;
}

// Of a folder with something of ours in it.
absl::Status CheckAbove(const Descriptor& folder, const std::string& path) {
  LAZY_ASSIGN_OR_RETURN(const struct stat info, StatOf(folder, path));
  LAZY_RETURN_IF_ERROR(CheckOwner(info, path));
  if ((info.st_mode & kOthersWrite) == 0 || (info.st_mode & S_ISVTX) != 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, " may be written by others (chmod go-w ", path, ")"));
}

absl::Status ForeignOwner(const struct stat& info, const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(path, " belongs to somebody else, user ", info.st_uid));
}

std::deque<std::string> NamesOf(absl::string_view path) { return absl::StrSplit(path, '/', absl::SkipEmpty()); }

absl::StatusOr<std::string> TargetOf(const Descriptor& link, const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = readlinkat(link.number(), "", target, sizeof(target));
  if (length < 0) return ErrorOf(path);
  return std::string(target, static_cast<size_t>(length));
}

// A step from folder to folder, each of which is looked at before the next is.
class Walk {
 public:
  Walk(const std::string& path, bool makes, bool follows_last)
      : names_(NamesOf(path)), makes_(makes), follows_last_(follows_last) {}

  absl::StatusOr<Descriptor> Go() {
    LAZY_RETURN_IF_ERROR(Restart());
    while (!names_.empty()) {
      const std::string name = std::move(names_.front());
      names_.pop_front();
      if (name != ".") LAZY_RETURN_IF_ERROR(Enter(name));
    }
    return std::move(at_);
  }

 private:
  absl::Status Restart() {
    path_ = "";
    at_ = Descriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return !at_.is_open() ? ErrorOf("/") : absl::OkStatus();
  }

  absl::Status Enter(const std::string& name) {
    LAZY_RETURN_IF_ERROR(CheckAbove(at_, path_.empty() ? "/" : path_));
    const std::string path = absl::StrCat(path_, "/", name);
    constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    Descriptor next(openat(at_.number(), name.c_str(), kFlags));
    if (!next.is_open() && errno == ENOENT && makes_) {
      if (mkdirat(at_.number(), name.c_str(), 0700) != 0 && errno != EEXIST) return ErrorOf(path);
      next = Descriptor(openat(at_.number(), name.c_str(), kFlags));
    }
    if (!next.is_open()) return ErrorOf(path);
    LAZY_ASSIGN_OR_RETURN(const struct stat above, StatOf(at_, path_));
    LAZY_ASSIGN_OR_RETURN(const struct stat info, StatOf(next, path));
    // Where anybody may put something, the owner of "/" does not count: a container without root
    // shows everybody who has no number there as one user.
    if ((above.st_mode & kOthersWrite) != 0 && info.st_uid != geteuid() && info.st_uid != 0)
      return ForeignOwner(info, path);
    if (S_ISLNK(info.st_mode)) return Follow(next, info, path);
    if (!S_ISDIR(info.st_mode)) return absl::PermissionDeniedError(absl::StrCat(path, " is not a folder"));
    at_ = std::move(next);
    path_ = path;
    return absl::OkStatus();
  }

  absl::Status Follow(const Descriptor& link, const struct stat& info, const std::string& path) {
    if (names_.empty() && !follows_last_)
      return absl::PermissionDeniedError(absl::StrCat(path, " is a link, not a folder"));
    LAZY_RETURN_IF_ERROR(CheckOwner(info, path));
    if (++num_links_ > kMostLinks) return absl::UnavailableError(absl::StrCat(path, ": ", strerror(ELOOP)));
    LAZY_ASSIGN_OR_RETURN(const std::string target, TargetOf(link, path));
    std::deque<std::string> names = NamesOf(target);
    names_.insert(names_.begin(), names.begin(), names.end());
    return target[0] == '/' ? Restart() : absl::OkStatus();
  }

  std::deque<std::string> names_;  // still to go
  const bool makes_, follows_last_;
  Descriptor at_;
  std::string path_;  // of `at_`, for messages
  int num_links_ = 0;
};

absl::StatusOr<Descriptor> Reach(const std::string& path, bool makes, bool follows_last) {
  if (path.empty() || path[0] != '/') return absl::InvalidArgumentError(absl::StrCat(path, " is not an absolute path"));
  return Walk(path, makes, follows_last).Go();
}

}  // namespace

absl::Status ErrorOf(const std::string& path) {
  const std::string message = absl::StrCat(path, ": ", strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

absl::StatusOr<struct stat> StatOf(const Descriptor& descriptor, const std::string& path) {
  struct stat info = {};
  if (fstat(descriptor.number(), &info) != 0) return ErrorOf(path);
  return info;
}

absl::Status CheckOwner(const struct stat& info, const std::string& path) {
  return IsTrusted(info.st_uid) ? absl::OkStatus() : ForeignOwner(info, path);
}

absl::StatusOr<Descriptor> MakeWay(const std::string& path) {
  return Reach(path, /*makes=*/true, /*follows_last=*/false);
}

absl::Status CheckPlace(const std::string& path) {
  LAZY_ASSIGN_OR_RETURN(const Descriptor place, Reach(path, /*makes=*/false, /*follows_last=*/true));
  return CheckAbove(place, path);
}

}  // namespace torch_lazy::base
