// SPDX-License-Identifier: Apache-2.0
// A row is walked once per stage (codegen/kernels/row_stages.h) by a group of threads: a warp or a block.
//
// There are two functions for that. In a row that fits, what several stages need stays in
// registers, so that memory is read once. One of any length is read and computed again in each
// stage; where rows are long, with vectors between the first and the last aligned place.
//
// A group that does a share's rows in registers does some at once: all are read before the first
// is written, and they wait for the group's threads together.
#include <algorithm>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/one_hot.h"
#include "codegen/cuda/row_dispatch.h"
#include "codegen/cuda/row_function_parts.h"
#include "codegen/cuda/row_invariants.h"
#include "codegen/cuda/row_stage_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

class RowEmitter {
 public:
  RowEmitter(const ir::Graph& graph, const Body& body, const CompileOptions& options)
      : graph_(graph),
        body_(body),
        loops_(MakeLoops(body)),
        rows_(MakeRowStages(graph, body, Keep::kLoads)),
        text_(graph, body, Target::kCuda),
        access_(body, loops_.inner.empty() ? nullptr : &loops_.inner.back(), body.inner, &text_),
        size_(RowTilingOf(graph, body, loops_, rows_, access_, options)),
        is_wide_(!loops_.inner.empty() && access_.HoldsForSeenSizes(options)),
        exact_(ExactRows(size_, loops_, is_wide_ ? &access_ : nullptr, Length(), options)) {}

  WrittenKernel Emit() {
    if (size_.items > 0) EmitFunction(/*is_kept=*/true);
    rows_ = MakeRowStages(graph_, body_, Keep::kNothing);
    EmitFunction(/*is_kept=*/false);
    EmitRowDispatch({size_, body_.has_shares(), access_.width(), is_wide_, Length(),
                     is_wide_ && size_.items > 0 ? access_.Condition(/*is_flat=*/false) : "", exact_},
                    &text_);
    const ir::Dims range = body_.has_shares() ? ir::Dims{ir::Extent::Constant(body_.shares)} : RangeOf(loops_);
    WrittenKernel written =
        Finish(text_, "rows", range, block_threads(), body_.has_shares() ? 1 : size_.rows_per_block * size_.turns,
               size_.blocks_at_once, exact_);
    NoteRows(&written);
    return written;
  }

 private:
  // Longer rows than registers hold are walked number by number, where those seen first were held; of much shorter ones
  // most of a block's threads have nothing.
  void NoteRows(WrittenKernel* written) const {
    constexpr int64_t kPart = 16;
    const bool is_kept = size_.items > 0, is_block = size_.threads > 32 && !body_.has_shares();
    if (!is_kept && !is_block) return;
    const int64_t kept = int64_t{size_.threads} * access_.width() * std::max(size_.items, 1);
    written->kernel.longest_row = is_kept ? kept : std::numeric_limits<int64_t>::max();
    written->kernel.shortest_row = is_block ? kept / kPart : 0;
    Instance& instance = written->instance;
    for (const Loop& loop : loops_.inner) instance.row = instance.row * loop.extent;
    instance.elements = instance.row;
    for (const Loop& loop : loops_.outer) instance.elements = instance.elements * loop.extent;
  }

  int block_threads() const { return size_.threads * size_.rows_per_block; }

  // A share's rows are dealt to groups where these keep them in registers.
  RowThreads ThreadsOf(bool is_kept) const {
    const bool is_whole = body_.has_shares() && !is_kept;
    return {is_kept, is_whole ? block_threads() : size_.threads, block_threads(), is_kept ? size_.rows_at_once : 1,
            is_kept && exact_.extent >= 0};
  }

  void EmitFunction(bool is_kept) {
    const RowThreads threads = ThreadsOf(is_kept);
    for (size_t e = 0; e < body_.expressions.size(); ++e) text_.Forget(static_cast<int>(e));
    OpenFunction(!is_kept               ? ""
                 : threads.may_be_exact ? "template <int V, int kItems, bool kExact> "
                                        : "template <int V, int kItems> ",
                 is_kept ? "KERNEL_kept" : "KERNEL_walked",
                 body_.has_shares()    ? "const long share, const int thread"
                 : size_.takes_turns() ? "const long first_r, const int t"
                                       : "const long r, const int t",
                 &text_);
    const std::string exact = threads.may_be_exact ? absl::StrCat("kExact ? ", exact_.length, " : ") : "";
    text_.Line(absl::StrCat("const long length = ", exact, Length(), ";"));
    ColumnSums column_sums(body_, loops_, threads, &text_);
    ColumnOperands column_operands(body_, loops_, threads, KeptColumns(threads), &text_);
    ShareRowLoads row_loads(body_, loops_, threads, &column_sums, OwnVectors(), size_.fetches, &text_);
    RowPipeline pipeline(body_, loops_, threads, access_.width(), size_.turns,
                         size_.takes_turns() && is_kept ? OwnVectors()[0] : std::vector<int>(), &text_);
    const RowFunctionParts function{body_,       loops_,          size_,     threads,  access_,
                                    column_sums, column_operands, row_loads, pipeline, text_};
    if (body_.has_shares()) column_sums.Begin();
    if (size_.takes_turns()) pipeline.Begin();
    column_operands.Read(body_.has_shares() ? "first" : size_.takes_turns() ? "first_r" : "r");
    if (threads.rows > 1) row_loads.Begin();
    if (body_.has_shares()) column_sums.Open();
    if (size_.takes_turns()) pipeline.Open();
    if (threads.rows > 1) row_loads.BeginStep();
    if (threads.rows == 1) PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
    if (function.walks_vectors()) access_.PlaceVectorsInRow("length");
    const int num_folds = EmitStages(function);
    if (size_.takes_turns()) pipeline.Close(num_folds);
    if (body_.has_shares()) column_sums.Close(FoldsRows());
    CloseFunction(&text_);
  }

