// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/failed_kernels.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/flags.h"
#include "base/log.h"
#include "lazy/host/lock.h"
#include "lazy/trace/history.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

struct Failure {
  std::string name;
  std::string error;
  std::string operators;
  std::shared_ptr<SourceLine> call;  // its line, once it has been recorded again; guarded by the device lock
  SourceLine cut;
};

struct Failures {
  std::mutex lock;
  std::vector<Failure> all;
  std::atomic<int> cuts_before_warning{0};  // 0: there is nothing to warn of
};

Failures& TheFailures() {
  static auto* const failures = new Failures;
  return *failures;
}

// In the program's order.
std::vector<const TrieNode*> CallsOf(const FailedKernel& kernel, const LoweredTrace& lowered,
                                     absl::Span<const TrieNode* const> calls) {
  std::vector<int32_t> numbers;
  for (const ir::Value node : kernel.nodes) numbers.push_back(lowered.calls[static_cast<size_t>(node)]);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<const TrieNode*> of;
  for (const int32_t number : numbers) {
    if (number >= 0) of.push_back(calls[static_cast<size_t>(number)]);
  }
  return of;
}

// Each once, with commas between them.
std::string OperatorsOf(absl::Span<const TrieNode* const> calls) {
  constexpr size_t kMost = 12;
  std::vector<std::string> names;
  for (const TrieNode* call : calls) {
    if (std::find(names.begin(), names.end(), call->op->name) == names.end()) names.push_back(call->op->name);
  }
  const size_t shown = std::min(names.size(), kMost), more = names.size() - shown;
  names.resize(shown);
  return absl::StrCat(names.empty() ? "copies" : absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// The call is recorded the long way the next time, which tells its line.
std::shared_ptr<SourceLine> AskForLine(const TrieNode* call) {
  Locked lock(DeviceLock());
  TrieNode* const node = call->expected->node;
  if (node->line_asked_for == nullptr) node->line_asked_for = std::make_shared<SourceLine>();
  if (node->parent->expected->likely == node->expected) node->parent->expected->likely = nullptr;
  return node->line_asked_for;
}

SourceLine LineOfCall(const Failure& failure) {
  Locked lock(DeviceLock());
  return failure.call != nullptr ? *failure.call : SourceLine();
}

bool IsKnown(const SourceLine& line) { return !line.text.empty() || !line.frames.empty(); }

std::string TextOf(const Failure& failure) {
  const std::vector<std::string> lines = TextsOf({LineOfCall(failure), failure.cut});
  const std::string at = !lines[0].empty()   ? absl::StrCat(" at ", lines[0])
                         : !lines[1].empty() ? absl::StrCat(" in a step that ends at ", lines[1])
                                             : "";
  return absl::StrCat(failure.name, " of ", failure.operators, at, ": ",
                      absl::StrReplaceAll(failure.error, {{"\n", "\n  "}}));
}

void Warn(const Failure& failure) {
  base::WarnOnce(
      "kernel",
      absl::StrCat("a kernel failed, so its calls are run by ATen, and the rest by kernels (explain() tells of all): ",
                   TextOf(failure)));
}

}  // namespace

bool NoteFailures(absl::Span<const FailedKernel> kernels, const LoweredTrace& lowered,
                  absl::Span<const TrieNode* const> calls, const Trace& trace) {
  constexpr int kMostCuts = 64;  // that a call may not be recorded in
  Failures& failures = TheFailures();
  for (const FailedKernel& kernel : kernels) {
    const std::lock_guard<std::mutex> lock(failures.lock);
    const auto is_same = [&](const Failure& known) { return known.name == kernel.name; };
    if (std::any_of(failures.all.begin(), failures.all.end(), is_same)) continue;
    const std::vector<const TrieNode*> its_calls = CallsOf(kernel, lowered, calls);
    failures.all.push_back({kernel.name, kernel.error, OperatorsOf(its_calls),
                            its_calls.empty() ? nullptr : AskForLine(its_calls[0]),
                            trace.cut != nullptr ? trace.cut->line : SourceLine()});
    if (base::Compilation() == base::CompileMode::kSync) {  // the program may end without recording it again
      Warn(failures.all.back());
    } else if (failures.all.size() == 1) {
      failures.cuts_before_warning = kMostCuts;
    }
  }
  return !kernels.empty();
}

void WarnOfFailures() {
  Failures& failures = TheFailures();
  if (failures.cuts_before_warning.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<std::mutex> lock(failures.lock);
  if (failures.cuts_before_warning == 0) return;
  if (IsKnown(LineOfCall(failures.all[0]))) failures.cuts_before_warning = 1;
  if (--failures.cuts_before_warning == 0) Warn(failures.all[0]);
}

std::string TextOfFailedKernels() {
  Failures& failures = TheFailures();
  const std::lock_guard<std::mutex> lock(failures.lock);
  std::string text;
  for (const Failure& failure : failures.all)
    absl::StrAppend(&text, "kernel failed, so its calls are run by ATen: ", TextOf(failure), "\n");
  return text;
}

}  // namespace torch_lazy::lazy
