// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk.
//
// A folder per key (compiler, flags, processor, our version) holds, for each batch that was
// compiled together, its code (a shared library or a cubin) and an index: its key, the code's size
// and checksum, and the names and fingerprints of its kernels. Everything is written under a
// temporary name, synced and renamed; the index last. What does not add up is dropped. Words that
// are kept have a small file each: its key, and the word.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "codegen/plan.h"

namespace torch_lazy::backends {

// Option `cache_dir`, else torch_lazy in the user's cache folder. Empty if there is none.
std::string CacheRoot();

// What a target's compiled kernels are called on disk.
struct CodeFiles {
  const char* target;  // begins the folders' names
  const char* ending;  // of the files
};
inline constexpr CodeFiles kLibraries = {"cpu", ".so"};
inline constexpr CodeFiles kCubins = {"cuda", ".cubin"};

class DiskCache {
 public:
  // A root that is not a folder of ours alone (0700, no symbolic link) is refused, with one
  // warning; the cache is then empty and keeps nothing.
  DiskCache(std::string root, const CodeFiles& files, std::string key);

  const std::string& root() const { return root_; }
  const std::string& key() const { return key_; }

  // The whole file of code that holds the kernel; empty if there is none.
  std::string Find(const codegen::Kernel& kernel);
  // Removes the files that hold these: they cannot be loaded.
  void Forget(absl::Span<const codegen::Kernel> kernels);
  // The file to lock while these kernels are compiled; empty if nothing is kept.
  std::string LockPath(absl::Span<const codegen::Kernel> kernels) const;
  // Failing costs speed only.
  absl::Status Store(absl::Span<const codegen::Kernel> kernels, const std::string& code);
  // A word of one line, and the word that was kept last; empty if there is none.
  void Keep(absl::string_view key, absl::string_view word);
  // Of those that were there when the first was asked for: one that is not there costs no look.
  std::string Recall(absl::string_view key);

 private:
  struct Place {
    std::string batch;  // "<folder>/<name>", without its endings
    std::string source_fingerprint;
  };
  void Scan();
  void ReadIndex(const std::string& batch);
  bool Check(const std::string& batch);
  void Drop(const std::string& batch);
  std::string WordPath(absl::string_view key) const;
  absl::Status Write(absl::Span<const codegen::Kernel> kernels, const std::string& code);

  const std::string root_;
  const CodeFiles files_;
  const std::string key_;
  std::string folder_;       // root/<fingerprint of the key>; empty: the root was refused
  int64_t scanned_at_ = -1;  // the folder's time of change at the last scan
  absl::flat_hash_map<std::string, Place> places_;         // by kernel
  std::optional<absl::flat_hash_set<std::string>> words_;  // paths; nothing before the first Recall
  absl::flat_hash_map<std::string, bool>
      checked_;  // batches whose code was read in full: is it whole?
};

}  // namespace torch_lazy::backends