  // Returns how many of them have folds, for which the group's threads meet.
  int EmitStages(const RowFunctionParts& function) {
    RowInvariants numbers(function);
    RowStageText walk(function);
    int num_folds = 0;
    for (size_t k = 0; k < rows_.stages.size(); ++k) {
      const RowStage& stage = rows_.stages[k];
      numbers.Define(static_cast<int>(k));
      if (!stage.reductions.empty() || !stage.stores.empty()) {
        std::vector<Accumulator> folds;
        for (const int reduction : EmitOneHots(stage.reductions, function.threads))
          folds.emplace_back(reduction, &text_, function.threads.rows,
                             /*is_one_block=*/function.threads.is_kept);
        for (Accumulator& fold : folds) fold.Declare();
        walk.Emit(static_cast<int>(k), stage, folds);
        num_folds += folds.empty() ? 0 : 1;
        CombineGroup(folds, function.threads.per_row, &text_, function.threads.rows);
      }
      if (k == 0 && size_.takes_turns()) function.pipeline.FetchNext(num_folds > 0);
    }
    return num_folds;
  }

  bool FoldsRows() const {
    return std::any_of(rows_.stages.begin(), rows_.stages.end(),
                       [](const RowStage& stage) { return !stage.reductions.empty(); });
  }

  std::string Length() {
    Monomial length;
    for (const Loop& loop : loops_.inner) length = length * loop.extent;
    return text_.Number(length);
  }

  // What can be known of the row before its walk; gives what is left to fold. Where it is read from
  // the row, which may be written in place, the others must make the block wait.
  std::vector<int> EmitOneHots(const std::vector<int>& reductions, const RowThreads& threads) {
    std::vector<int> left;
    std::vector<OneHot> one_hots;
    for (const int reduction : reductions) {
      const bool has_way = threads.rows == 1 && !body_.has_shares() && loops_.inner.size() == 1;
      const std::optional<OneHot> found = has_way ? OneHotOf(text_, reduction, loops_.inner[0]) : std::nullopt;
      if (found.has_value())
        one_hots.push_back(*found);
      else
        left.push_back(reduction);
    }
    const bool waits = !left.empty() && !threads.is_warp();
    for (const OneHot& one_hot : one_hots) {
      if (one_hot.load >= 0 && !waits)
        left.push_back(one_hot.sum);
      else
        DefineOneHot(one_hot, loops_.inner[0], &text_);
    }
    return left;
  }

  bool IsOfAllRows(int number) const { return access_.IsOfAllRows(body_.expressions[number].address); }

  // The loads of whole vectors, stage by stage.
  std::vector<std::vector<int>> VectorsByStage() const {
    std::vector<std::vector<int>> found;
    absl::flat_hash_set<int> kept;
    for (const RowStage& stage : rows_.stages) {
      std::vector<int>& reads = found.emplace_back();
      std::copy_if(stage.numbers.begin(), stage.numbers.end(), std::back_inserter(reads),
                   [&](int number) { return access_.LoadsVector(number) && !kept.contains(number); });
      kept.insert(stage.kept.begin(), stage.kept.end());
    }
    return found;
  }

  // Those of a row's own.
  std::vector<std::vector<int>> OwnVectors() const {
    std::vector<std::vector<int>> found = VectorsByStage();
    for (std::vector<int>& loads : found)
      loads.erase(std::remove_if(loads.begin(), loads.end(), [&](int load) { return IsOfAllRows(load); }), loads.end());
    return found;
  }

  // Those of all rows that a thread keeps, if it does several.
  std::vector<int> KeptColumns(const RowThreads& threads) const {
    std::vector<int> found;
    if (threads.rows == 1 && !(threads.is_kept && size_.keeps_columns)) return found;
    for (const std::vector<int>& loads : VectorsByStage())
      std::copy_if(loads.begin(), loads.end(), std::back_inserter(found), [&](int load) { return IsOfAllRows(load); });
    return found;
  }

  const ir::Graph& graph_;
  const Body& body_;
  const Loops loops_;
  RowStages rows_;
  KernelText text_;
  VectorAccess access_;
  const RowTiling size_;
  const bool is_wide_;
  const Kernel::Exact exact_;
};

}  // namespace

WrittenKernel EmitRows(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return RowEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
