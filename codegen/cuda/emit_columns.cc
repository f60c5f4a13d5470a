// SPDX-License-Identifier: Apache-2.0
// A block does 32 columns, which lie side by side: each warp walks down some of their rows, and the
// warps' accumulators are combined in shared memory.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/places.h"
#include "codegen/op_text.h"
#include "codegen/row_stages.h"
#include "codegen/typical.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kColumns = 32;
constexpr double kLongColumn = 256;
constexpr int64_t kMostSharedBytes = 48 << 10;

class ColumnEmitter {
 public:
  ColumnEmitter(const ir::Graph& graph, const Body& body, const CompileOptions& options)
      : body_(body),
        loops_(MakeLoops(body)),
        stages_(MakeRowStages(graph, body, Keep::kNothing)),
        text_(graph, body, Target::kCuda) {
    double rows = 1;
    for (const Loop& loop : loops_.inner) {
      rows *= TypicalSize(loop.extent, options);
      length_ = length_ * loop.extent;
    }
    warps_ = rows >= kLongColumn ? 32 : 8;
    int64_t bytes = 0;  // of a thread, in shared memory
    for (const RowStage& stage : stages_.stages)
      bytes += 2 * sizeof(double) * stage.reductions.size();
    while (kColumns * warps_ * bytes > kMostSharedBytes && warps_ > 1) warps_ /= 2;
  }

  WrittenKernel Emit() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    text_.Line(absl::StrCat("const int x = threadIdx.x % ", kColumns, ", y = threadIdx.x / ",
                            kColumns, ";"));
    text_.Line(absl::StrCat("const long column = block * ", kColumns, " + x;"));
    text_.Line("const bool in = column < arguments.iterations;");
    text_.Line("const long c = in ? column : arguments.iterations - 1;");
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "c", &text_), "c", &text_);
    for (size_t stage = 0; stage < stages_.stages.size(); ++stage) {
      DefineColumnNumbers(static_cast<int>(stage));
      EmitStage(stages_.stages[stage]);
    }
    StoreColumnNumbers();
    CloseFunction(&text_);
    return Finish(text_, "columns", RangeOf(loops_), kColumns * warps_, kColumns);
  }

 private:
  // Columns beyond the last compute what the last does, and store nothing.
  void DefineColumnNumbers(int stage) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      const int number = static_cast<int>(e);
      if (expression.depth != stage || body_.uses_inner(number) || text_.defined(number)) continue;
      text_.Define(number, expression.address < 0 ? "" : PlaceText(expression.address, {}, &text_));
    }
  }

  void EmitStage(const RowStage& stage) {
    if (stage.reductions.empty() && stage.stores.empty()) return;
    std::vector<Accumulator> folds;
    for (const int reduction : stage.reductions) folds.emplace_back(reduction, &text_);
    for (Accumulator& fold : folds) fold.Declare();
    const int block = kBlockSteps * warps_;
    const std::string length = text_.Number(length_);
    text_.Open(
        absl::StrCat("for (long first_j = y; first_j < ", length, "; first_j += ", block, ") {"));
    text_.Line(absl::StrCat("const long end_j = ", length, " - first_j < ", block, " ? ", length,
                            " : first_j + ", block, ";"));
    for (Accumulator& fold : folds) fold.BeginBlock();
    text_.Line("#pragma unroll 4");
    text_.Open(absl::StrCat("for (long j = first_j; j < end_j; j += ", warps_, ") {"));
    Step(stage, folds);
    text_.Close("}");
    for (Accumulator& fold : folds) fold.EndBlock();
    text_.Close("}");
    for (const int number : stage.numbers) text_.Forget(number);
    for (Accumulator& fold : folds) Combine(&fold);
  }

  void Step(const RowStage& stage, std::vector<Accumulator>& folds) {
    const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (const int number : stage.numbers) {
      const int address = body_.expressions[number].address;
      text_.Define(number, address < 0 ? "" : PlaceText(address, along, &text_));
    }
    for (Accumulator& fold : folds) fold.Step("j", "");
    for (const Store& store : stage.stores) WriteStore(store, "in", along);
  }

  void WriteStore(const Store& store, const std::string& condition,
                  absl::Span<const KernelText::Along> along) {
    const ir::DType dtype = text_.SlotType(body_.addresses[store.address].slot);
    text_.Line(absl::StrCat("if (", condition, ") ", PlaceText(store.address, along, &text_), " = ",
                            StoreText(dtype, text_.name(store.expression)), ";"));
  }

  // The warps' accumulators of a column become one number, which all its threads get. Halves of the
  // warps fold the other half's in.
  void Combine(Accumulator* fold) {
    fold->DeclareShared(absl::StrCat(kColumns * warps_));
    text_.Open(absl::StrCat("for (int half = ", warps_ / 2, "; half > 0; half /= 2) {"));
    fold->Put("threadIdx.x");
    text_.Line("__syncthreads();");
    text_.Open("if (y < half) {");
    fold->FoldFrom(absl::StrCat("threadIdx.x + half * ", kColumns));
    text_.Close("}");
    text_.Line("__syncthreads();");
    text_.Close("}");
    text_.Open("if (y == 0) {");
    fold->Put("x");
    text_.Close("}");
    text_.Line("__syncthreads();");
    fold->Take("x");
    fold->DefineResult();
  }

  // After all stages. A column's number may lie where the threads have read one.
  void StoreColumnNumbers() {
    text_.Line("__syncthreads();");
    for (const Store& store : body_.stores) {
      if (!StoresAlongRow(body_, store)) WriteStore(store, "in && y == 0", {});
    }
  }

  const Body& body_;
  const Loops loops_;
  const RowStages stages_;
  KernelText text_;
  Monomial length_;  // of a column
  int warps_ = 8;
};

}  // namespace

WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return ColumnEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
