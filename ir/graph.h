// SPDX-License-Identifier: Apache-2.0
// Graphs of primitive operations over typed values.
//
// graph @scaled_sum(%x: f32[s0, 64], %w: f32[64], $lr: f64) {
//   %0 = reshape %w : f32[1, 64]
//   %1 = expand %0 : f32[s0, 64]
//   %2 = mul %x, %1 : f32[s0, 64]
//   %3 = sum %2 {dims=[1], keepdim=false} : f32[s0]
//   return %3, %2 -> %x
// }
//
// Nodes stand in an append-only array in program order: a node's inputs come before it, and a value
// is the index of the node that makes it. `-> %x` says that the output takes the buffer of
// parameter x (an update in place).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/op_list.h"
#include "ir/type.h"

namespace torch_lazy::ir {

enum class Op : uint8_t {
#define X(name, ...) k##name,
  TORCH_LAZY_OP_LIST(X)
#undef X
};

enum class Kind : uint8_t {
  kLeaf,
  kElementwise,
  kView,
  kReduce,
  kPartial,
  kIndexed,
  kPut,
  kConcat,
  kMatmul,
  kAttend,
  kCall
};

enum class DTypeRule : uint8_t { kAny, kSame, kCompare, kSelect };
enum class DTypes : uint8_t { kFloats, kNumbers, kReals, kNotComplex, kEvery, kBits, kBool, kI64 };
enum Trait : uint8_t { kNone = 0, kCommutes = 1, kTranscendental = 2 };

struct OpInfo {
  absl::string_view text;
  Kind kind;
  int num_inputs;  // -1: any number
  DTypeRule dtype_rule;
  DTypes dtypes;
  double nanoseconds;  // of an element, in vector code on one core
  uint8_t traits;
};
const OpInfo& Info(Op op);

bool Has(DTypes dtypes, DType dtype);

// The reduction that a partial one begins: sum for share_sum; and back, kParam if there is none.
Op ReductionOf(Op partial);
Op ShareOf(Op reduction);

using Value = int32_t;
constexpr Value kNoValue = -1;
using Ints = absl::InlinedVector<int64_t, 2>;  // few nodes have any

// The attributes of a node. Each field is listed once in VisitAttrs (attrs.h): print, parse,
// equality and fingerprint come from there. Fields an op does not use keep their defaults.
struct Attrs {
  int64_t index = 0;      // param, scalar, result: which one. call: the record it stands for
  int64_t dim = 0;        // iota, take, put, concat, stack
  Ints dims;              // permute, reductions
  bool keepdim = false;   // reductions
  Dims starts;            // slice: one per dim
  Ints steps;             // slice: one per dim
  Extent extent;          // extent
  double f = 0;           // const of a float type
  int64_t i = 0;          // const of an integer type or bool
  std::string callee;     // call: the operation's name, for the reader and the fingerprint
  Ints inout;             // call: inout[k] is the operand whose buffer result k takes, -1 for a new buffer
  bool may_fail = false;  // call: it may refuse values, so it runs even if nobody reads its results
  friend bool operator==(const Attrs& a, const Attrs& b);
  friend bool operator!=(const Attrs& a, const Attrs& b) { return !(a == b); }
};

struct Node {
  Op op;
  int32_t origin =
      -1;  // for reports: what it was made for, to whoever made the graph; nodes that differ in it alone are equal
  absl::InlinedVector<Value, 3> inputs;
  Type type;
  Attrs attrs;
  friend bool operator==(const Node& a, const Node& b);
  friend bool operator!=(const Node& a, const Node& b) { return !(a == b); }
};

// Whether a product adds a bias to each row, its third operand.
inline bool HasBias(const Node& node) { return node.op == Op::kMatmulBias || node.op == Op::kMatmulBiasRelu; }

struct Output {
  Value value = kNoValue;
  int32_t into = -1;  // index of the parameter whose buffer the output takes; -1: a buffer of its own
  friend bool operator==(const Output& a, const Output& b) { return a.value == b.value && a.into == b.into; }
};

// A tensor parameter is a `param` node, a number a `scalar` node; both stand first, each kind in
// order of its indices. A `call` without results (`inout` is empty) is there for its effect; its
// own value must not be used.
struct Graph {
  std::string name = "g";
  std::vector<Node> nodes;
  std::vector<Output> outputs;

  const Node& node(Value v) const { return nodes[v]; }
  const Type& type(Value v) const { return nodes[v].type; }
  int num_params() const;
  int num_scalars() const;
  int num_symbols() const;                                 // one more than the largest symbol used
  friend bool operator==(const Graph& a, const Graph& b);  // the name does not count
  friend bool operator!=(const Graph& a, const Graph& b) { return !(a == b); }
};

// What all extents of the graph's nodes stand for, one after the other; symbols[k] is the number of symbol k.
std::vector<int64_t> ExtentsOf(const Graph& graph, absl::Span<const int64_t> symbols);

}  // namespace torch_lazy::ir
