// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_stage_text.h"

#include "codegen/cuda/draws.h"
#include "codegen/cuda/iota_equals.h"
#include "codegen/cuda/vector_store.h"

namespace torch_lazy::codegen::cuda {

void RowStageText::Emit(int number, const RowStage& stage, std::vector<Accumulator>& folds) {
  threads_.is_kept ? EmitKept(number, stage, folds) : EmitSteps(stage, folds);
  for (const int made : stage.numbers) text_.Forget(made);
  available_.insert(stage.kept.begin(), stage.kept.end());
}

void RowStageText::EmitKept(int number, const RowStage& stage, std::vector<Accumulator>& folds) {
  const std::string of_rows = threads_.rows > 1 ? absl::StrCat("[", threads_.rows, "]") : "";
  for (const int kept : stage.kept) {
    text_.Line(absl::StrCat(ComputeType(body_.expressions[kept].dtype), " x", kept, of_rows, "[kItems][V];"));
  }
  if (threads_.rows > 1) function_.row_loads.Read(number);
  function_.ForEachPlacedRow([&] {
    for (Accumulator& fold : folds) fold.BeginBlock();
    EmitKeptWalk(threads_, &text_, [&] { EmitVector(stage, folds); });
  });
}

// V elements from `j` on, `in` the row.
void RowStageText::EmitVector(const RowStage& stage, std::vector<Accumulator>& folds) {
  is_vector_ = true;
  std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
  for (const int number : stage.numbers) {
    if (!IsVector(number)) continue;
    const int address = body_.expressions[number].address;
    if (const bool is_kept = function_.column_operands.Keeps(number); is_kept || threads_.rows > 1) {
      const std::string vector =
          is_kept ? function_.column_operands.Vector(number) : function_.row_loads.Vector(number);
      text_.Line(absl::StrCat("auto& m", address, " = ", vector, ";"));
      continue;
    }
    Declare(address);
    const std::string place =
        function_.tiling.takes_turns() && function_.pipeline.Fetches(number)
            ? absl::StrCat("(const ", TypeOf(address), "*)(", function_.pipeline.Place(number), ")")
            : PointerText(address, along, &text_);
    text_.Line(absl::StrCat("lazy_read(m", address, ", ", place, ");"));
  }
  for (const int number : stage.numbers) {
    if (IsDrawn(number)) DeclareDraws(number, along, &text_);
    if (IsIotaEqualsRow(number)) DeclareIotaEquals(number, loops_.inner[0], along, &text_);
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

void RowStageText::Write(const Store& store, absl::Span<const KernelText::Along> at,
                         absl::Span<const KernelText::Along> along) {
  if (function_.access.IsContiguous(store.address)) {
    return WriteStored(store, "if (in) ", PointerText(store.address, at, &text_), &text_);
  }
  text_.Line("#pragma unroll");
  text_.Line(absl::StrCat("for (int k = 0; in && k < V; ++k) ", PlaceText(store.address, along, &text_), " = ",
                          StoredElement(store, text_), ";"));
}

std::string RowStageText::TypeOf(int address) const { return MemoryType(text_.TypeAt(address)); }
void RowStageText::Declare(int address) { text_.Line(absl::StrCat(TypeOf(address), " m", address, "[V];")); }

bool RowStageText::IsVector(int number) const {
  return is_vector_ && function_.access.LoadsVector(number) && !available_.contains(number);
}

bool RowStageText::IsDrawn(int number) const {
  return is_vector_ && !available_.contains(number) && loops_.inner.size() == 1 &&
         DrawsForNeighbours(text_, number, &loops_.inner[0]);
}

bool RowStageText::IsIotaEqualsRow(int number) const {
  return is_vector_ && !available_.contains(number) && loops_.inner.size() == 1 &&
         IsIotaEquals(text_, number, &loops_.inner[0]);
}

void RowStageText::EmitSteps(const RowStage& stage, std::vector<Accumulator>& folds) {
  const bool has_vectors = function_.walks_vectors();
  if (has_vectors) {
    OpenWalk("at", "vectors", kBlockSteps / function_.access.width(), function_.tiling.unroll, folds);
    text_.Line("const long j = head + at * V;");
    text_.Line("const bool in = true;");
    EmitVector(stage, folds);
    CloseWalk(folds);
    for (const int number : stage.numbers) text_.Forget(number);
  }
  // Where it is but the other way, it is kept short.
  const int unroll = function_.tiling.items > 0 ? 1 : 8;
  OpenWalk(has_vectors ? "at" : "j", has_vectors ? "others" : "length", kBlockSteps, unroll, folds);
  if (has_vectors) text_.Line("const long j = at < head ? at : at + vectors * V;");
  const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
  Step(stage, folds, along);
  for (const Store& store : stage.stores) {
    if (IsShareSum(body_, store)) continue;
    text_.Line(absl::StrCat(PlaceText(store.address, along, &text_), " = ", function_.StoredText(store), ";"));
  }
  CloseWalk(folds);
}

// The thread's of `count` steps, in blocks if a sum wants them.
void RowStageText::OpenWalk(const std::string& at, const std::string& count, int block_steps, int unroll,
                            std::vector<Accumulator>& folds) {
  const int block = block_steps * threads_.per_row;
  text_.Open(
      absl::StrCat("for (long first_", at, " = t; first_", at, " < ", count, "; first_", at, " += ", block, ") {"));
  text_.Line(absl::StrCat("const long end_", at, " = ", count, " - first_", at, " < ", block, " ? ", count, " : first_",
                          at, " + ", block, ";"));
  for (Accumulator& fold : folds) fold.BeginBlock();
  text_.Line(absl::StrCat("#pragma unroll ", unroll));
  text_.Open(absl::StrCat("for (long ", at, " = first_", at, "; ", at, " < end_", at, "; ", at,
                          " += ", threads_.per_row, ") {"));
}

void RowStageText::CloseWalk(std::vector<Accumulator>& folds) {
  text_.Close("}");
  for (Accumulator& fold : folds) fold.EndBlock();
  text_.Close("}");
}

// One element.
void RowStageText::Step(const RowStage& stage, std::vector<Accumulator>& folds,
                        absl::Span<const KernelText::Along> along) {
  for (const int number : stage.numbers) {
    if (body_.expressions[number].kind == Expression::Kind::kShareSum) continue;
    if (available_.contains(number)) {
      text_.DefineAs(number, Kept(number));
      continue;
    }
    if (IsIotaEqualsRow(number)) {
      DefineIotaEquals(number, &text_);
      continue;
    }
    if (IsDrawn(number)) {
      DefineDraw(number, &text_);
      continue;
    }
    text_.Define(number, SourceOf(number, along));
  }
  for (Accumulator& fold : folds) fold.Step(is_vector_ ? "(long)(j + k)" : "j", threads_.is_kept ? "in" : "");
  if (!is_vector_) return StepShares(stage);
  for (const int kept : stage.kept) text_.Line(absl::StrCat(Kept(kept), " = ", text_.name(kept), ";"));
  StepShares(stage);
  for (const Store& store : stage.stores) {
    if (!IsShareSum(body_, store)) PutStored(store, &text_);
  }
}

std::string RowStageText::Kept(int number) const {
  return absl::StrCat("x", number, threads_.rows > 1 ? "[row]" : "", "[item][k]");
}

void RowStageText::StepShares(const RowStage& stage) {
  for (const Store& store : stage.stores) {
    if (IsShareSum(body_, store)) function_.column_sums.Step(store);
  }
}

std::string RowStageText::SourceOf(int number, absl::Span<const KernelText::Along> along) {
  const Expression& e = body_.expressions[number];
  if (e.address < 0) return "";
  if (IsVector(number)) return absl::StrCat("m", e.address, "[k]");
  const std::string place = PlaceText(e.address, along, &text_);
  // The index may be what the thread of the row's first element has just written in its place.
  const bool is_guarded =
      threads_.is_kept && e.kind == Expression::Kind::kLoad && DependsOnData(body_, body_.addresses[e.address]);
  return is_guarded ? RowFunctionParts::Guarded("in", place, e.dtype) : place;
}

}  // namespace torch_lazy::codegen::cuda
