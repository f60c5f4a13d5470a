// SPDX-License-Identifier: Apache-2.0
// A block does some columns, which lie side by side: groups of threads, one a column, walk down some of
// their rows each, and the groups' accumulators are combined in shared memory. Where there are very many
// columns, a thread does V neighbours, `row` of them; where there are few, blocks are narrow, so that
// more multiprocessors read.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/kernels/op_text.h"
#include "codegen/kernels/row_stages.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kMostColumns = 32, kFewestColumns = 8;  // of a block
constexpr int kNarrowBytes = 64;  // of a narrow block's columns, side by side: two sectors of memory
constexpr int kNeighbours = 4;
constexpr double kManyBlocks = 128;  // enough for a large GPU
constexpr double kLongColumn = 256;
constexpr int kWarp = 32;
// Of a thread's accumulator, at most, with its part of the results. One group alone needs none.
constexpr int64_t kBytes = 16, kBytesWithIndex = 24;

class ColumnEmitter {
 public:
  ColumnEmitter(const ir::Graph& graph, const Body& body, const CompileOptions& options)
      : body_(body),
        loops_(MakeLoops(body)),
        stages_(MakeRowStages(graph, body, Keep::kNothing)),
        text_(graph, body, Target::kCuda),
        access_(body, innermost(), loops_.outer.empty() ? 0 : innermost()->bits, &text_),
        width_(WidthOf(options)),
        columns_(ColumnsOf(options)) {
    double rows = 1;
    for (const Loop& loop : loops_.inner) {
      rows *= SeenSize(loop.extent, options.seen_extents);
      length_ = length_ * loop.extent;
    }
    groups_ = rows >= kLongColumn ? 32 : 8;
    int64_t bytes = 0;  // of a thread, in shared memory
    for (const RowStage& stage : stages_.stages) {
      for (const int reduction : stage.reductions) {
        const bool has_index = HasIndex(graph.node(body.expressions[reduction].node));
        bytes += (has_index ? kBytesWithIndex : kBytes) * (width_ > 1 ? width_ + 1 : 1);
      }
    }
    while (columns_ * groups_ * bytes > kSharedBytes && groups_ > 1 && columns_ * groups_ > kWarp) groups_ /= 2;
  }

  WrittenKernel Emit() {
    if (width_ == 1) {
      EmitColumnsOf("KERNEL_block", "const long block", absl::StrCat("block * ", columns_, " + x"), 1);
    } else {
      EmitColumnsOf("KERNEL_one", "const long first", "first + x", 1);
      EmitColumnsOf("KERNEL_wide", "const long first", absl::StrCat("first + x * ", width_), width_);
      EmitBlock();
    }
    return Finish(text_, "columns", RangeOf(loops_), columns_ * groups_, columns_ * width_);
  }

 private:
  const Loop* innermost() const { return loops_.outer.empty() ? nullptr : &loops_.outer.back(); }

  double SeenColumns(const CompileOptions& options) const {
    double columns = 1;
    for (const Loop& loop : loops_.outer) columns *= SeenSize(loop.extent, options.seen_extents);
    return columns;
  }

  int WidthOf(const CompileOptions& options) const {
    const bool stores_along = std::any_of(body_.stores.begin(), body_.stores.end(),
                                          [&](const Store& store) { return StoresAlongRow(body_, store); });
    const bool is_wide = SeenColumns(options) >= kManyBlocks * kMostColumns * kNeighbours && !stores_along &&
                         access_.HoldsForSeenSizes(options);
    return is_wide ? kNeighbours : 1;
  }

