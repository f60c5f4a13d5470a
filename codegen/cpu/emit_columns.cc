// SPDX-License-Identifier: Apache-2.0
// Tiles of columns walk down together: the innermost loop runs across the tile, whose columns lie
// side by side, and each column has an accumulator of its own. Short rows are walked so, too: a
// tile is some rows, and its columns lie a row's length apart.
//
// Few columns do not fill a vector. Those of an image of 8 channels, [32, 1024, 8], whose rows lie
// one behind the other, are walked 8 rows at a time: lane 17 is column 1 of the third row. In the
// end the lanes of a column are folded.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/emit.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kTile = kLanesOfRows;
constexpr int kFewColumns = 16;    // side by side
constexpr int kColumnBlock = 128;  // elements of a column

class ColumnEmitter {
 public:
  ColumnEmitter(const Loops& loops, Length length, KernelText* text)
      : body_(text->body()), loops_(loops), length_(length), text_(*text) {}

  // Whether a vector can hold several rows: what the kernel reads or writes for each number of a row lies as evenly
  // from row to row as within one.
  bool MayHoldRows() const {
    if (length_ != Length::kAny || loops_.outer.empty() || loops_.inner.empty()) return false;
    const auto lies_evenly = [&](int a) { return a < 0 || IsEven(a) || StrideOfColumns(a).is_zero(); };
    return std::none_of(body_.addresses.begin(), body_.addresses.end(),
                        [&](const Address& address) { return DependsOnData(body_, address); }) &&
           std::all_of(
               body_.expressions.begin(), body_.expressions.end(),
               [&](const Expression& e) { return !IsIndex(e) && (!UsesRows(e.uses) || lies_evenly(e.address)); }) &&
           std::all_of(body_.stores.begin(), body_.stores.end(),
                       [&](const Store& store) { return !StoresInner(store) || IsEven(store.address); });
  }

