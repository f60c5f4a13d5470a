// SPDX-License-Identifier: Apache-2.0
// A row is walked once per stage (codegen/row_stages.h) by a group of threads: a warp or a block.
//
// There are two functions for that. In a row that fits, what several stages need stays in
// registers, so that memory is read once. One of any length is read and computed again in each
// stage; where rows are long, with vectors between the first and the last aligned place.
//
// A group that does a share's rows in registers does some at once: all are read before the first
// is written, and they wait for the group's threads together.
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/draws.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/hits.h"
#include "codegen/cuda/one_hot.h"
#include "codegen/cuda/places.h"
#include "codegen/cuda/row_blocks.h"
#include "codegen/cuda/row_reads.h"
#include "codegen/cuda/row_shares.h"
#include "codegen/cuda/row_size.h"
#include "codegen/cuda/row_turns.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/cuda/vector_store.h"
#include "codegen/op_text.h"
#include "codegen/row_stages.h"

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
        size_(RowSizeOf(body, loops_, rows_, access_.width(), options)),
        is_wide_(!loops_.inner.empty() && access_.IsTypical(options)),
        exact_(ExactRows(size_, loops_, is_wide_ ? &access_ : nullptr, Length(), options)) {}

  WrittenKernel Emit() {
    if (size_.items > 0) EmitFunction(/*is_kept=*/true);
    rows_ = MakeRowStages(graph_, body_, Keep::kNothing);
    EmitFunction(/*is_kept=*/false);
    EmitRowBlocks({size_, has_shares(), access_.width(), is_wide_, Length(),
                   is_wide_ ? access_.Condition(/*is_flat=*/false) : "", exact_},
                  &text_);
    const ir::Dims range =
        has_shares() ? ir::Dims{ir::Extent::Constant(body_.shares)} : RangeOf(loops_);
    return Finish(text_, "rows", range, block_threads(),
                  has_shares() ? 1 : size_.rows_per_block * size_.turns, size_.blocks_at_once,
                  exact_);
  }

 private:
  bool has_shares() const { return body_.shares > 0; }
  bool takes_turns() const { return size_.turns > 1; }
  bool walks_vectors() const {
    return !way_.is_kept && size_.items == 0 && !has_shares() && loops_.inner.size() == 1 &&
           access_.HasVectorsInRow();
  }
  int block_threads() const { return size_.threads * size_.rows_per_block; }

  // A share's rows are dealt to groups where these keep them in registers.
  RowWay WayOf(bool is_kept) const {
    const bool is_whole = has_shares() && !is_kept;
    return {is_kept, is_whole ? block_threads() : size_.threads, block_threads(),
            is_kept ? size_.rows_at_once : 1, is_kept && exact_.extent >= 0};
  }

  void EmitFunction(bool is_kept) {
    way_ = WayOf(is_kept);
    RowShares shares(body_, loops_, way_, &text_);
    shares_ = &shares;
    available_.clear();
    for (size_t e = 0; e < body_.expressions.size(); ++e) text_.Forget(static_cast<int>(e));
    OpenFunction(!is_kept            ? ""
                 : way_.may_be_exact ? "template <int V, int kItems, bool kExact> "
                                     : "template <int V, int kItems> ",
                 is_kept ? "KERNEL_kept" : "KERNEL_walked",
                 has_shares()    ? "const long share, const int thread"
                 : takes_turns() ? "const long first_r, const int t"
                                 : "const long r, const int t",
                 &text_);
    const std::string exact =
        way_.may_be_exact ? absl::StrCat("kExact ? ", exact_.length, " : ") : "";
    text_.Line(absl::StrCat("const long length = ", exact, Length(), ";"));
    num_folds_ = 0;
    if (has_shares()) shares.Begin();
    RowReads reads(body_, loops_, way_, access_, &shares, VectorsByStage(), size_.fetches, &text_);
    reads_ = &reads;
    if (way_.rows > 1) reads.Begin();
    RowTurns turns(body_, loops_, way_, size_.turns, is_kept ? FetchedInTurns() : std::vector<int>(), &text_);
    turns_ = &turns;
    if (has_shares()) shares.Open();
    if (takes_turns()) turns.Open();
    if (way_.rows > 1) reads.BeginStep();
    if (way_.rows == 1) PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
    if (walks_vectors()) access_.PlaceVectorsInRow("length");
    for (size_t stage = 0; stage < rows_.stages.size(); ++stage) {
      way_.rows == 1 ? DefineRowNumbers(static_cast<int>(stage))
                     : DefineNumbersOfRows(static_cast<int>(stage));
      EmitStage(static_cast<int>(stage));
      if (stage == 0 && takes_turns()) turns.FetchNext();
    }
    if (takes_turns()) turns.Close(num_folds_);
    if (has_shares()) shares.Close(FoldsRows());
    CloseFunction(&text_);
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

  // What is the same for the whole row and known before the stage's walk; one thread stores it.
  void DefineRowNumbers(int stage) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      const int number = static_cast<int>(e);
      if (expression.depth != stage || body_.uses_inner(number) || text_.defined(number)) continue;
      text_.Define(number, expression.address < 0 ? "" : PlaceText(expression.address, {}, &text_));
    }
    StoreRowNumbers(stage);
  }

  void StoreRowNumbers(int stage) {
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth != stage || StoresAlongRow(body_, store))
        continue;
      if (MayReplaceRowNumber(store))
        text_.Line(way_.is_warp() ? "__syncwarp();" : "__syncthreads();");
      text_.Line(absl::StrCat(way_.rows > 1 ? "if (is_row && t == 0) " : "if (t == 0) ",
                              PlaceText(store.address, {}, &text_), " = ", StoredText(store), ";"));
    }
  }

  // The same for all rows done at once, whose numbers are arrays.
  void DefineNumbersOfRows(int stage) {
    std::vector<int> numbers;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const int number = static_cast<int>(e);
      if (body_.expressions[e].depth == stage && !body_.uses_inner(number) && !text_.defined(number))
        numbers.push_back(number);
    }
    for (const int number : numbers)
      text_.Line(absl::StrCat(ComputeType(body_.expressions[number].dtype), " y", number, "[",
                              way_.rows, "];"));
    const bool stores = std::any_of(body_.stores.begin(), body_.stores.end(), [&](const Store& s) {
      return body_.expressions[s.expression].depth == stage && !StoresAlongRow(body_, s);
    });
    if (numbers.empty() && !stores) return;
    ForEachPlacedRow([&] {
      for (const int number : numbers) {
        const Expression& e = body_.expressions[number];
        std::string place = e.address < 0 ? "" : PlaceText(e.address, {}, &text_);
        if (e.kind == Expression::Kind::kLoad && DependsOnData(body_, body_.addresses[e.address]))
          place = Guarded("is_row", place, e.dtype);
        text_.Define(number, place);
        text_.Line(absl::StrCat("y", number, "[row] = ", text_.name(number), ";"));
      }
      StoreRowNumbers(stage);
    });
    for (const int number : numbers) text_.SetName(number, absl::StrCat("y", number, "[row]"));
  }

  template <typename Function>
  void ForEachPlacedRow(Function write) {
    ForEachRow(way_.rows, &text_, [&] {
      if (way_.rows > 1) {
        shares_->PlaceRow();
        PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
      }
      write();
    });
  }

  // A number may be stored where one is read that every thread of the group needs.
  bool MayReplaceRowNumber(const Store& store) const {
    const Address& place = body_.addresses[store.address];
    return std::any_of(body_.expressions.begin(), body_.expressions.end(),
                       [&](const Expression& e) {
                         return e.kind == Expression::Kind::kLoad &&
                                body_.addresses[e.address].index == place.index;
                       });
  }

  std::string StoredText(const Store& store) {
    return StoreText(text_.TypeAt(store.address),
                     text_.name(store.expression));
  }

  void EmitStage(int number) {
    const RowStage& stage = rows_.stages[static_cast<size_t>(number)];
    if (stage.reductions.empty() && stage.stores.empty()) return;
    std::vector<Accumulator> folds;
    for (const int reduction : EmitOneHots(stage.reductions))
      folds.emplace_back(reduction, &text_, way_.rows, /*is_one_block=*/way_.is_kept);
    for (Accumulator& fold : folds) fold.Declare();
    if (way_.is_kept) {
      for (const int kept : stage.kept) {
        text_.Line(absl::StrCat(ComputeType(body_.expressions[kept].dtype), " x", kept, OfRows(),
                                "[kItems][V];"));
      }
      if (way_.rows > 1) reads_->Read(number);
      ForEachPlacedRow([&] {
        for (Accumulator& fold : folds) fold.BeginBlock();
        EmitKeptWalk(way_, &text_, [&] { EmitVector(stage, folds); });
      });
    } else {
      EmitWalk(stage, folds);
    }
    for (const int number : stage.numbers) text_.Forget(number);
    available_.insert(stage.kept.begin(), stage.kept.end());
    num_folds_ += folds.empty() ? 0 : 1;
    CombineGroup(folds, way_.threads, &text_, way_.rows);
  }

  // What can be known of the row before its walk; gives what is left to fold. Where it is read from
  // the row, which may be written in place, the others must make the block wait.
  std::vector<int> EmitOneHots(const std::vector<int>& reductions) {
    std::vector<int> left;
    std::vector<OneHot> one_hots;
    for (const int reduction : reductions) {
      const bool has_way = way_.rows == 1 && !has_shares() && loops_.inner.size() == 1;
      const std::optional<OneHot> found = has_way ? OneHotOf(text_, reduction, loops_.inner[0]) : std::nullopt;
      if (found.has_value()) one_hots.push_back(*found);
      else left.push_back(reduction);
    }
    const bool waits = !left.empty() && !way_.is_warp();
    for (const OneHot& one_hot : one_hots) {
      if (one_hot.load >= 0 && !waits) left.push_back(one_hot.sum);
      else DefineOneHot(one_hot, loops_.inner[0], &text_);
    }
    return left;
  }

  std::string OfRows() const { return way_.rows > 1 ? absl::StrCat("[", way_.rows, "]") : ""; }

  // The loads of whole vectors, stage by stage.
  std::vector<std::vector<int>> VectorsByStage() const {
    std::vector<std::vector<int>> found;
    absl::flat_hash_set<int> kept;
    for (const RowStage& stage : rows_.stages) {
      std::vector<int>& reads = found.emplace_back();
      std::copy_if(stage.numbers.begin(), stage.numbers.end(), std::back_inserter(reads),
                   [&](int number) { return IsLoadOfVector(number) && !kept.contains(number); });
      kept.insert(stage.kept.begin(), stage.kept.end());
    }
    return found;
  }

  // V elements from `j` on, `in` the row.
  void EmitVector(const RowStage& stage, std::vector<Accumulator>& folds) {
    is_vector_ = true;
    std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (const int number : stage.numbers) {
      if (!IsVector(number)) continue;
      const int address = body_.expressions[number].address;
      if (way_.rows > 1) {
        text_.Line(absl::StrCat("auto& m", address, " = ", reads_->Vector(number), ";"));
        continue;
      }
      Declare(address);
      const std::string place = takes_turns() && turns_->Fetches(number)
                                    ? absl::StrCat("(const ", TypeOf(address), "*)(", turns_->Place(number), ")")
                                    : PointerText(address, along, &text_);
      text_.Line(absl::StrCat("lazy_read(m", address, ", ", place, ");"));
    }
    for (const int number : stage.numbers) {
      if (IsDrawn(number)) DeclareDraws(number, along, &text_);
      if (IsHitOfRow(number)) DeclareHit(number, loops_.inner[0], along, &text_);
    }
    for (const Store& store : stage.stores) {
      if (!IsShareSum(body_, store)) DeclareStored(store, &text_);
    }
    const std::vector<KernelText::Along> at = along;
    if (!along.empty()) along.back().index = absl::StrCat("(", along.back().index, " + k)");
    text_.Line("#pragma unroll");
    text_.Open("for (int k = 0; k < V; ++k) {");
    Step(stage, folds, along);
    text_.Close("}");
    for (const Store& store : stage.stores) {
      if (!IsShareSum(body_, store)) Write(store, at, along);
    }
    is_vector_ = false;
  }

  void Write(const Store& store, absl::Span<const KernelText::Along> at,
             absl::Span<const KernelText::Along> along) {
    if (access_.IsContiguous(store.address)) {
      return WriteStored(store, "if (in) ", PointerText(store.address, at, &text_), &text_);
    }
    text_.Line("#pragma unroll");
    text_.Line(absl::StrCat("for (int k = 0; in && k < V; ++k) ",
                            PlaceText(store.address, along, &text_), " = ",
                            StoredElement(store, text_), ";"));
  }

  std::string TypeOf(int address) const { return MemoryType(text_.TypeAt(address)); }
  void Declare(int address) { text_.Line(absl::StrCat(TypeOf(address), " m", address, "[V];")); }

  // Those of the first walk that are the row's own.
  std::vector<int> FetchedInTurns() const {
    if (!takes_turns()) return {};
    std::vector<int> loads = VectorsByStage()[0];
    const auto is_of_all = [&](int number) { return access_.IsOfAllRows(body_.expressions[number].address); };
    loads.erase(std::remove_if(loads.begin(), loads.end(), is_of_all), loads.end());
    return loads;
  }

  bool IsLoadOfVector(int number) const {
    const Expression& e = body_.expressions[number];
    return e.kind == Expression::Kind::kLoad && access_.IsContiguous(e.address);
  }

  bool IsVector(int number) const {
    return is_vector_ && IsLoadOfVector(number) && !available_.contains(number);
  }

  bool IsDrawn(int number) const {
    return is_vector_ && !available_.contains(number) && loops_.inner.size() == 1 &&
           DrawsForNeighbours(text_, number, &loops_.inner[0]);
  }

  bool IsHitOfRow(int number) const {
    return is_vector_ && !available_.contains(number) && loops_.inner.size() == 1 &&
           IsHit(text_, number, &loops_.inner[0]);
  }

  void EmitWalk(const RowStage& stage, std::vector<Accumulator>& folds) {
    const bool has_vectors = walks_vectors();
    if (has_vectors) {
      OpenWalk("at", "vectors", kBlockSteps / access_.width(), 16 / access_.width(), folds);
      text_.Line("const long j = head + at * V;");
      text_.Line("const bool in = true;");
      EmitVector(stage, folds);
      CloseWalk(folds);
      for (const int number : stage.numbers) text_.Forget(number);
    }
    // Where it is but the other way, it is kept short.
    const int unroll = size_.items > 0 ? 1 : 8;
    OpenWalk(has_vectors ? "at" : "j", has_vectors ? "others" : "length", kBlockSteps, unroll,
             folds);
    if (has_vectors) text_.Line("const long j = at < head ? at : at + vectors * V;");
    const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    Step(stage, folds, along);
    for (const Store& store : stage.stores) {
      if (IsShareSum(body_, store)) continue;
      text_.Line(
          absl::StrCat(PlaceText(store.address, along, &text_), " = ", StoredText(store), ";"));
    }
    CloseWalk(folds);
  }

  // The thread's of `count` steps, in blocks if a sum wants them.
  void OpenWalk(const std::string& at, const std::string& count, int block_steps, int unroll,
                std::vector<Accumulator>& folds) {
    const int block = block_steps * way_.threads;
    text_.Open(absl::StrCat("for (long first_", at, " = t; first_", at, " < ", count, "; first_",
                            at, " += ", block, ") {"));
    text_.Line(absl::StrCat("const long end_", at, " = ", count, " - first_", at, " < ", block,
                            " ? ", count, " : first_", at, " + ", block, ";"));
    for (Accumulator& fold : folds) fold.BeginBlock();
    text_.Line(absl::StrCat("#pragma unroll ", unroll));
    text_.Open(absl::StrCat("for (long ", at, " = first_", at, "; ", at, " < end_", at, "; ", at,
                            " += ", way_.threads, ") {"));
  }

  void CloseWalk(std::vector<Accumulator>& folds) {
    text_.Close("}");
    for (Accumulator& fold : folds) fold.EndBlock();
    text_.Close("}");
  }

  // One element.
  void Step(const RowStage& stage, std::vector<Accumulator>& folds,
            absl::Span<const KernelText::Along> along) {
    for (const int number : stage.numbers) {
      if (body_.expressions[number].kind == Expression::Kind::kShareSum) continue;
      if (available_.contains(number)) {
        text_.DefineAs(number, Kept(number));
        continue;
      }
      if (IsHitOfRow(number)) {
        DefineHit(number, &text_);
        continue;
      }
      if (IsDrawn(number)) {
        DefineDraw(number, &text_);
        continue;
      }
      text_.Define(number, SourceOf(number, along));
    }
    for (Accumulator& fold : folds)
      fold.Step(is_vector_ ? "(long)(j + k)" : "j", way_.is_kept ? "in" : "");
    if (!is_vector_) return StepShares(stage);
    for (const int kept : stage.kept)
      text_.Line(absl::StrCat(Kept(kept), " = ", text_.name(kept), ";"));
    StepShares(stage);
    for (const Store& store : stage.stores) {
      if (!IsShareSum(body_, store)) PutStored(store, &text_);
    }
  }

  std::string Kept(int number) const {
    return absl::StrCat("x", number, way_.rows > 1 ? "[row]" : "", "[item][k]");
  }

  void StepShares(const RowStage& stage) {
    for (const Store& store : stage.stores) {
      if (IsShareSum(body_, store)) shares_->Step(store);
    }
  }

  std::string SourceOf(int number, absl::Span<const KernelText::Along> along) {
    const Expression& e = body_.expressions[number];
    if (e.address < 0) return "";
    if (IsVector(number)) return absl::StrCat("m", e.address, "[k]");
    const std::string place = PlaceText(e.address, along, &text_);
    // The index may be what the thread of the row's first element has just written in its place.
    const bool is_guarded = way_.is_kept && e.kind == Expression::Kind::kLoad &&
                            DependsOnData(body_, body_.addresses[e.address]);
    return is_guarded ? Guarded("in", place, e.dtype) : place;
  }

  static std::string Guarded(const char* condition, const std::string& place, ir::DType dtype) {
    return absl::StrCat("(", condition, " ? ", place, " : (", MemoryType(dtype), ")0)");
  }

  const ir::Graph& graph_;
  const Body& body_;
  const Loops loops_;
  RowStages rows_;
  KernelText text_;
  VectorAccess access_;
  const RowSize size_;
  const bool is_wide_;
  const Kernel::Exact exact_;
  // In the function being written:
  RowWay way_;
  int num_folds_ = 0;       // of it, so far, in which the group's threads meet
  bool is_vector_ = false;  // are elements `k` of vectors being done?
  RowShares* shares_ = nullptr;
  RowReads* reads_ = nullptr;
  RowTurns* turns_ = nullptr;
  absl::flat_hash_set<int> available_;  // what its earlier stages have kept
};

}  // namespace

WrittenKernel EmitRows(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return RowEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
