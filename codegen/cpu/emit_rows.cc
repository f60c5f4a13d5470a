// SPDX-License-Identifier: Apache-2.0
// A row is walked once per stage (row_stages.h). Numbers of the row as a whole are constants
// between the walks. Where rows seen first are short, such as points of three coordinates, the
// kernel can walk some of them side by side, too: 32 lanes for each row would be mostly idle.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/row_fold.h"
#include "codegen/cpu/row_prefetch.h"
#include "codegen/cpu/row_scratch.h"
#include "codegen/kernels/op_text.h"
#include "codegen/kernels/row_stages.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kNearby = 16384;    // a row of so many elements is still in the cache when the next
                                  // one begins
constexpr int kCacheLine = 64;    // bytes
constexpr int kRowsInFloat = 64;  // of a share, before they are added up in double
constexpr int kShort = 16;        // elements of a row

Monomial LengthOf(const Loops& loops) {
  Monomial length;
  for (const Loop& loop : loops.inner) length = length * loop.extent;
  return length;
}

class RowEmitter {
 public:
  RowEmitter(const Loops& loops, KernelText* text)
      : body_(text->body()),
        loops_(loops),
        rows_(MakeRowStages(text->graph(), body_)),
        prefetch_(MakeRowPrefetch(text->graph(), body_, loops_, rows_)),
        text_(*text),
        scratch_(body_, rows_, loops_, text) {}

  void Write() {
    if (body_.has_shares()) OpenShares();
    if (prefetch_.stage >= 0) {
      text_.Line(absl::StrCat("const bool nearby = ", text_.Number(loops_.inner[0].extent), " <= ", kNearby, ";"));
    }
    text_.Open(body_.has_shares() ? "for (long r = first; r < last; ++r) {" : "for (long r = begin; r < end; ++r) {");
    PlaceBases();
    for (size_t stage = 0; stage < rows_.stages.size(); ++stage) {
      DefineRowNumbers(static_cast<int>(stage));
      EmitStage(static_cast<int>(stage));
    }
    if (body_.has_shares()) AddUpShares("(r + 1 - first) % " + std::to_string(kRowsInFloat) + " == 0 || r + 1 == last");
    text_.Close("}");
    if (body_.has_shares()) text_.Close("}");
    if (std::any_of(body_.stores.begin(), body_.stores.end(), [](const Store& store) { return store.is_non_temporal; }))
      text_.Line("lazy_streamed();");
  }

  void NoteScratch(Instance* instance) const { scratch_.Note(loops_, instance); }

