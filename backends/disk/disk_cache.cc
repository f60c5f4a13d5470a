// SPDX-License-Identifier: Apache-2.0
#include "backends/disk/disk_cache.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr int64_t kMostBytes = int64_t{512} << 20;  // of one key's folder; the batches longest unused go first
constexpr size_t kMostWords = 8192;                 // a file each
constexpr char kIndex[] = ".index";
constexpr char kLocks[] = "locks";
constexpr char kWords[] = "words";

std::string IndexText(const std::string& key, absl::Span<const codegen::Kernel> kernels, const std::string& bytes) {
  std::vector<std::string> lines = {key, absl::StrCat(bytes.size(), " ", base::FingerprintOf(bytes).ToString())};
  for (const codegen::Kernel& kernel : kernels) {
    lines.push_back(absl::StrCat(kernel.name, " ", base::FingerprintOf(kernel.source).ToString()));
  }
  lines.push_back("end\n");
  return absl::StrJoin(lines, "\n");
}

// The oldest go first, and what killed processes have left: who misses one keeps it again.
void TrimWords(const base::Folder& words) {
  const int64_t long_ago = absl::ToUnixNanos(absl::Now() - absl::Hours(1));
  std::vector<base::FileInfo> files = words.List();
  for (const base::FileInfo& file : files) {
    if (absl::EndsWith(file.name, base::Folder::kUnfinished) && file.changed_at < long_ago) words.Remove(file.name);
  }
  if (files.size() <= kMostWords) return;
  std::ranges::sort(files, {}, &base::FileInfo::changed_at);
  for (size_t k = 0; k < files.size() - kMostWords; ++k) words.Remove(files[k].name);
}

// Removes what killed processes have left, and the batches longest unused until the folder is small
// enough.
void Trim(const base::Folder& folder, const base::Folder& locks, const char* ending) {
  const int64_t long_ago = absl::ToUnixNanos(absl::Now() - absl::Hours(1));
  for (const base::FileInfo& file : locks.List()) {
    if (file.changed_at < long_ago) locks.Remove(file.name);
  }
  int64_t total = 0;
  std::vector<base::FileInfo> batches;
  for (const base::FileInfo& file : folder.List()) {
    if (absl::EndsWith(file.name, base::Folder::kUnfinished) && file.changed_at < long_ago) {
      folder.Remove(file.name);
      continue;
    }
    total += file.size_bytes;
    if (absl::EndsWith(file.name, ending)) batches.push_back(file);
  }
  std::sort(batches.begin(), batches.end(), [](const auto& a, const auto& b) { return a.changed_at < b.changed_at; });
  for (const base::FileInfo& batch : batches) {
    if (total <= kMostBytes) return;
    folder.Remove(absl::StrCat(absl::StripSuffix(batch.name, ending), kIndex));
    folder.Remove(batch.name);
    total -= batch.size_bytes;
  }
}

}  // namespace

DiskCache::DiskCache(std::string root, const CodeFiles& files, std::string key)
    : root_(std::move(root)), files_(files), key_(std::move(key)) {
  if (root_.empty()) return;
  const absl::Status opened = OpenFolders();
  if (opened.ok()) return;
  folder_ = locks_ = words_ = nullptr;
  keeps_ = false;
  base::WarnOnce("disk cache", absl::StrCat("compiled kernels are not kept on disk: ", opened.message()));
}

absl::Status DiskCache::OpenFolders() {
  const auto open = [&](const base::Folder& in, const std::string& name, Folder* folder) {
    absl::StatusOr<base::Folder> opened = in.OpenIn(name, /*makes=*/keeps_);
    if (!opened.ok()) return absl::IsNotFound(opened.status()) && !keeps_ ? absl::OkStatus() : opened.status();
    keeps_ = keeps_ && opened->can_write();
    *folder = std::make_shared<const base::Folder>(*std::move(opened));
    return absl::OkStatus();
  };
  LAZY_ASSIGN_OR_RETURN(const base::Folder root, base::Folder::Make(root_));
  keeps_ = root.can_write() && root.is_private();
  if (root.can_write() && !root.is_private()) {
    base::WarnOnce("disk cache", absl::StrCat("compiled kernels are read from ", root_,
                                              ", and not kept there, since others may read it (chmod 700 ", root_,
                                              ", or, to share it, chmod -R a=rX)"));
  }
  LAZY_RETURN_IF_ERROR(open(root, absl::StrCat(files_.target, "-", base::FingerprintOf(key_).ToString()), &folder_));
  if (folder_ == nullptr) return absl::OkStatus();
  LAZY_RETURN_IF_ERROR(open(*folder_, kLocks, &locks_));
  return open(*folder_, kWords, &words_);
}

bool DiskCache::Names(const std::string& kernel) {
  if (!places_.contains(kernel)) Scan();  // another process may have stored it meanwhile
  return places_.contains(kernel);
}

