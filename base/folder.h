// SPDX-License-Identifier: Apache-2.0
// Folders that nobody else can change, and the files in them.
//
//   LAZY_ASSIGN_OR_RETURN(const Folder cache, Folder::Make("/home/me/.cache/torch_lazy"));
//   LAZY_ASSIGN_OR_RETURN(const File library, cache.Open("kernels.so"));
//   dlopen(library.LoadPath().c_str(), RTLD_NOW);
//
// They are reached as base/trusted_path.h says, held by their descriptors, and used through them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace torch_lazy::base {

// A regular file, open to read, that only its owner may write: us, root, or the owner of "/".
class File {
 public:
  // Which file of the machine it is, and how long.
  struct Identity {
    bool operator==(const Identity&) const = default;
    dev_t device = 0;
    ino_t inode = 0;
    int64_t size_bytes = 0;
  };
  const Identity& identity() const { return identity_; }
  std::string Read() const;  // empty if it cannot be read
  // A path of this very file, whatever its name means by now, while this object lives. Each is
  // another text: dlopen takes a library for one that it has loaded if the text is the same, and
  // descriptors' numbers come again.
  std::string LoadPath() const;
  void Touch() const;  // it was used now

 private:
  friend class Folder;
  Descriptor descriptor_;
  Identity identity_;
};

struct FileInfo {
  std::string name;
  int64_t size_bytes;
  int64_t changed_at;  // nanoseconds
};

class Folder {
 public:
  // Opens the folder of an absolute path; makes it, and those above it, with mode 0700 if missing.
  // An error, which says what to do, if somebody else could change it, or the way to it.
  static absl::StatusOr<Folder> Make(const std::string& path);
  // One in it; if missing it is made, or not found.
  absl::StatusOr<Folder> OpenIn(const std::string& name, bool makes) const;

  const std::string& path() const { return path_; }
  bool can_write() const { return can_write_; }    // it is ours, and not on a disk made read-only
  bool is_private() const { return is_private_; }  // nobody else may even read it

  absl::StatusOr<File> Open(const std::string& name) const;
  std::string Read(const std::string& name) const;  // empty if it cannot be opened or read
  // Whole or not at all: written without a name, which it then gets. Where there is a file of that
  // name, or the system has no such files, written under another name, which ends in kUnfinished,
  // then renamed: a process that is killed meanwhile leaves that. `lasting`: synced before, so that
  // all this holds if the machine stops.
  static constexpr char kUnfinished[] = ".tmp";
  absl::Status Write(const std::string& name, std::string_view bytes, bool lasting) const;
  void Remove(const std::string& name) const;
  std::vector<FileInfo> List() const;  // regular files, sorted by name
  int64_t ChangedAt() const;           // when something was last added or removed
  // A new or old file of ours to lock; -1 if there can be none.
  Descriptor OpenLock(const std::string& name) const;

 private:
  bool WriteNew(const std::string& name, std::string_view bytes, bool lasting) const;
  static absl::StatusOr<Folder> Checked(Descriptor folder, std::string path);

  Descriptor descriptor_;
  std::string path_;
  bool can_write_ = false;
  bool is_private_ = false;
};

}  // namespace torch_lazy::base