  // `holds_rows`: the text for few columns, too.
  void Write(bool holds_rows = false) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {  // numbers that no loop changes
      const Expression& expression = body_.expressions[e];
      if (expression.uses != 0 || expression.depth > 0) continue;
      text_.Define(static_cast<int>(e), expression.address < 0 ? "" : FixedPlaceText(expression.address));
      global_.push_back(static_cast<int>(e));
    }
    for (const Expression& e : body_.expressions) stages_ = std::max(stages_, e.depth + 1);
    if (holds_rows) DeclareLanes(Columns(), &text_);
    OpenRange();
    if (holds_rows) EmitRowsInLanes();
    text_.Open("const auto tile = [&](const long run) __attribute__((always_inline)) {");
    for (int stage = 0; stage < stages_; ++stage) EmitStage(stage);
    EmitColumnStores();
    text_.Close("};");
    const std::string whole = holds_rows ? "" : absl::StrCat("if (width == ", kTile, ") tile(", kTile, "); else ");
    text_.Line(absl::StrCat(whole, "tile(width);"));
    text_.Line("at += width;");
    text_.Close("}");
    for (const int e : global_) text_.Forget(e);
  }

 private:
  // The range is walked in tiles along the innermost outer loop.
  void OpenRange() {
    const size_t loops = loops_.outer.size();
    text_.Open("for (long at = begin; at < end;) {");
    if (loops > 0) text_.Line("long rest = at;");
    for (size_t k = loops; k-- > 1;) {
      const std::string extent = text_.Number(loops_.outer[k].extent);
      text_.Line(absl::StrCat("const long i", k, " = rest % ", extent, ";"));
      text_.Line(absl::StrCat("rest /= ", extent, ";"));
    }
    if (loops > 0) text_.Line("const long i0 = rest;");
    const std::string left =
        loops == 0 ? "1" : absl::StrCat(text_.Number(loops_.outer.back().extent), " - i", loops - 1);
    text_.Line(absl::StrCat("const long left = ", left, ", most = left < end - at ? left : end - at;"));
    text_.Line(absl::StrCat("const long width = most < ", kTile, " ? most : ", kTile, ";"));
    PlaceBases();
  }

  void PlaceBases() {
    std::vector<KernelText::Along> along;
    for (size_t k = 0; k < loops_.outer.size(); ++k) along.push_back({&loops_.outer[k], absl::StrCat("i", k)});
    for (size_t a = 0; a < body_.addresses.size(); ++a) {
      const Address& address = body_.addresses[a];
      const std::string index = text_.IndexText(address.index, along, /*with_offset=*/false);
      const std::string pointer = address.slot < 0 ? "" : absl::StrCat(text_.PointerTo(address.slot), " + ");
      text_.Line(absl::StrCat(address.slot < 0 ? "const long a" : "auto* const a", a, " = ", pointer, index, ";"));
    }
  }

  // Of an address that no loop changes.
  std::string FixedPlaceText(int a) {
    const int slot = body_.addresses[a].slot;
    const std::string offset = text_.IndexText(body_.addresses[a].index, {}, /*with_offset=*/true);
    return slot < 0 ? offset : absl::StrCat(text_.PointerTo(slot), "[", offset, "]");
  }

  std::string PlaceText(int a, bool along_inner) {
    std::vector<KernelText::Along> along;
    for (size_t k = 0; along_inner && k < loops_.inner.size(); ++k) {
      along.push_back({&loops_.inner[k], absl::StrCat("j", k)});
    }
    if (!loops_.outer.empty()) along.push_back({&loops_.outer.back(), "l"});
    const std::string offset = text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    return body_.addresses[a].slot >= 0 ? absl::StrCat("a", a, "[", offset, "]") : absl::StrCat("a", a, " + ", offset);
  }

  bool IsIndex(const Expression& e) const {
    if (e.kind != Expression::Kind::kReduce) return false;
    const ir::Op op = text_.graph().node(e.node).op;
    return op == ir::Op::kArgMax || op == ir::Op::kArgMin;
  }

  bool UsesRows(uint64_t uses) const { return (uses & loops_.inner.back().bits) != 0; }

  Polynomial StrideOfColumns(int a) const {
    return body_.addresses[a].index.CoefficientOf(loops_.outer.back().variable);
  }

  // Whether the next row begins where the columns end.
  bool IsEven(int a) const {
    return body_.addresses[a].index.CoefficientOf(loops_.inner.back().variable) ==
           StrideOfColumns(a) * Polynomial(loops_.outer.back().extent);
  }

  std::string Columns() { return text_.Number(loops_.outer.back().extent); }

  // Of a lane, from row j on.
  std::string PlaceInLanes(int a) {
    const bool is_even = IsEven(a);
    std::vector<KernelText::Along> along;
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) along.push_back({&loops_.inner[k], absl::StrCat("j", k)});
    along.push_back({&loops_.inner.back(), is_even ? "j" : "(j + row_of[l])"});
    along.push_back({&loops_.outer.back(), is_even ? "l" : "column_of[l]"});
    const std::string offset = text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    return body_.addresses[a].slot >= 0 ? absl::StrCat("a", a, "[", offset, "]") : absl::StrCat("a", a, " + ", offset);
  }

  // All columns there are, several rows at a time. Who has the first of them does all, wherever the range ends, so that
  // digits do not depend on how many threads there are.
  void EmitRowsInLanes() {
    text_.Open("if (rows > 1) {");
    text_.Open(absl::StrCat("if (i", loops_.outer.size() - 1, " == 0) {"));
    for (int stage = 0; stage < stages_; ++stage) EmitStageInLanes(stage);
    text_.Line("const long run = left;");
    EmitColumnStores();
    text_.Close("}");
    text_.Line("at += left;");
    text_.Line("continue;");
    text_.Close("}");
    results_.clear();
  }

  // Numbers of columns, which no row changes, are computed once for all rows.
  std::vector<int> HoistColumns(const std::vector<int>& sinks) {
    const std::vector<int> needed = NumbersFor(sinks);
    const auto is_of_columns = [&](int e) {
      const Expression& expression = body_.expressions[e];
      return !body_.uses_inner(e) && expression.kind != Expression::Kind::kReduce &&
             (expression.uses & loops_.outer.back().bits) != 0;
    };
    std::vector<int> hoisted;
    const auto hoist = [&](int e) {
      if (is_of_columns(e) && std::find(hoisted.begin(), hoisted.end(), e) == hoisted.end()) hoisted.push_back(e);
    };
    for (const int e : sinks) hoist(e);
    for (const int e : needed) {
      if (body_.uses_inner(e))
        std::for_each(body_.expressions[e].arguments.begin(), body_.expressions[e].arguments.end(), hoist);
    }
    if (hoisted.empty()) return hoisted;
    for (const int e : hoisted)
      text_.Line(absl::StrCat(ComputeType(body_.expressions[e].dtype), " h", e, "[", kTile, "];"));
    OpenLanes(hoisted, "lanes", [&](int a) { return PlaceInLanes(a); });
    for (const int e : hoisted) text_.Line(absl::StrCat("h", e, "[l] = ", text_.name(e), ";"));
    CloseLanes();
    return hoisted;
  }

  void EmitStageInLanes(int stage) {
    const StageParts parts = PartsOf(stage);
    if (parts.sinks.empty()) return;
    text_.Open("{");
    const std::vector<int> hoisted = HoistColumns(parts.sinks);
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) {
      const std::string j = absl::StrCat("j", k), extent = text_.Number(loops_.inner[k].extent);
      text_.Open(absl::StrCat("for (long ", j, " = 0; ", j, " < ", extent, "; ++", j, ") {"));
    }
    const std::string extent = text_.Number(loops_.inner.back().extent);
    text_.Open(absl::StrCat("for (long j = 0; j < ", extent, ";) {"));
    text_.Line(absl::StrCat("const long most = ", kColumnBlock, " * rows, stop = ", extent, " - j < most ? ", extent,
                            " : j + most;"));
    DeclareBlocks(parts.accumulators);
    text_.Open("const auto step = [&](const long j, const long run) __attribute__((always_inline)) {");
    for (const int e : hoisted) text_.SetName(e, absl::StrCat("h", e, "[l]"));
    OpenLanes(parts.sinks, "run", [&](int a) { return PlaceInLanes(a); });
    for (const Accumulator& accumulator : parts.accumulators) Step(accumulator);
    for (const Store& store : parts.stores) {
      const std::string number = StoreText(text_.TypeAt(store.address), text_.name(store.expression));
      text_.Line(absl::StrCat(PlaceInLanes(store.address), " = ", number, ";"));
    }
    CloseLanes();
    text_.Close("};");
    text_.Line(absl::StrCat("if (lanes == ", kTile, ") for (; j + rows <= stop; j += rows) step(j, ", kTile, ");"));
    text_.Line(
        absl::StrCat("for (; j < stop; j += rows) step(j, (stop - j < rows ? stop - j : rows) * ", Columns(), ");"));
    CombineBlocks(parts.accumulators);
    for (size_t k = 0; k < loops_.inner.size(); ++k) text_.Close("}");
    text_.Close("}");
    for (const Accumulator& accumulator : parts.accumulators) {
      const std::string column = absl::StrCat(accumulator.name, "[column_of[l]]"),
                        lane = absl::StrCat(accumulator.name, "[l]");
      text_.Line(absl::StrCat("for (long l = ", Columns(), "; l < lanes; ++l) ", column, " = ",
                              Substitute(accumulator.fold.combine, {column, lane}), ";"));
      text_.Line(absl::StrCat("for (long l = ", Columns(), "; l < lanes; ++l) ", lane, " = ", column, ";"));
      results_.push_back(accumulator);
    }
  }

  struct Accumulator {
    int expression;
    std::string name;
    bool is_index;
    Fold fold = {};          // of the others
    std::string block = "";  // the sums of a block, where they are not added up in `name` themselves
  };

  bool StoresInner(const Store& store) const {
    const auto& terms = body_.addresses[store.address].index.terms;
    return std::any_of(terms.begin(), terms.end(),
                       [&](const Affine::Term& term) { return (body_.inner >> term.variable & 1) != 0; });
  }

  // What a stage folds and writes along the columns, with its accumulators declared.
  struct StageParts {
    std::vector<Accumulator> accumulators;
    std::vector<Store> stores;
    std::vector<int> sinks;
  };
  StageParts PartsOf(int stage) {
    StageParts parts;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.kind != Expression::Kind::kReduce || expression.depth != stage + 1) continue;
      parts.accumulators.push_back(Declare(static_cast<int>(e)));
      parts.sinks.push_back(expression.arguments[0]);
    }
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth != stage || !StoresInner(store)) continue;
      parts.stores.push_back(store);
      parts.sinks.push_back(store.expression);
    }
    return parts;
  }

  void EmitStage(int stage) {
    const auto [accumulators, stores, sinks] = PartsOf(stage);
    if (sinks.empty()) return;
    const bool has_blocks = std::any_of(accumulators.begin(), accumulators.end(),
                                        [](const Accumulator& accumulator) { return !accumulator.block.empty(); });
    for (size_t k = 0; k < loops_.inner.size(); ++k) {
      const std::string j = absl::StrCat("j", k), extent = text_.Number(loops_.inner[k].extent);
      if (has_blocks && k + 1 == loops_.inner.size()) {
        OpenBlock(j, extent, accumulators);
      } else {
        text_.Open(absl::StrCat("for (long ", j, " = 0; ", j, " < ", extent, "; ++", j, ") {"));
      }
    }
    OpenLanes(sinks, "run", [&](int a) { return PlaceText(a, /*along_inner=*/true); });
    for (const Accumulator& accumulator : accumulators) Step(accumulator);
    for (const Store& store : stores) WriteStore(store, /*along_inner=*/true);
    CloseLanes();
    if (has_blocks) {
      text_.Close("}");
      CombineBlocks(accumulators);
    }
    for (size_t k = 0; k < loops_.inner.size(); ++k) text_.Close("}");
    for (const Accumulator& accumulator : accumulators) results_.push_back(accumulator);
  }

  // Sums of f32 are f32 within a block, and double from block to block.
  void OpenBlock(const std::string& j, const std::string& extent, const std::vector<Accumulator>& accumulators) {
    text_.Open(absl::StrCat("for (long ", j, " = 0; ", j, " < ", extent, ";) {"));
    text_.Line(absl::StrCat("const long stop = ", extent, " - ", j, " < ", kColumnBlock, " ? ", extent, " : ", j, " + ",
                            kColumnBlock, ";"));
    DeclareBlocks(accumulators);
    text_.Open(absl::StrCat("for (; ", j, " < stop; ++", j, ") {"));
  }

  void DeclareBlocks(const std::vector<Accumulator>& accumulators) {
    for (const Accumulator& accumulator : accumulators) {
      if (!accumulator.block.empty())
        text_.Line(absl::StrCat(accumulator.fold.block_type, " ", accumulator.block, "[", kTile, "] = {};"));
    }
  }

  void CombineBlocks(const std::vector<Accumulator>& accumulators) {
    for (const Accumulator& accumulator : accumulators) {
      if (accumulator.block.empty()) continue;
      const std::string lane = absl::StrCat(accumulator.name, "[l]"), block = absl::StrCat(accumulator.block, "[l]");
      text_.Line(absl::StrCat("for (int l = 0; l < ", kTile, "; ++l) ", lane, " = ",
                              Substitute(accumulator.fold.combine, {lane, block}), ";"));
    }
  }

  // One number a column, after all stages.
  void EmitColumnStores() {
    std::vector<Store> stores;
    std::vector<int> sinks;
    for (const Store& store : body_.stores) {
      if (StoresInner(store)) continue;
      stores.push_back(store);
      sinks.push_back(store.expression);
    }
    if (stores.empty()) return;
    OpenLanes(sinks, "run", [&](int a) { return PlaceText(a, /*along_inner=*/true); });
    for (const Store& store : stores) WriteStore(store, /*along_inner=*/false);
    CloseLanes();
  }

  // The loop across so many lanes, with everything defined that the sinks need.
  template <typename Place>
  void OpenLanes(const std::vector<int>& sinks, absl::string_view lanes, const Place& place) {
    text_.Independent();
    text_.Open(absl::StrCat("for (long l = 0; l < ", lanes, "; ++l) {"));
    for (const Accumulator& result : results_) {
      const std::string type = ComputeType(body_.expressions[result.expression].dtype);
      text_.SetName(result.expression, result.is_index ? absl::StrCat(result.name, "_at[l]")
                                                       : absl::StrCat("(", type, ")", result.name, "[l]"));
    }
    for (const int e : NumbersFor(sinks)) {
      if (text_.defined(e)) continue;
      const int address = body_.expressions[e].address;
      text_.Define(e, address < 0 ? "" : place(address));
    }
  }

  void CloseLanes() {
    text_.Close("}");
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (std::find(global_.begin(), global_.end(), static_cast<int>(e)) == global_.end())
        text_.Forget(static_cast<int>(e));
    }
  }

  std::vector<int> NumbersFor(std::vector<int> sinks) const {
    std::vector<bool> needed(body_.expressions.size());
    while (!sinks.empty()) {
      const int e = sinks.back();
      sinks.pop_back();
      if (needed[e] || text_.defined(e)) continue;
      needed[e] = true;
      const Expression& expression = body_.expressions[e];
      sinks.insert(sinks.end(), expression.arguments.begin(), expression.arguments.end());
      if (expression.address < 0) continue;
      for (const Affine::Term& term : body_.addresses[expression.address].index.terms) {
        if (body_.variables[term.variable].kind == Variable::Kind::kData) sinks.push_back(body_.data[term.variable]);
      }
    }
    std::vector<int> numbers;
    for (size_t e = 0; e < needed.size(); ++e) {
      if (needed[e]) numbers.push_back(static_cast<int>(e));
    }
    return numbers;
  }

  Accumulator Declare(int expression) {
    const ir::Node& node = text_.graph().node(body_.expressions[expression].node);
    const bool is_index = IsIndex(body_.expressions[expression]);
    Accumulator accumulator{expression, text_.NewName('c'), is_index};
    const std::string& c = accumulator.name;
    const std::string each = absl::StrCat("for (int l = 0; l < ", kTile, "; ++l) ");
    if (is_index) {
      const int operand = body_.expressions[expression].arguments[0];
      text_.Line(absl::StrCat(ComputeType(body_.expressions[operand].dtype), " ", c, "[", kTile, "] = {};"));
      text_.Line(absl::StrCat("long ", c, "_at[", kTile, "];"));
      text_.Line(absl::StrCat(each, c, "_at[l] = -1;"));
      return accumulator;
    }
    accumulator.fold = FoldOf(Target::kCpu, node.op, node.type.dtype);
    Fold& fold = accumulator.fold;
    if (length_ == Length::kShort) fold.type = fold.block_type;
    if (fold.type != fold.block_type && !loops_.inner.empty()) accumulator.block = absl::StrCat(c, "_block");
    text_.Line(absl::StrCat(fold.type, " ", c, "[", kTile, "];"));
    text_.Line(absl::StrCat(each, c, "[l] = ", fold.identity, ";"));
    return accumulator;
  }

  void Step(const Accumulator& accumulator) {
    const Expression& expression = body_.expressions[accumulator.expression];
    const ir::Node& node = text_.graph().node(expression.node);
    const std::string& operand = text_.name(expression.arguments[0]);
    const std::string lane = absl::StrCat(accumulator.block.empty() ? accumulator.name : accumulator.block, "[l]");
    if (!accumulator.is_index)
      return text_.Line(absl::StrCat(lane, " = ", Substitute(accumulator.fold.step, {lane, operand}), ";"));
    std::string flat;
    for (size_t k = 0; k < loops_.inner.size(); ++k) {
      flat = k == 0 ? "j0" : absl::StrCat("(", flat, ") * ", text_.Number(loops_.inner[k].extent), " + j", k);
    }
    text_.Line(absl::StrCat(node.op == ir::Op::kArgMax ? "lazy_arg<true>(" : "lazy_arg<false>(", lane, ", ",
                            accumulator.name, "_at[l], ", operand, ", ", flat, ");"));
  }

  void WriteStore(const Store& store, bool along_inner) {
    const ir::DType dtype = text_.TypeAt(store.address);
    text_.Line(absl::StrCat(PlaceText(store.address, along_inner), " = ",
                            StoreText(dtype, text_.name(store.expression)), ";"));
  }

  const Body& body_;
  const Loops& loops_;
  const Length length_;
  KernelText& text_;
  int stages_ = 0;
  std::vector<int> global_;
  std::vector<Accumulator> results_;  // of earlier stages
};

}  // namespace

