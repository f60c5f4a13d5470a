// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "backends/disk/files.h"
#include "base/fingerprint.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr int64_t kMostBytes = int64_t{512}
                               << 20;  // of one key's folder; the batches longest unused go first
constexpr char kIndex[] = ".index";
constexpr char kLocks[] = "/locks";
constexpr char kWords[] = "/words";

std::string IndexText(const std::string& key, absl::Span<const codegen::Kernel> kernels,
                      const std::string& bytes) {
  std::vector<std::string> lines = {
      key, absl::StrCat(bytes.size(), " ", base::FingerprintOf(bytes).ToString())};
  for (const codegen::Kernel& kernel : kernels) {
    lines.push_back(absl::StrCat(kernel.name, " ", base::FingerprintOf(kernel.source).ToString()));
  }
  lines.push_back("end\n");
  return absl::StrJoin(lines, "\n");
}

// Removes what killed processes have left, and the batches longest unused until the folder is small
// enough.
void Trim(const std::string& folder, const char* ending) {
  const int64_t long_ago = absl::ToUnixNanos(absl::Now() - absl::Hours(1));
  for (const FileInfo& file : ListFiles(absl::StrCat(folder, kLocks))) {
    if (file.changed_at < long_ago) unlink(file.path.c_str());
  }
  int64_t total = 0;
  std::vector<FileInfo> batches;
  for (const FileInfo& file : ListFiles(folder)) {
    if (absl::EndsWith(file.path, kUnfinished) && file.changed_at < long_ago) {
      unlink(file.path.c_str());
      continue;
    }
    total += file.size_bytes;
    if (absl::EndsWith(file.path, ending)) batches.push_back(file);
  }
  std::sort(batches.begin(), batches.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.changed_at < b.changed_at; });
  for (const FileInfo& batch : batches) {
    if (total <= kMostBytes) return;
    unlink(absl::StrCat(absl::StripSuffix(batch.path, ending), kIndex).c_str());
    unlink(batch.path.c_str());
    total -= batch.size_bytes;
  }
}

}  // namespace

std::string CacheRoot() {
  const std::string chosen = base::Text(base::Option::kCacheDir);
  if (!chosen.empty()) return chosen;
  const std::string caches = base::Environment("XDG_CACHE_HOME");
  if (!caches.empty()) return absl::StrCat(caches, "/torch_lazy");
  const std::string home = base::Environment("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.cache/torch_lazy");
}

DiskCache::DiskCache(std::string root, const CodeFiles& files, std::string key)
    : root_(std::move(root)), files_(files), key_(std::move(key)) {
  if (root_.empty()) return;
  const std::string folder =
      absl::StrCat(root_, "/", files_.target, "-", base::FingerprintOf(key_).ToString());
  absl::Status made = MakePrivateFolder(root_);
  if (made.ok()) made = MakePrivateFolder(folder);
  if (made.ok()) made = MakePrivateFolder(absl::StrCat(folder, kLocks));
  if (made.ok()) made = MakePrivateFolder(absl::StrCat(folder, kWords));
  if (!made.ok()) {
    base::WarnOnce("disk cache",
                   absl::StrCat("compiled kernels are not kept on disk: ", made.message()));
    return;
  }
  folder_ = folder;
}

std::string DiskCache::Find(const codegen::Kernel& kernel) {
  if (folder_.empty()) return "";
  if (!places_.contains(kernel.name)) Scan();  // another process may have stored it meanwhile
  const auto found = places_.find(kernel.name);
  if (found == places_.end()) return "";
  if (found->second.source_fingerprint != base::FingerprintOf(kernel.source).ToString()) return "";
  const std::string batch = found->second.batch;
  if (Check(batch)) return absl::StrCat(batch, files_.ending);
  Drop(batch);
  return "";
}

