// SPDX-License-Identifier: Apache-2.0
// Tiles of columns walk down together: the innermost loop runs across the tile, whose columns lie
// side by side, and each column has an accumulator of its own. Short rows are walked so, too: a
// tile is some rows, and its columns lie a row's length apart.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/emit.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kTile = 64;
constexpr int kFewColumns = 16;    // side by side
constexpr int kColumnBlock = 128;  // elements of a column

class ColumnEmitter {
 public:
  ColumnEmitter(const Loops& loops, Length length, KernelText* text)
      : body_(text->body()), loops_(loops), length_(length), text_(*text) {}

  void Write() {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {  // numbers that no loop changes
      const Expression& expression = body_.expressions[e];
      if (expression.uses != 0 || expression.depth > 0) continue;
      text_.Define(static_cast<int>(e), expression.address < 0 ? "" : FixedPlaceText(expression.address));
      global_.push_back(static_cast<int>(e));
    }
    OpenTiles();
    int stages = 0;
    for (const Expression& e : body_.expressions) stages = std::max(stages, e.depth + 1);
    for (int stage = 0; stage < stages; ++stage) EmitStage(stage);
    EmitColumnStores();
    CloseTiles();
    for (const int e : global_) text_.Forget(e);
  }

 private:
  // The range is walked in tiles along the innermost outer loop.
  void OpenTiles() {
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
    text_.Open("const auto tile = [&](const long run) __attribute__((always_inline)) {");
  }

  void CloseTiles() {
    text_.Close("};");
    text_.Line(absl::StrCat("if (width == ", kTile, ") tile(", kTile, "); else tile(width);"));
    text_.Line("at += width;");
    text_.Close("}");
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

  void EmitStage(int stage) {
    std::vector<Accumulator> accumulators;
    std::vector<int> sinks;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.kind != Expression::Kind::kReduce || expression.depth != stage + 1) continue;
      accumulators.push_back(Declare(static_cast<int>(e)));
      sinks.push_back(expression.arguments[0]);
    }
    std::vector<Store> stores;
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth != stage || !StoresInner(store)) continue;
      stores.push_back(store);
      sinks.push_back(store.expression);
    }
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
    OpenLanes(sinks);
    for (const Accumulator& accumulator : accumulators) Step(accumulator);
    for (const Store& store : stores) WriteStore(store, /*along_inner=*/true);
    CloseLanes();
    if (has_blocks) CloseBlock(accumulators);
    for (size_t k = 0; k < loops_.inner.size(); ++k) text_.Close("}");
    for (const Accumulator& accumulator : accumulators) results_.push_back(accumulator);
  }

  // Sums of f32 are f32 within a block, and double from block to block.
  void OpenBlock(const std::string& j, const std::string& extent, const std::vector<Accumulator>& accumulators) {
    text_.Open(absl::StrCat("for (long ", j, " = 0; ", j, " < ", extent, ";) {"));
    text_.Line(absl::StrCat("const long stop = ", extent, " - ", j, " < ", kColumnBlock, " ? ", extent, " : ", j, " + ",
                            kColumnBlock, ";"));
    for (const Accumulator& accumulator : accumulators) {
      if (!accumulator.block.empty())
        text_.Line(absl::StrCat(accumulator.fold.block_type, " ", accumulator.block, "[", kTile, "] = {};"));
    }
    text_.Open(absl::StrCat("for (; ", j, " < stop; ++", j, ") {"));
  }

  void CloseBlock(const std::vector<Accumulator>& accumulators) {
    text_.Close("}");
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
    OpenLanes(sinks);
    for (const Store& store : stores) WriteStore(store, /*along_inner=*/false);
    CloseLanes();
  }

  // The loop across the tile, with everything defined that the sinks need.
  void OpenLanes(const std::vector<int>& sinks) {
    text_.Independent();
    text_.Open("for (long l = 0; l < run; ++l) {");
    for (const Accumulator& result : results_) {
      const std::string type = ComputeType(body_.expressions[result.expression].dtype);
      text_.SetName(result.expression, result.is_index ? absl::StrCat(result.name, "_at[l]")
                                                       : absl::StrCat("(", type, ")", result.name, "[l]"));
    }
    for (const int e : NumbersFor(sinks)) {
      if (text_.defined(e)) continue;
      const int address = body_.expressions[e].address;
      text_.Define(e, address < 0 ? "" : PlaceText(address, /*along_inner=*/true));
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
    const bool is_index = node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin;
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
  std::vector<int> global_;
  std::vector<Accumulator> results_;  // of earlier stages
};

}  // namespace

void WriteColumns(const Loops& loops, Length length, absl::Span<const int64_t> seen_extents, KernelText* text) {
  const auto seen = [&](const Loop& loop) { return SeenSize(loop.extent, seen_extents); };
  Loops across = loops;
  const auto longest = std::max_element(across.outer.begin(), across.outer.end(),
                                        [&](const Loop& a, const Loop& b) { return seen(a) < seen(b); });
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