 private:
  // A share of the rows is summed up in scratch memory, in f32 for some rows, then in the share's
  // row of the result.
  void OpenShares() {
    std::string rows = "1";
    for (const Loop& loop : loops_.outer) absl::StrAppend(&rows, " * ", text_.Number(loop.extent));
    text_.Open("for (long share = begin; share < end; ++share) {");
    text_.Line(absl::StrCat("const long rows = ", rows, ";"));
    text_.Line(absl::StrCat("const long first = rows * share / ", body_.shares, ", last = rows * (share + 1) / ",
                            body_.shares, ";"));
    text_.Line(absl::StrCat("const long columns = ", Columns(), ";"));
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) continue;
      text_.Independent();
      text_.Line(absl::StrCat("for (long c = 0; c < columns; ++c) ", scratch_.Of(store.expression), "[c] = 0, ",
                              ShareOf(store), "[c] = 0;"));
    }
  }

  void AddUpShares(const std::string& when) {
    text_.Open(absl::StrCat("if (", when, ") {"));
    for (const Store& store : body_.stores) {
      if (!IsShareSum(body_, store)) continue;
      const std::string& sums = scratch_.Of(store.expression);
      text_.Independent();
      text_.Line(absl::StrCat("for (long c = 0; c < columns; ++c) ", ShareOf(store), "[c] += ", sums, "[c], ", sums,
                              "[c] = 0;"));
    }
    text_.Close("}");
  }

  std::string ShareOf(const Store& store) {
    return absl::StrCat("(", text_.PointerTo(body_.addresses[store.address].slot), " + share * columns)");
  }

  std::string Columns() { return text_.Number(LengthOf(loops_)); }

  void PlaceBases() {
    std::vector<KernelText::Along> along;
    const bool is_one = loops_.outer.size() == 1;
    for (size_t k = 0; k < loops_.outer.size(); ++k) {
      along.push_back({&loops_.outer[k], is_one ? std::string("r") : absl::StrCat("i", k)});
    }
    if (along.size() > 1) {
      text_.Line("long rest = r;");
      for (size_t k = along.size() - 1; k > 0; --k) {
        const std::string extent = text_.Number(loops_.outer[k].extent);
        text_.Line(absl::StrCat("const long i", k, " = rest % ", extent, ";"));
        text_.Line(absl::StrCat("rest /= ", extent, ";"));
      }
      text_.Line("const long i0 = rest;");
    }
    for (size_t a = 0; a < body_.addresses.size(); ++a) {
      const Address& address = body_.addresses[a];
      const std::string index = text_.IndexText(address.index, along, /*with_offset=*/false);
      const std::string pointer = address.slot < 0 ? "" : absl::StrCat(text_.PointerTo(address.slot), " + ");
      text_.Line(absl::StrCat(address.slot < 0 ? "const long a" : "auto* const a", a, " = ", pointer, index, ";"));
    }
  }

  std::string PlaceText(int a, bool along_inner) {
    std::vector<KernelText::Along> along;
    for (size_t k = 0; along_inner && k < loops_.inner.size(); ++k) along.push_back({&loops_.inner[k], IndexName(k)});
    const std::string offset = text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    return body_.addresses[a].slot >= 0 ? absl::StrCat("a", a, "[", offset, "]") : absl::StrCat("a", a, " + ", offset);
  }

  std::string IndexName(size_t k) const { return k + 1 == loops_.inner.size() ? "j" : absl::StrCat("j", k); }

  // The number of the element within its row.
  std::string FlatIndex() {
    std::string flat;
    for (size_t k = 0; k < loops_.inner.size(); ++k) {
      flat = k == 0 ? IndexName(k)
                    : absl::StrCat("(", flat, ") * ", text_.Number(loops_.inner[k].extent), " + ", IndexName(k));
    }
    return flat;
  }

  // What is the same for the whole row and known before the stage's loop. Reductions got their
  // names after theirs.
  void DefineRowNumbers(int stage) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.depth != stage || body_.uses_inner(e) || text_.defined(e)) continue;
      text_.Define(e, expression.address < 0 ? "" : PlaceText(expression.address, /*along_inner=*/false));
    }
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth == stage && !StoresAlongRow(body_, store)) WriteStore(store, false);
    }
  }

  void WriteStore(const Store& store, bool along_inner) {
    if (IsShareSum(body_, store)) {
      const std::string sum = absl::StrCat(scratch_.Of(store.expression), "[", FlatIndex(), "]");
      return text_.Line(
          absl::StrCat(sum, " = ", sum, " + ", text_.name(body_.expressions[store.expression].arguments[0]), ";"));
    }
    const ir::DType dtype = text_.TypeAt(store.address);
    const std::string place = store.is_non_temporal ? absl::StrCat(scratch_.RowOf(store), "[", FlatIndex(), "]")
                                                    : PlaceText(store.address, along_inner);
    text_.Line(absl::StrCat(place, " = ", StoreText(dtype, text_.name(store.expression)), ";"));
  }

  // The row that a stage has written to scratch memory.
  void StoreNonTemporal(const Store& store) {
    const std::string offset = text_.IndexText(body_.addresses[store.address].index, {}, /*with_offset=*/true);
    text_.Line(absl::StrCat("lazy_stream(a", store.address, " + ", offset, ", ", scratch_.RowOf(store), ", ", Columns(),
                            ");"));
  }

  void EmitStage(int stage_number) {
    const RowStage& stage = rows_.stages[stage_number];
    if (stage.reductions.empty() && stage.stores.empty()) return;
    std::vector<RowFold> folds;
    for (const int reduction : stage.reductions) folds.emplace_back(reduction, &text_);
    for (RowFold& fold : folds) fold.Declare();
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) {
      const std::string j = IndexName(k);
      text_.Open(
          absl::StrCat("for (long ", j, " = 0; ", j, " < ", text_.Number(loops_.inner[k].extent), "; ++", j, ") {"));
    }
    const std::string extent = loops_.inner.empty() ? "1" : text_.Number(loops_.inner.back().extent);
    if (folds.empty()) {
      text_.Independent();
      text_.Open(absl::StrCat("for (long j = 0; j < ", extent, "; ++j) {"));
      Step(stage, folds);
      text_.Close("}");
    } else {
      EmitFolds(stage_number, extent, folds);
    }
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) text_.Close("}");
    for (const Store& store : stage.stores) {
      if (store.is_non_temporal) StoreNonTemporal(store);
    }
    for (const int number : stage.numbers) text_.Forget(number);
    available_.insert(stage.kept.begin(), stage.kept.end());
    for (RowFold& fold : folds) fold.Combine();
  }

  // A walk that folds: all lanes at a time, then what is left over; in blocks if a sum wants them.
  void EmitFolds(int stage, const std::string& extent, std::vector<RowFold>& folds) {
    const bool has_blocks =
        loops_.inner.size() == 1 &&  // else the inner loop may be shorter than a vector
        std::any_of(folds.begin(), folds.end(), [](const RowFold& fold) { return fold.wants_blocks(); });
    std::string stop = extent;
    if (has_blocks) {
      stop = "stop";
      text_.Open(absl::StrCat("for (long j = 0; j < ", extent, ";) {"));
      text_.Line(absl::StrCat("const long stop = ", extent, " - j < ", kBlock, " ? ", extent, " : j + ", kBlock, ";"));
      for (RowFold& fold : folds) fold.BeginBlock();
    } else {
      text_.Open("{");
    }
    text_.Open("const auto step = [&](long j, int l) __attribute__((always_inline)) {");
    Step(rows_.stages[stage], folds);
    text_.Close("};");
    if (!has_blocks) text_.Line("long j = 0;");
    text_.Open(absl::StrCat("for (; j + ", kLanes, " <= ", stop, "; j += ", kLanes, ") {"));
    if (stage == prefetch_.stage) Prefetch();
    text_.Independent();
    text_.Line(absl::StrCat("for (int l = 0; l < ", kLanes, "; ++l) step(j + l, l);"));
    text_.Close("}");
    text_.Line(absl::StrCat("for (int l = 0; j < ", stop, "; ++j, ++l) step(j, l);"));
    for (RowFold& fold : folds) {
      if (has_blocks) fold.EndBlock();
    }
    text_.Close("}");
  }

  // One line of code for each cache line that the lanes cover.
  void Prefetch() {
    text_.Open("if (nearby) {");
    for (const int a : prefetch_.loads) {
      const std::string row = text_.Number(body_.addresses[a].index.CoefficientOf(loops_.outer[0].variable));
      PrefetchLines(a, absl::StrCat(" + ", row), "");
    }
    for (const int a : prefetch_.stores) PrefetchLines(a, "", ", 1");
    text_.Close("}");
  }

  void PrefetchLines(int a, const std::string& ahead, const std::string& writes) {
    const Address& address = body_.addresses[a];
    const int64_t step =
        std::max<int64_t>(1, kCacheLine / ir::SizeBytes(text_.SlotType(address.slot)));  // elements in a line
    const std::string lane = text_.IndexText(address.index, {{&loops_.inner[0], "j"}}, /*with_offset=*/true);
    const std::string place = absl::StrCat("a", a, " + ", lane);
    for (int64_t at = 0; at < kLanes; at += step) {
      const std::string more = at == 0 ? "" : absl::StrCat(" + ", at);
      text_.Line(absl::StrCat("__builtin_prefetch(", place, ahead, more, writes, ");"));
    }
  }

  void Step(const RowStage& stage, std::vector<RowFold>& folds) {
    for (const int number : stage.numbers) {
      if (body_.expressions[number].kind == Expression::Kind::kShareSum) continue;
      if (available_.contains(number)) {
        text_.DefineAs(number, absl::StrCat(scratch_.Of(number), "[", FlatIndex(), "]"));
        continue;
      }
      const int address = body_.expressions[number].address;
      text_.Define(number, address < 0 ? "" : PlaceText(address, /*along_inner=*/true));
    }
    for (RowFold& fold : folds) fold.Step(FlatIndex());
    for (const int kept : stage.kept) {
      text_.Line(absl::StrCat(scratch_.Of(kept), "[", FlatIndex(), "] = ", text_.name(kept), ";"));
    }
    for (const Store& store : stage.stores) WriteStore(store, /*along_inner=*/true);
  }

  const Body& body_;
  const Loops& loops_;
  const RowStages rows_;
  const RowPrefetch prefetch_;
  KernelText& text_;
  const RowScratch scratch_;
  absl::flat_hash_set<int> available_;  // those that an earlier stage has kept
};

}  // namespace

WrittenKernel EmitRows(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents) {
  KernelText text(graph, body);
  const Loops loops = MakeLoops(body);
  const bool are_short = !body.has_shares() && !loops.inner.empty() && !loops.outer.empty() &&
                         SeenSize(LengthOf(loops), seen_extents) <= kShort;
  if (are_short) {
    text.Open(absl::StrCat("if (", text.Number(LengthOf(loops)), " <= ", kShort, ") {"));
    WriteColumns(loops, Length::kShort, seen_extents, &text);
    text.Close("}");
    text.Open("else {");
  }
  RowEmitter rows(loops, &text);
  rows.Write();
  if (are_short) text.Close("}");
  WrittenKernel written =
      text.Finish("rows", body.has_shares() ? ir::Dims{ir::Extent::Constant(body.shares)} : RangeOf(loops));
  rows.NoteScratch(&written.instance);
  return written;
}

}  // namespace torch_lazy::codegen
