// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/folder.h"

namespace torch_lazy::base {
namespace {

struct SeenKeys {
  absl::Mutex mutex;
  absl::flat_hash_set<std::string> keys;
};

bool IsNew(absl::string_view key) {
  static SeenKeys* seen = new SeenKeys;  // leaked: threads may warn while the program exits
  absl::MutexLock lock(&seen->mutex);
  return seen->keys.emplace(key).second;
}

// A relative path is meant from where the program was when it was first asked for.
std::string DumpRoot() {
  const std::string root = FixedText(Option::kDump);
  static const std::string& start = *[] {
    char* const folder = getcwd(nullptr, 0);  // null: it is gone, which is found later
    auto* const path = new std::string(folder != nullptr ? folder : "");
    std::free(folder);
    return path;
  }();
  return root[0] == '/' ? root : absl::StrCat(start, "/", root);
}

absl::StatusOr<Folder> OpenToWrite(const std::string& path) {
  absl::StatusOr<Folder> folder = Folder::Make(path);
  if (!folder.ok() || folder->can_write()) return folder;
  return absl::PermissionDeniedError(absl::StrCat(path, " is not ours to write"));
}

}  // namespace

void LogLine(const std::string& line) { std::fprintf(stderr, "lazy: %s\n", line.c_str()); }

void WarnOnce(absl::string_view key, const std::string& message) {
  if (IsNew(key)) LogLine(absl::StrCat("warning: ", message));
}

std::string MakeDumpFolder(absl::string_view name) {
  if (Number(Option::kDump) == 0) return "";
  static constinit std::atomic<int> next{0};
  const int number = next.fetch_add(1, std::memory_order_relaxed);
  const std::string path = absl::StrFormat("%s/%04d-%s", DumpRoot(), number, name);
  const absl::StatusOr<Folder> folder = OpenToWrite(path);
  if (folder.ok()) return path;
  WarnOnce("dump", absl::StrCat("dump: ", folder.status().message()));
  return "";
}

void WriteDump(const std::string& folder, absl::string_view file, absl::string_view text) {
  if (folder.empty()) return;
  const absl::StatusOr<Folder> opened = OpenToWrite(folder);
  const absl::Status written =
      opened.ok() ? opened->Write(std::string(file), {text.data(), text.size()}, /*lasting=*/false) : opened.status();
  if (!written.ok()) WarnOnce("dump", absl::StrCat("dump: ", written.message()));
}

}  // namespace torch_lazy::base