void DiskCache::Forget(absl::Span<const codegen::Kernel> kernels) {
  for (const codegen::Kernel& kernel : kernels) {
    const std::string file = Find(kernel);
    if (!file.empty()) Drop(std::string(absl::StripSuffix(file, files_.ending)));
  }
}

std::string DiskCache::LockPath(absl::Span<const codegen::Kernel> kernels) const {
  if (folder_.empty()) return "";
  std::string names;
  for (const codegen::Kernel& kernel : kernels) absl::StrAppend(&names, kernel.name, " ");
  return absl::StrCat(folder_, kLocks, "/", base::FingerprintOf(names).ToString());
}

void DiskCache::Scan() {
  const int64_t changed_at = ChangedAt(folder_);
  if (changed_at == scanned_at_) return;
  scanned_at_ = changed_at;
  for (const FileInfo& file : ListFiles(folder_)) {
    if (absl::EndsWith(file.path, kIndex))
      ReadIndex(std::string(absl::StripSuffix(file.path, kIndex)));
  }
}

void DiskCache::ReadIndex(const std::string& batch) {
  if (checked_.contains(batch)) return;
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(batch + kIndex), '\n');
  if (lines.size() < 4 || lines[0] != key_ || lines[lines.size() - 2] != "end") return Drop(batch);
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(lines[i], ' ');
    if (words.size() != 2) return Drop(batch);
    places_.try_emplace(words[0], Place{batch, words[1]});
  }
}

bool DiskCache::Check(const std::string& batch) {
  const auto known = checked_.find(batch);
  if (known != checked_.end()) return known->second;
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(batch + kIndex), '\n');
  const std::string bytes = ReadFile(batch + files_.ending);
  const std::string expected =
      absl::StrCat(bytes.size(), " ", base::FingerprintOf(bytes).ToString());
  const bool whole = lines.size() > 1 && lines[1] == expected;
  if (whole) TouchFile(batch + files_.ending);
  checked_[batch] = whole;
  return whole;
}

void DiskCache::Drop(const std::string& batch) {
  LAZY_LOG(1, "disk cache: dropped ", batch);
  unlink((batch + kIndex).c_str());
  unlink((batch + files_.ending).c_str());
  checked_.erase(batch);
  absl::erase_if(places_, [&](const auto& entry) { return entry.second.batch == batch; });
}

absl::Status DiskCache::Store(absl::Span<const codegen::Kernel> kernels, const std::string& code) {
  return folder_.empty() ? absl::OkStatus() : Write(kernels, code);
}

std::string DiskCache::WordPath(absl::string_view key) const {
  return absl::StrCat(folder_, kWords, "/", base::FingerprintOf(key).ToString());
}

void DiskCache::Keep(absl::string_view key, absl::string_view word) {
  if (folder_.empty()) return;
  const absl::Status written = WriteFileWhole(WordPath(key), absl::StrCat(key, "\n", word, "\n"));
  if (!written.ok()) LAZY_LOG(1, "not kept on disk: ", written.message());
}

std::string DiskCache::Recall(absl::string_view key) {
  if (folder_.empty()) return "";
  if (!words_.has_value()) {
    words_.emplace();
    for (const FileInfo& file : ListFiles(absl::StrCat(folder_, kWords))) words_->insert(file.path);
  }
  const std::string path = WordPath(key);
  if (!words_->contains(path)) return "";
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(path), '\n');
  return lines.size() == 3 && lines[0] == key ? lines[1] : "";
}

absl::Status DiskCache::Write(absl::Span<const codegen::Kernel> kernels, const std::string& code) {
  const std::string index = IndexText(key_, kernels, code);
  const std::string batch = absl::StrCat(folder_, "/", base::FingerprintOf(index).ToString());
  LAZY_RETURN_IF_ERROR(WriteFileWhole(batch + files_.ending, code));
  LAZY_RETURN_IF_ERROR(WriteFileWhole(batch + kIndex, index));
  Trim(folder_, files_.ending);
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