absl::StatusOr<DiskCache::Code> DiskCache::Find(const codegen::Kernel& kernel) {
  if (!Names(kernel.name)) return absl::NotFoundError(kernel.name);
  const auto found = places_.find(kernel.name);
  if (found->second.source_fingerprint != base::FingerprintOf(kernel.source).ToString())
    return absl::NotFoundError(kernel.name);
  const std::string batch = found->second.batch;
  absl::StatusOr<base::File> code = Check(batch);
  if (code.ok()) return Code{batch, *std::move(code)};
  if (!absl::IsUnavailable(code.status())) Drop(batch);  // else this process is at fault
  return code.status();
}

void DiskCache::Forget(absl::Span<const codegen::Kernel> kernels) {
  for (const codegen::Kernel& kernel : kernels) {
    const absl::StatusOr<Code> code = Find(kernel);
    if (code.ok()) Drop(code->batch);
  }
}

FileLock DiskCache::Lock(absl::Span<const codegen::Kernel> kernels) const {
  std::string names;
  for (const codegen::Kernel& kernel : kernels) absl::StrAppend(&names, kernel.name, " ");
  return FileLock::Try(keeps_ ? locks_ : nullptr, base::FingerprintOf(names).ToString());
}

void DiskCache::Scan() {
  if (folder_ == nullptr) return;
  const int64_t changed_at = folder_->ChangedAt();
  if (changed_at == scanned_at_) return;
  scanned_at_ = changed_at;
  for (const base::FileInfo& file : folder_->List()) {
    if (absl::EndsWith(file.name, kIndex)) ReadIndex(std::string(absl::StripSuffix(file.name, kIndex)));
  }
}

void DiskCache::ReadIndex(const std::string& batch) {
  if (checked_.contains(batch)) return;
  const absl::StatusOr<base::File> index = folder_->Open(batch + kIndex);
  if (absl::IsUnavailable(index.status())) return;  // this process may have no descriptor left
  const std::vector<std::string> lines = absl::StrSplit(index.ok() ? index->Read() : "", '\n');
  if (lines.size() < 4 || lines[0] != key_ || lines[lines.size() - 2] != "end") return Drop(batch);
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(lines[i], ' ');
    if (words.size() != 2) return Drop(batch);
    places_.try_emplace(words[0], Place{batch, words[1]});
  }
}

absl::StatusOr<base::File> DiskCache::Check(const std::string& batch) {
  LAZY_ASSIGN_OR_RETURN(base::File file, folder_->Open(batch + files_.ending));
  const auto known = checked_.find(batch);
  if (known != checked_.end() && known->second == file.identity()) return file;
  const std::vector<std::string> lines = absl::StrSplit(folder_->Read(batch + kIndex), '\n');
  const std::string bytes = file.Read();
  if (lines.size() < 2 || lines[1] != absl::StrCat(bytes.size(), " ", base::FingerprintOf(bytes).ToString())) {
    return absl::DataLossError(absl::StrCat(batch, " is damaged"));
  }
  if (keeps_) file.Touch();
  checked_[batch] = file.identity();
  return file;
}

void DiskCache::Drop(const std::string& batch) {
  LAZY_LOG(1, "disk cache: dropped ", batch);
  if (keeps_) folder_->Remove(batch + kIndex);
  if (keeps_) folder_->Remove(batch + files_.ending);
  checked_.erase(batch);
  absl::erase_if(places_, [&](const auto& entry) { return entry.second.batch == batch; });
}

absl::Status DiskCache::Store(absl::Span<const codegen::Kernel> kernels, const std::string& code) {
  return keeps_ ? Write(kernels, code) : absl::OkStatus();
}

void DiskCache::Keep(absl::string_view key, absl::string_view word) {
  if (!keeps_) return;
  // Not synced: what is not whole is no word.
  const absl::Status written =
      words_->Write(base::FingerprintOf(key).ToString(), absl::StrCat(key, "\n", word, "\n"), /*lasting=*/false);
  if (!written.ok()) LAZY_LOG(1, "not kept on disk: ", written.message());
}

std::string DiskCache::Recall(absl::string_view key) {
  if (words_ == nullptr) return "";
  if (!word_files_.has_value()) {
    word_files_.emplace();
    for (const base::FileInfo& file : words_->List()) word_files_->insert(file.name);
  }
  const std::string name = base::FingerprintOf(key).ToString();
  if (!word_files_->contains(name)) return "";
  const std::vector<std::string> lines = absl::StrSplit(words_->Read(name), '\n');
  return lines.size() == 3 && lines[0] == key ? lines[1] : "";
}

absl::Status DiskCache::Write(absl::Span<const codegen::Kernel> kernels, const std::string& code) {
  const std::string index = IndexText(key_, kernels, code);
  const std::string batch = base::FingerprintOf(index).ToString();
  LAZY_RETURN_IF_ERROR(folder_->Write(batch + files_.ending, code, /*lasting=*/true));
  LAZY_RETURN_IF_ERROR(folder_->Write(batch + kIndex, index, /*lasting=*/true));
  Trim(*folder_, *locks_, files_.ending);
  TrimWords(*words_);
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
