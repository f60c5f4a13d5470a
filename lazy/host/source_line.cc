// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/source_line.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <torch/csrc/profiler/unwind/unwind.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "lazy/host/python_line.h"

namespace torch_lazy::lazy {
namespace {

// Neither PyTorch's, nor ours, nor the system's.
bool IsOfUser(void* address) {
  const std::optional<std::pair<std::string, uint64_t>> library = torch::unwind::libraryFor(address);
  if (!library) return false;
  const std::string_view path = library->first;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kOthers[] = {"libtorch", "libc10", "libstdc++", "libc.", "libc-", "ld-linux", "libgomp"};
  return std::none_of(std::begin(kOthers), std::end(kOthers),
                      [&](std::string_view other) { return name.substr(0, other.size()) == other; });
}

bool IsInHeaders(const std::string& file) {
  return absl::StrContains(file, "/ATen/") || absl::StrContains(file, "/c10/") || absl::StrContains(file, "/torch/") ||
         absl::StrContains(file, "/bits/");
}

}  // namespace

SourceLine CurrentSourceLine() {
  SourceLine line{PythonLine(), {}};
  // The first time it reads the tables of all libraries, for half a second.
  if (line.text.empty() && base::Number(base::Option::kLog) > 0) line.frames = torch::unwind::unwind();
  return line;
}

std::vector<std::string> TextsOf(const std::vector<SourceLine>& lines) {
  std::map<void*, torch::unwind::Frame> frames;
  for (const SourceLine& line : lines) {
    for (void* address : line.frames) {
      if (!frames.contains(address) && IsOfUser(address)) frames[address];
    }
  }
  std::vector<void*> addresses;
  for (const auto& [address, frame] : frames) addresses.push_back(address);
  std::vector<torch::unwind::Frame> found;
  if (!addresses.empty()) found = torch::unwind::symbolize(addresses, torch::unwind::Mode::addr2line);
  for (size_t i = 0; i < found.size(); ++i) frames[addresses[i]] = std::move(found[i]);
  std::vector<std::string> texts;
  for (const SourceLine& line : lines) {
    std::string& text = texts.emplace_back(line.text);
    for (void* address : line.frames) {
      const auto frame = frames.find(address);
      if (frame == frames.end() || IsInHeaders(frame->second.filename)) continue;
      text = absl::StrCat(frame->second.filename, ":", frame->second.lineno, " in ", frame->second.funcname);
      break;
    }
  }
  return texts;
}

}  // namespace torch_lazy::lazy
