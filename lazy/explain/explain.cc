// SPDX-License-Identifier: Apache-2.0
#include "lazy/explain/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "lazy/explain/apart.h"
#include "lazy/explain/efforts.h"
#include "lazy/ops/op.h"
#include "lazy/replay/replay.h"
#include "lazy/run/failed_kernels.h"
#include "lazy/trace/history.h"

namespace torch_lazy::lazy {
namespace {

using base::Counter;
using base::Tally;
using Counts = std::vector<std::pair<std::string, int64_t>>;

Counts MostFirst(Tally tally) {
  Counts counts = base::List(tally);
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts;
}

std::string WhyImmediate(const std::string& name) {
  const Op* op = FindOp(name);
  if (op == nullptr) return "";
  if (op->dynamic_by_mask)
    return "the shape of its result depends on truth values, or it was seen with these operands for the first time";
  if (op->random) return "draws random numbers, which are drawn in the order of the program";
  if (op->immediate) return "the shape of its result depends on data, or it is not an operator of PyTorch's own";
  return "run at once the first time that it is seen with these operands, and where a program waits for a value after "
         "a "
         "few calls each: to record them does not pay there until kernels are compiled";
}

}  // namespace

std::string Explain() {
  std::string text;
  absl::StrAppend(&text, "calls: ", base::Get(Counter::kCallsTotal), ", of which ", base::Get(Counter::kCallsCompiled),
                  " ran in generated kernels, ", base::Get(Counter::kCallsRecorded),
                  " by ATen in their place in a trace, ", base::Get(Counter::kCallsImmediate), " at once\n");
  absl::StrAppend(&text, "traces: ", base::Get(Counter::kTracesRun), " run, ", base::Get(Counter::kTraceMisses),
                  " not known before, ", base::Get(Counter::kTracesInterpreted), " run op by op\n");
  absl::StrAppend(&text, "kernels: ", base::Get(Counter::kKernelsCompiled), " asked of the compiler, ",
                  base::Get(Counter::kKernelsFromDisk), " found on disk, ", base::Get(Counter::kKernelsFailed),
                  " failed, ", base::Get(Counter::kKernelLaunches), " launches\n");
  absl::StrAppend(&text, TextOfEfforts(), TextOfFailedKernels(), TextOfHistory(), TextOfRefusals());
  for (const auto& [op, count] : MostFirst(Tally::kCallsImmediateByOp)) {
    absl::StrAppend(&text, "at once ", count, " times: ", op, ": ", WhyImmediate(op), "\n");
  }
  for (const auto& [op, count] : MostFirst(Tally::kCallsRecordedByOp)) {
    const Op* known = FindOp(op);
    absl::StrAppend(&text, "by ATen ", count, " times: ", op, ": ",
                    known != nullptr && known->is_lowered()
                        ? "its trace was not compiled yet, a kernel failed, or its lowering does not cover this case"
                        : "it has no lowering",
                    "\n");
  }
  return absl::StrCat(text, TextOfApart());
}

}  // namespace torch_lazy::lazy
