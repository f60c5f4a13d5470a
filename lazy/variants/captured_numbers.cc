// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/captured_numbers.h"

#include <algorithm>

namespace torch_lazy::lazy {
namespace {

bool IsOfDraw(const Op& op, int arg) { return op.seed_arg >= 0 && (arg == op.seed_arg || arg == op.seed_arg + 1); }

template <typename Do>
void ForEachCall(const BoundPlan& plan, const Do& run) {
  for (const codegen::Step& step : plan.plan().steps) {
    if (step.kind != codegen::Step::Kind::kCall) continue;
    run(*plan.calls().calls()[static_cast<size_t>(plan.graph().node(step.call).attrs.index)]);
  }
}

}  // namespace

std::vector<c10::IValue> NumbersOfCalls(const BoundPlan& plan, const Trace& trace) {
  std::vector<c10::IValue> numbers;
  ForEachCall(plan, [&](const TrieNode& call) {
    for (const int16_t arg : call.number_args) {
      if (!IsOfDraw(*call.op, arg)) numbers.push_back(trace.Argument(call, arg));
    }
  });
  return numbers;
}

std::vector<PhiloxDraw> DrawsOf(const BoundPlan& plan, const Trace& trace) {
  std::vector<PhiloxDraw> draws;
  ForEachCall(plan, [&](const TrieNode& call) {
    const int seed = call.op->seed_arg;
    if (seed < 0 || !trace.Argument(call, seed).isInt()) return;
    draws.push_back({trace.Argument(call, seed).toInt(), trace.Argument(call, seed + 1).toInt()});
  });
  return draws;
}

std::optional<PhiloxDraw> FirstOf(const std::vector<PhiloxDraw>& draws) {
  PhiloxDraw first = draws.empty() ? PhiloxDraw() : draws[0];
  for (const PhiloxDraw& draw : draws) {
    if (draw.seed != first.seed) return std::nullopt;
    first.offset = std::min(first.offset, draw.offset);
  }
  return first;
}

bool LieAlike(const std::vector<PhiloxDraw>& a, const std::vector<PhiloxDraw>& b) {
  const std::optional<PhiloxDraw> first_a = FirstOf(a), first_b = FirstOf(b);
  return first_a && first_b &&
         std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const PhiloxDraw& x, const PhiloxDraw& y) {
           return x.offset - first_a->offset == y.offset - first_b->offset;
         });
}

bool IsSame(const c10::IValue& a, const c10::IValue& b) {
  if (a.isNone() && b.isNone()) return true;
  if (a.isInt() && b.isInt()) return a.toInt() == b.toInt();
  if (a.isBool() && b.isBool()) return a.toBool() == b.toBool();
  return a.isDouble() && b.isDouble() && a.toDouble() == b.toDouble();
}

}  // namespace torch_lazy::lazy
