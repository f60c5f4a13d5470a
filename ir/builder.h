// SPDX-License-Identifier: Apache-2.0
// Appends nodes to a graph, and knows their types.
//
//   Builder b("scaled_sum");
//   Value x = b.Param({DType::kF32, {s0, Extent::Constant(64)}});
//   Value y = b.Sum(b.Mul(x, x), {1}, /*keepdim=*/false);
//   Graph g = b.Finish({{y}});
//
// Operands that do not fit are a LAZY_CHECK: whoever lowers has checked the user's shapes before.
// Nothing broadcasts or promotes by itself; BroadcastTo, Cast and Full say it.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

class Builder {
 public:
  explicit Builder(absl::string_view name = "g");
  void Reserve(size_t num_nodes) { graph_.nodes.reserve(num_nodes); }  // memory, for passes

  // Leaves. Parameters and scalars may be made at any time: Finish moves them to the front.
  Value Param(const Type& type);
  Value Scalar(DType dtype);  // f64 or i64
  Value Const(DType dtype, double value);
  Value Const(DType dtype, int64_t value);
  Value Const(DType dtype, int value) { return Const(dtype, static_cast<int64_t>(value)); }
  Value Iota(const Type& type, int dim);
  Value ExtentOf(Extent extent);                               // i64
  Value Count(absl::Span<const Extent> extents, DType dtype);  // the product of extents, rank 0

  // Elementwise: operands have equal types.
  Value Unary(Op op, Value x);
  Value Binary(Op op, Value a, Value b);
  Value Fma(Value a, Value b, Value c);  // a * b + c
  Value Where(Value condition, Value if_true, Value if_false);
  // Are the Philox numbers of places `index` below a threshold? All i64, the others of rank 0: seed,
  // offset, threads, width (see philox.h), threshold.
  Value Bernoulli(Value index, std::array<Value, 5> numbers);
  Value Cast(Value x, DType dtype);  // x itself if it has the dtype
  Value Neg(Value x) { return Unary(Op::kNeg, x); }
  Value Add(Value a, Value b) { return Binary(Op::kAdd, a, b); }
  Value Sub(Value a, Value b) { return Binary(Op::kSub, a, b); }
  Value Mul(Value a, Value b) { return Binary(Op::kMul, a, b); }
  Value Div(Value a, Value b) { return Binary(Op::kDiv, a, b); }

  // Views. Each gives x itself if it changes nothing.
  Value Reshape(Value x, Dims dims);
  Value Permute(Value x, Ints dims);
  Value Expand(Value x, Dims dims);       // same rank
  Value BroadcastTo(Value x, Dims dims);  // as numpy: with leading ones where the rank is smaller, then expanded
  Value Slice(Value x, Dims starts, Dims sizes, Ints steps);
  Value Full(Value number, Dims dims) { return BroadcastTo(number, std::move(dims)); }
  Value FullLike(Value number, Value x) { return BroadcastTo(number, dims(x)); }
  Value Like(Value x,
             double constant);  // a constant of x's type; rounded, or truncated for integers

  // Reductions. `reduced` in any order; none of them: x itself.
  Value Reduce(Op op, Value x, Ints reduced, bool keepdim);
  Value Sum(Value x, Ints reduced, bool keepdim) { return Reduce(Op::kSum, x, std::move(reduced), keepdim); }
  Value Mean(Value x, Ints reduced, bool keepdim);  // sum / count, as ATen

  // out[i0, .., ik, ..] = x[i0, .., index[i0, .., ik, ..], ..] along `dim`; x's other extents are
  // the index's or 1.
  Value Take(Value x, Value index, int dim);

  // x with rows[.., k, ..] at index[k] along `dim`; rows has x's other extents, and the index one dim.
  Value Put(Value x, Value rows, Value index, int dim);

  // `inputs` side by side along `dim`, where they have `extent` elements together. One alone: itself.
  Value Concat(absl::Span<const Value> inputs, int dim, Extent extent);

  // Equal types, along a new dim.
  Value Stack(absl::Span<const Value> inputs, int dim);

  // Products of matrices: [m, k] by [k, n], or [b, m, k] by [b, k, n].
  Value Matmul(Value x, Value y);
  Value MatmulSum(Value x, Value y);                                           // of batches, summed over them
  Value Attend(Value query, Value keys, Value values, Value bias = kNoValue);  // as op_list.h has it
  Value MatmulBias(Value x, Value y, Value bias);  // of two dims; bias [n] added to each row

  // Calls: all results, the first being the call itself. `record` names what lazy/ runs.
  // `may_fail`: it may refuse values.
  std::vector<Value> Call(absl::string_view callee, int64_t record, absl::Span<const Value> operands,
                          absl::Span<const Type> results, Ints inout, bool may_fail = false);

  // References into the graph hold until the next node is appended.
  const Type& type(Value v) const { return graph_.type(v); }
  const Dims& dims(Value v) const { return graph_.type(v).dims; }
  DType dtype(Value v) const { return graph_.type(v).dtype; }
  int rank(Value v) const { return graph_.type(v).rank(); }
  const Graph& graph() const { return graph_; }  // as appended: parameters may stand behind other nodes

  // What is appended from here on and brings no origin of its own has this one.
  void set_origin(int32_t origin) { origin_ = origin; }

  // Appends a node whose type is known, for passes; checked like the others.
  Value Append(Node&& node);

  // The graph, with parameters and scalars in front: values get new numbers if they were not.
  Graph Finish(std::vector<Output> outputs);

 private:
  Value AppendOp(Op op, std::initializer_list<Value> inputs, Type type, Attrs attrs = {});

  Graph graph_;
  int64_t num_params_ = 0;
  int64_t num_scalars_ = 0;
  bool in_header_ = true;  // nothing but parameters and scalars so far
  bool header_in_front_ = true;
  int32_t origin_ = -1;
};

}  // namespace torch_lazy::ir
