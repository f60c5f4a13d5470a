// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk.
//
// A folder per key (compiler, flags, processor, our version) holds, for each batch that was
// compiled together, its code (a shared library or a cubin) and an index: its key, the code's size
// and checksum, and the names and fingerprints of its kernels. Everything is written under a
// temporary name, synced and renamed; the index last. What does not add up is dropped. Words that
// are kept have a small file each, which is not synced: its key, and the word.
//
// A cache that root, or we, have made and closed to writing (chmod -R a=rX) is read, never written:
// one that lies in a container's image, say.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/disk/files.h"
#include "base/folder.h"
#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// What a target's compiled kernels are called on disk.
struct CodeFiles {
  const char* target;  // begins the folders' names
  const char* ending;  // of the files
};
inline constexpr CodeFiles kLibraries = {"cpu", ".so"};
inline constexpr CodeFiles kCubins = {"cuda", ".cubin"};

class DiskCache {
 public:
  // A root that others can change (base/folder.h) is refused, with one warning; the cache is then
  // empty and keeps nothing. Nothing is kept either in one that others may read.
  DiskCache(std::string root, const CodeFiles& files, std::string key);

  const std::string& root() const { return root_; }
  const std::string& key() const { return key_; }

  // The code that holds a kernel: a whole file of ours, or of root's, which others cannot change.
  struct Code {
    std::string batch;  // its name
    base::File file;
  };
  absl::StatusOr<Code> Find(const codegen::Kernel& kernel);
  // True if an index names a kernel so.
  bool Names(const std::string& kernel);
  // Removes the files that hold these: they cannot be loaded.
  void Forget(absl::Span<const codegen::Kernel> kernels);
  // To be held while these kernels are compiled.
  FileLock Lock(absl::Span<const codegen::Kernel> kernels) const;
  // Failing costs speed only.
  absl::Status Store(absl::Span<const codegen::Kernel> kernels, const std::string& code);
  // A word of one line, and the word that was kept last; empty if there is none.
  void Keep(absl::string_view key, absl::string_view word);
  // Of those that were there when the first was asked for: one that is not there costs no look.
  std::string Recall(absl::string_view key);

 private:
  struct Place {
    std::string batch;  // its files' name, without the ending
    std::string source_fingerprint;
  };
  absl::Status OpenFolders();
  void Scan();
  void ReadIndex(const std::string& batch);
  // Its code; an error unless that is whole.
  absl::StatusOr<base::File> Check(const std::string& batch);
  void Drop(const std::string& batch);
  absl::Status Write(absl::Span<const codegen::Kernel> kernels, const std::string& code);

  using Folder = std::shared_ptr<const base::Folder>;
  const std::string root_;
  const CodeFiles files_;
  const std::string key_;
  // root/<fingerprint of the key>, and two in it. Null: the root was refused, or there is none.
  Folder folder_, locks_, words_;
  bool keeps_ = false;                                              // in these folders
  int64_t scanned_at_ = -1;                                         // the folder's time of change at the last scan
  absl::flat_hash_map<std::string, Place> places_;                  // by kernel
  std::optional<absl::flat_hash_set<std::string>> word_files_;      // their names; nothing before the first Recall
  absl::flat_hash_map<std::string, base::File::Identity> checked_;  // batches whose code was read in full and is whole
};

}  // namespace torch_lazy::backends
