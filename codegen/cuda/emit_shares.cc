// SPDX-License-Identifier: Apache-2.0
// Reductions in shares, where there are too few results for a block each: a block does a share of
// one long row, or of the rows of a few columns. Another kernel folds the shares.
#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/cuda/vector_store.h"
#include "codegen/kernels/op_text.h"
#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kShareThreads = 512;
constexpr int kColumns = 32;  // of a block at once

class ShareEmitter {
 public:
  ShareEmitter(const ir::Graph& graph, Group::Shape shape, const Body& body)
      : has_columns_(shape == Group::Shape::kColumnShares),
        body_(body),
        loops_(MakeLoops(body)),
        text_(graph, body, Target::kCuda),
        access_(body, loops_.inner.empty() ? nullptr : &loops_.inner.back(), body.inner, &text_) {
    for (const Loop& loop : loops_.outer) results_ = results_ * loop.extent;
    for (const Loop& loop : loops_.inner) length_ = length_ * loop.extent;
    for (size_t e = 0; e < body.expressions.size(); ++e) {
      if (body.expressions[e].kind == Expression::Kind::kShareSum) folds_.emplace_back(static_cast<int>(e), &text_);
    }
  }

  WrittenKernel Emit() {
    EmitShare();
    EmitBlock();
    ir::Dims range = has_columns_ ? ir::Dims() : RangeOf(loops_);
    range.push_back(ir::Extent::Constant(body_.shares));
    return Finish(text_, "shares", range, kShareThreads, 1);
  }

