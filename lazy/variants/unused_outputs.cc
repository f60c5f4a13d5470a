// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/unused_outputs.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kLeastBytes = 1 << 20;  // to store them takes 0.1 ms here, as long as a small step's kernels
constexpr size_t kLeastShare = 16;       // of what is returned
constexpr int kInARow = 2;
constexpr int kMostCuts = 64;  // a program's beginning, in which it is worth looking

}  // namespace

bool UnusedOutputs::AreMany(const Trace& trace, const std::vector<bool>& live, const std::vector<bool>& returned) {
  if (cuts_ == kMostCuts) return false;
  ++cuts_;
  size_t bytes = 0, unneeded = 0;
  for (size_t s = 0; s < live.size(); ++s) {
    if (!returned[s]) continue;
    bytes += trace.slots[s].size_bytes;
    if (!live[s]) unneeded += trace.slots[s].size_bytes;
  }
  if (unneeded < kLeastBytes || unneeded < bytes / kLeastShare) {
    in_a_row_ = 0;
    return false;
  }
  if (in_a_row_++ == 0) needed_.assign(live.size(), false);
  for (size_t s = 0; s < live.size(); ++s) needed_[s] = needed_[s] || live[s];
  return in_a_row_ == kInARow;
}

}  // namespace torch_lazy::lazy
