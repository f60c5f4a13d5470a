// SPDX-License-Identifier: Apache-2.0
#include "ir/attrs.h"

#include <bit>

namespace torch_lazy::ir {
namespace {

constexpr uint16_t Set(Attr a) { return static_cast<uint16_t>(a); }
template <typename... Rest>
constexpr uint16_t Set(Attr a, Rest... rest) {
  return Set(a) | Set(rest...);
}

template <typename T>
bool Equal(const T& a, const T& b) {
  return a == b;
}
bool Equal(const double& a, const double& b) { return SameBits(a, b); }

}  // namespace

bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

uint16_t UsedAttrs(Op op, DType dtype) {
  if (Info(op).kind == Kind::kPartial) return Set(Attr::kDims);
  if (Info(op).kind == Kind::kReduce) return Set(Attr::kDims, Attr::kKeepdim);
  if (op == Op::kConst) return IsFloat(dtype) ? Set(Attr::kFloat) : Set(Attr::kInteger);
  if (op == Op::kIota || op == Op::kTake || op == Op::kPut || Info(op).kind == Kind::kConcat) return Set(Attr::kDim);
  if (op == Op::kExtentOf) return Set(Attr::kExtent);
  if (op == Op::kPermute) return Set(Attr::kDims);
  if (op == Op::kSlice) return Set(Attr::kStarts, Attr::kSteps);
  if (op == Op::kCall) return Set(Attr::kCallee, Attr::kIndex, Attr::kInout, Attr::kMayFail);
  if (op == Op::kParam || op == Op::kScalar || op == Op::kResult) return Set(Attr::kIndex);
  return 0;
}

bool operator==(const Attrs& a, const Attrs& b) {
  bool equal = true;
  VisitAttrs([&](Attr, const char*, auto field) { equal = equal && Equal(a.*field, b.*field); });
  return equal;
}

}  // namespace torch_lazy::ir
