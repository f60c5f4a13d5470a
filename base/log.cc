// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"

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

}  // namespace

void LogLine(const std::string& line) { std::fprintf(stderr, "lazy: %s\n", line.c_str()); }

void WarnOnce(absl::string_view key, const std::string& message) {
  if (IsNew(key)) LogLine(absl::StrCat("warning: ", message));
}

std::string MakeDumpFolder(absl::string_view name) {
  if (Number(Option::kDump) == 0) return "";
  static constinit std::atomic<int> next{0};
  const int number = next.fetch_add(1, std::memory_order_relaxed);
  const std::string folder = absl::StrFormat("%s/%04d-%s", Text(Option::kDump), number, name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return folder;
  WarnOnce("dump", absl::StrCat("dump: cannot make ", folder, ": ", error.message()));
  return "";
}

void WriteDump(const std::string& folder, absl::string_view file, absl::string_view text) {
  if (folder.empty()) return;
  const std::string path = absl::StrCat(folder, "/", file);
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush()) WarnOnce("dump", absl::StrCat("dump: cannot write ", path));
}

}  // namespace torch_lazy::base