  int ColumnsOf(const CompileOptions& options) const {
    if (SeenColumns(options) >= kManyBlocks * kMostColumns) return kMostColumns;
    int columns = kFewestColumns;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.kind != Expression::Kind::kLoad || !body_.uses_inner(static_cast<int>(e))) continue;
      const auto bytes = static_cast<int>(ir::SizeBytes(text_.TypeAt(expression.address)));
      columns = std::clamp(kNarrowBytes / bytes, columns, kMostColumns);
    }
    return columns;
  }

  // V columns of each thread.
  void EmitColumnsOf(const char* name, const char* parameter, const std::string& column, int v) {
    v_ = v;
    for (size_t e = 0; e < body_.expressions.size(); ++e) text_.Forget(static_cast<int>(e));
    OpenFunction("", name, parameter, &text_);
    text_.Line(absl::StrCat("const int t = threadIdx.x, x = t % ", columns_, ", y = t / ", columns_, ";"));
    text_.Line(absl::StrCat("const long column = ", column, ";"));
    text_.Line("const bool in = column < arguments.iterations;");
    text_.Line(absl::StrCat("const long c = in ? column : arguments.iterations - ", v, ";"));
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "c", &text_), "c", &text_);
    for (size_t stage = 0; stage < stages_.stages.size(); ++stage) {
      const bool is_last = stage + 1 == stages_.stages.size();
      if (is_last && !HasWalk(stages_.stages[stage])) LeaveColumnsToTheirFirst();
      DefineColumnNumbers(static_cast<int>(stage));
      EmitStage(stages_.stages[stage]);
      if (is_last && HasWalk(stages_.stages[stage])) LeaveColumnsToTheirFirst();
    }
    StoreColumnNumbers();
    CloseFunction(&text_);
  }

  void EmitBlock() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    text_.Line(absl::StrCat("const long first = block * ", columns_ * width_, ";"));
    text_.Line(absl::StrCat("const bool wide = ", access_.Condition(loops_.outer.size() == 1, width_), ";"));
    text_.Line("if (wide) return KERNEL_wide(arguments, first);");
    text_.Line("#pragma unroll 1");
    text_.Line(absl::StrCat("for (int part = 0; part < ", width_, "; ++part) KERNEL_one(arguments, first + part * ",
                            columns_, ");"));
    CloseFunction(&text_);
  }

  // Which of V neighbours.
  std::vector<KernelText::Along> Neighbour() const {
    if (v_ == 1) return {};
    return {{innermost(), "row"}};
  }
  std::vector<KernelText::Along> WithNeighbour(std::vector<KernelText::Along> along) const {
    for (const KernelText::Along& neighbour : Neighbour()) along.push_back(neighbour);
    return along;
  }

  static bool HasWalk(const RowStage& stage) { return !stage.reductions.empty() || !stage.stores.empty(); }

  // A column's last numbers are one thread's. They may lie where all threads have read one.
  void LeaveColumnsToTheirFirst() {
    text_.Line("__syncthreads();");
    text_.Line("if (y > 0) return;");
  }

  // Columns beyond the last compute what the last does, and store nothing.
  void DefineColumnNumbers(int stage) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      const int number = static_cast<int>(e);
      if (expression.depth != stage || body_.uses_inner(number) || text_.defined(number)) continue;
      if (v_ > 1) text_.Line(absl::StrCat(ComputeType(expression.dtype), " y", number, "[", v_, "];"));
      ForEachRow(v_, &text_, [&] {
        text_.Define(number, expression.address < 0 ? "" : PlaceText(expression.address, Neighbour(), &text_));
        if (v_ > 1) text_.Line(absl::StrCat("y", number, "[row] = ", text_.name(number), ";"));
      });
      if (v_ > 1) text_.SetName(number, absl::StrCat("y", number, "[row]"));
    }
  }

  void EmitStage(const RowStage& stage) {
    if (!HasWalk(stage)) return;
    std::vector<Accumulator> folds;
    for (const int reduction : stage.reductions) folds.emplace_back(reduction, &text_, v_);
    for (Accumulator& fold : folds) fold.Declare();
    const int block = kBlockSteps * groups_;
    const std::string length = text_.Number(length_);
    text_.Open(absl::StrCat("for (long first_j = y; first_j < ", length, "; first_j += ", block, ") {"));
    text_.Line(absl::StrCat("const long end_j = ", length, " - first_j < ", block, " ? ", length, " : first_j + ",
                            block, ";"));
    ForEach(folds, [](Accumulator& fold) { fold.BeginBlock(); });
    text_.Line(absl::StrCat("#pragma unroll ", columns_ < kMostColumns ? 8 : 4));  // narrow blocks have registers
    text_.Open(absl::StrCat("for (long j = first_j; j < end_j; j += ", groups_, ") {"));
    Step(stage, folds);
    text_.Close("}");
    ForEach(folds, [](Accumulator& fold) { fold.EndBlock(); });
    text_.Close("}");
    for (const int number : stage.numbers) text_.Forget(number);
    Combine(folds);
  }

  // A group's numbers in shared memory: those that lanes side by side take lie in different banks.
  int Pitch() const { return columns_ + std::max(1, columns_ / groups_); }

  template <typename Function>
  void ForEach(std::vector<Accumulator>& folds, Function write) {
    if (folds.empty()) return;
    ForEachRow(v_, &text_, [&] { std::for_each(folds.begin(), folds.end(), write); });
  }

  void Step(const RowStage& stage, std::vector<Accumulator>& folds) {
    const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (const int number : stage.numbers) {
      const int address = body_.expressions[number].address;
      if (!IsVector(number)) continue;
      text_.Line(absl::StrCat(MemoryType(text_.TypeAt(address)), " m", address, "[", v_, "];"));
      text_.Line(absl::StrCat("lazy_read(m", address, ", ", PointerText(address, along, &text_), ");"));
    }
    ForEachRow(v_, &text_, [&] {
      for (const int number : stage.numbers) {
        const int address = body_.expressions[number].address;
        text_.Define(number, address < 0        ? ""
                             : IsVector(number) ? absl::StrCat("m", address, "[row]")
                                                : PlaceText(address, WithNeighbour(along), &text_));
      }
      for (Accumulator& fold : folds) fold.Step("j", "");
      for (const Store& store : stage.stores) WriteStore(store, "in", along);
    });
  }

  bool IsVector(int number) const {
    const Expression& e = body_.expressions[number];
    return v_ > 1 && e.kind == Expression::Kind::kLoad && access_.IsContiguous(e.address) &&
           !DependsOnData(body_, body_.addresses[e.address]);
  }

  void WriteStore(const Store& store, const std::string& condition, absl::Span<const KernelText::Along> along) {
    const ir::DType dtype = text_.TypeAt(store.address);
    text_.Line(absl::StrCat("if (", condition, ") ", PlaceText(store.address, along, &text_), " = ",
                            StoreText(dtype, text_.name(store.expression)), ";"));
  }

  // The groups' accumulators of a column become one number, which all its threads get: those of a column go to lanes
  // side by side, of which half fold the other half's in.
  void Combine(std::vector<Accumulator>& folds) {
    if (groups_ == 1) std::for_each(folds.begin(), folds.end(), [](Accumulator& fold) { fold.DefineResult(); });
    if (folds.empty() || groups_ == 1) return;
    const int size = groups_ * Pitch() + columns_;  // each group's, and the results
    const std::string own = v_ > 1 ? absl::StrCat("row * ", size, " + ") : "";
    for (Accumulator& fold : folds) fold.DeclareShared(absl::StrCat(size * v_));
    ForEach(folds, [&](Accumulator& fold) { fold.Put(absl::StrCat(own, "y * ", Pitch(), " + x")); });
    text_.Line("__syncthreads();");
    const std::string lane = absl::StrCat("t % ", groups_), column = absl::StrCat("t / ", groups_);
    ForEach(folds, [&](Accumulator& fold) { fold.Take(absl::StrCat(own, lane, " * ", Pitch(), " + ", column)); });
    CombineLanes(folds, groups_, &text_, v_);
    const std::string results = absl::StrCat(own, groups_ * Pitch(), " + ");
    text_.Open(absl::StrCat("if (", lane, " == 0) {"));
    ForEach(folds, [&](Accumulator& fold) { fold.Put(results + column); });
    text_.Close("}");
    text_.Line("__syncthreads();");
    ForEach(folds, [&](Accumulator& fold) { fold.Take(results + "x"); });
    for (Accumulator& fold : folds) fold.DefineResult();
  }

  // After all stages, by a column's first thread.
  void StoreColumnNumbers() {
    ForEachRow(v_, &text_, [&] {
      for (const Store& store : body_.stores) {
        if (!StoresAlongRow(body_, store)) WriteStore(store, "in", Neighbour());
      }
    });
  }

  const Body& body_;
  const Loops loops_;
  const RowStages stages_;
  KernelText text_;
  VectorAccess access_;
  const int width_;    // V of most threads
  const int columns_;  // of a block, but for V
  int v_ = 1;          // in the function being written
  Monomial length_;    // of a column
  int groups_ = 8;     // that share a column's rows
};

}  // namespace

WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return ColumnEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