void DeclareLanes(const std::string& columns, KernelText* text) {
  text->Line(absl::StrCat("const long rows = ", columns, " > 0 && ", columns, " <= ", kLanesOfRows, " ? ", kLanesOfRows,
                          " / ", columns, " : 1, lanes = rows * ", columns, ";"));
  text->Line(absl::StrCat("int row_of[", kLanesOfRows, "], column_of[", kLanesOfRows, "];"));
  text->Open(absl::StrCat("for (int l = 0, r = 0, c = 0; l < ", kLanesOfRows, "; ++l) {"));
  text->Line("row_of[l] = r, column_of[l] = c;");
  text->Line(absl::StrCat("if (++c == ", columns, ") c = 0, ++r;"));
  text->Close("}");
}

void WriteColumns(const Loops& loops, Length length, absl::Span<const int64_t> seen_extents, KernelText* text) {
  const auto seen = [&](const Loop& loop) { return SeenSize(loop.extent, seen_extents); };
  Loops across = loops;
  const auto longest = std::max_element(across.outer.begin(), across.outer.end(),
                                        [&](const Loop& a, const Loop& b) { return seen(a) < seen(b); });
  if (!loops.outer.empty() && seen(loops.outer.back()) <= kMostColumnsInLanes) {
    ColumnEmitter emitter(loops, length, text);
    if (emitter.MayHoldRows()) return emitter.Write(/*holds_rows=*/true);
  }
  const bool is_narrow = !loops.outer.empty() && seen(loops.outer.back()) < kFewColumns && seen(*longest) > kFewColumns;
  if (!is_narrow) return ColumnEmitter(loops, length, text).Write();
  text->Open(absl::StrCat("if (", text->Number(loops.outer.back().extent), " < ", kFewColumns, ") {"));
  std::rotate(longest, longest + 1, across.outer.end());
  ColumnEmitter(across, length, text).Write();
  text->Close("}");
  text->Open("else {");
  ColumnEmitter(loops, length, text).Write();
  text->Close("}");
}

WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents) {
  KernelText text(graph, body);
  const Loops loops = MakeLoops(body);
  WriteColumns(loops, Length::kAny, seen_extents, &text);
  return text.Finish("columns", RangeOf(loops));
}

}  // namespace torch_lazy::codegen