 private:
  // Result `r`, by the threads of a block, or by those for which there is an `in`: they are
  // `groups` of `width`, and this one is `y`.
  void EmitShare() {
    OpenFunction("template <int V> ", "KERNEL_share",
                 has_columns_ ? "const long share, const long r, const int t, const int width"
                              : "const long share, const long r, const int t",
                 &text_);
    if (has_columns_) {
      text_.Line(absl::StrCat("const int groups = ", kShareThreads, " / width, y = t / width;"));
      text_.Line("const bool in = y < groups;");
    }
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      const int number = static_cast<int>(e);
      if (body_.uses_inner(number) || expression.kind == Expression::Kind::kShareSum) continue;
      text_.Define(number, expression.address < 0 ? "" : PlaceText(expression.address, {}, &text_));
    }
    for (Accumulator& fold : folds_) fold.Declare();
    EmitWalk();
    has_columns_ ? CombineColumns() : CombineGroup(folds_, kShareThreads, &text_);
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) continue;
      text_.Line(absl::StrCat(has_columns_ ? "if (in && y == 0) (" : "if (t == 0) (",
                              PointerText(store.address, {}, &text_), ")[share * ", text_.Number(results_),
                              "] = ", StoredText(store), ";"));
    }
    CloseFunction(&text_);
  }

  // V neighbours at a time, in blocks of some for each thread.
  void EmitWalk() {
    const std::string threads = has_columns_ ? "groups" : absl::StrCat(kShareThreads);
    const std::string own = has_columns_ ? "y" : "t";
    const std::string shares = absl::StrCat(body_.shares);
    text_.Line(absl::StrCat("const long vectors = ", text_.Number(length_), " / V;"));
    text_.Line(absl::StrCat("const long first = vectors * share / ", shares, ", last = vectors * (share + 1) / ",
                            shares, ";"));
    text_.Line(absl::StrCat("const long block = ", kBlockSteps, " / V * ", threads, ";"));
    text_.Open(absl::StrCat("for (long first_j = first + ", own, "; ", has_columns_ ? "in && " : "",
                            "first_j < last; first_j += block) {"));
    text_.Line("const long end_j = last - first_j < block ? last : first_j + block;");
    for (Accumulator& fold : folds_) fold.BeginBlock();
    text_.Line("#pragma unroll 4");
    text_.Open(absl::StrCat("for (long at = first_j; at < end_j; at += ", threads, ") {"));
    text_.Line("const long j = at * V;");
    EmitVector();
    text_.Close("}");
    for (Accumulator& fold : folds_) fold.EndBlock();
    text_.Close("}");
  }

  void EmitVector() {
    const std::vector<KernelText::Along> at = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const int address = body_.expressions[e].address;
      if (!IsVector(static_cast<int>(e))) continue;
      Declare(address);
      text_.Line(absl::StrCat("lazy_read(m", address, ", ", PointerText(address, at, &text_), ");"));
    }
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) DeclareStored(store, &text_);
    }
    std::vector<KernelText::Along> along = at;
    if (!along.empty()) along.back().index = absl::StrCat("(", along.back().index, " + k)");
    text_.Line("#pragma unroll");
    text_.Open("for (int k = 0; k < V; ++k) {");
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const int number = static_cast<int>(e), address = body_.expressions[e].address;
      if (!body_.uses_inner(number)) continue;
      text_.Define(number, IsVector(number) ? absl::StrCat("m", address, "[k]")
                           : address >= 0   ? PlaceText(address, along, &text_)
                                            : "");
    }
    for (Accumulator& fold : folds_) fold.Step("j + k", "");
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) PutStored(store, &text_);
    }
    text_.Close("}");
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) Write(store, at, along);
    }
  }

  void Write(const Store& store, absl::Span<const KernelText::Along> at, absl::Span<const KernelText::Along> along) {
    if (access_.IsContiguous(store.address)) {
      return WriteStored(store, "", PointerText(store.address, at, &text_), &text_);
    }
    text_.Line("#pragma unroll");
    text_.Line(absl::StrCat("for (int k = 0; k < V; ++k) ", PlaceText(store.address, along, &text_), " = ",
                            StoredElement(store, text_), ";"));
  }

  // The groups' accumulators of a column: the first half of the groups folds the others' in, until
  // one is left.
  void CombineColumns() {
    for (Accumulator& fold : folds_) fold.DeclareShared(absl::StrCat(kShareThreads));
    text_.Line("__syncthreads();");  // the last columns' are read
    for (Accumulator& fold : folds_) fold.Put("t");
    text_.Line("__syncthreads();");
    text_.Open("for (int left = groups, half; left > 1; left = half) {");
    text_.Line("half = (left + 1) / 2;");
    text_.Open("if (y + half < left) {");
    for (Accumulator& fold : folds_) {
      fold.FoldFrom("t + half * width");
      fold.Put("t");
    }
    text_.Close("}");
    text_.Line("__syncthreads();");
    text_.Close("}");
    for (Accumulator& fold : folds_) fold.DefineResult();
  }

  void EmitBlock() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    if (has_columns_) {
      const std::string results = text_.Number(results_);
      text_.Open(absl::StrCat("for (long column = 0; column < ", results, "; column += ", kColumns, ") {"));
      text_.Line(absl::StrCat("const long left = ", results, " - column;"));
      text_.Line(
          absl::StrCat("const int width = left < ", kColumns, " ? (int)left : ", kColumns, ", t = threadIdx.x;"));
      text_.Line("KERNEL_share<1>(arguments, block, column + t % width, t, width);");
      text_.Close("}");
    } else {
      text_.Line(absl::StrCat("const long share = block % ", body_.shares, ", r = block / ", body_.shares, ";"));
      if (!loops_.inner.empty()) {
        text_.Line(absl::StrCat("const bool wide = ", access_.Condition(/*is_flat=*/false), ";"));
        text_.Line(
            absl::StrCat("if (wide) return KERNEL_share<", access_.width(), ">(arguments, share, r, threadIdx.x);"));
      }
      text_.Line("KERNEL_share<1>(arguments, share, r, threadIdx.x);");
    }
    CloseFunction(&text_);
  }

  bool IsVector(int number) const {
    const Expression& e = body_.expressions[number];
    return e.kind == Expression::Kind::kLoad && body_.uses_inner(number) && access_.IsContiguous(e.address);
  }

  void Declare(int address) { text_.Line(absl::StrCat(MemoryType(text_.TypeAt(address)), " m", address, "[V];")); }

  std::string StoredText(const Store& store) {
    return StoreText(text_.TypeAt(store.address), text_.name(store.expression));
  }

  const bool has_columns_;
  const Body& body_;
  const Loops loops_;
  KernelText text_;
  VectorAccess access_;
  Monomial results_, length_;
  std::vector<Accumulator> folds_;
};

}  // namespace

WrittenKernel EmitShares(const ir::Graph& graph, Group::Shape shape, const Body& body) {
  return ShareEmitter(graph, shape, body).Emit();
}

}  // namespace torch_lazy::codegen::cuda
