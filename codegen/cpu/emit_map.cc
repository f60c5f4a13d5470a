// SPDX-License-Identifier: Apache-2.0
// Where everything lies evenly, one flat loop. Else the range is walked in runs along the innermost
// loop; the outer loops' positions are worked out once and then counted on. What is read along the
// loop around the innermost one, as a transposed matrix is, is read in tiles of several runs.
//
// Runs seen first may be shorter than a vector: `cat([x, x.sin(), x.cos()], 1)` of points, [4096, 3],
// writes three numbers at a time. Such runs are walked many side by side, along an outer loop. Where
// one run begins where the last one ends, as in `x * weight` of 8 channels, a vector holds several.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "codegen/cpu/emit.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kTileRuns = 16;         // runs; a line of the cache of 32-bit numbers
constexpr int kShortRun = 16;         // elements
constexpr int kManySideBySide = 32;   // runs
constexpr int kMostSideBySide = 256;  // so that what they read and write stays in the cache

class MapEmitter {
 public:
  MapEmitter(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents)
      : body_(body), loops_(MakeLoops(body)), seen_extents_(seen_extents), text_(graph, body) {}

  WrittenKernel Emit() {
    bases_.resize(body_.addresses.size());
    for (size_t a = 0; a < bases_.size(); ++a) {
      const int slot = body_.addresses[a].slot;
      bases_[a] = slot < 0 ? "0" : text_.PointerTo(slot);
    }
    DefineThose([](uint64_t uses) { return uses == 0; }, "");
    if (loops_.outer.size() <= 1) {
      EmitFlat();
    } else {
      EmitRuns();
    }
    return text_.Finish("map", RangeOf(loops_));
  }

 private:
  uint64_t InnermostBits() const { return loops_.outer.empty() ? 0 : loops_.outer.back().bits; }

  void EmitFlat() {
    text_.Independent();
    text_.Open("for (long i = begin; i < end; ++i) {");
    DefineThose([](uint64_t) { return true; }, "i");
    WriteStores("i");
    text_.Close("}");
  }

  void EmitRuns() {
    const size_t last = loops_.outer.size() - 1;
    text_.Line("long rest = begin;");
    for (size_t k = last; k > 0; --k) {
      const std::string extent = text_.Number(loops_.outer[k].extent);
      text_.Line(absl::StrCat("long i", k, " = rest % ", extent, ";"));
      text_.Line(absl::StrCat("rest /= ", extent, ";"));
    }
    text_.Line("long i0 = rest;");
    if (HoldsRuns(last)) DeclareLanes(text_.Number(loops_.outer[last].extent), &text_);
    text_.Open("for (long at = begin; at < end;) {");
    const std::string extent = text_.Number(loops_.outer[last].extent);
    if (HoldsRuns(last)) {
      EmitRunsInLanes(last);
    } else if (SeenSize(loops_.outer[last].extent, seen_extents_) <= kShortRun) {
      EmitShortRuns(last);
    } else {
      EmitTiles(last, extent);
    }
    text_.Line(absl::StrCat("const long left = ", extent, " - i", last, ";"));
    text_.Line("const long run = left < end - at ? left : end - at;");
    PlaceBases(last);
    const uint64_t innermost = InnermostBits();
    DefineThose([innermost](uint64_t uses) { return (uses & innermost) == 0; }, "");
    text_.Independent();
    text_.Open("for (long j = 0; j < run; ++j) {");
    DefineThose([](uint64_t) { return true; }, "j");
    WriteStores("j");
    text_.Close("}");
    text_.Line("at += run;");
    text_.Line(absl::StrCat("i", last, " = 0;"));
    CountOn(last);
    text_.Close("}");
  }

  // Whether what changes along runs lies as evenly from one run to the next.
  bool AreEven(size_t last) const {
    const Polynomial length(loops_.outer[last].extent);
    return std::none_of(body_.addresses.begin(), body_.addresses.end(),
                        [&](const Address& address) {
                          const Polynomial within = address.index.CoefficientOf(loops_.outer[last].variable);
                          const Polynomial from_run_to_run =
                              address.index.CoefficientOf(loops_.outer[last - 1].variable);
                          const bool is_even =
                              within.is_zero() || from_run_to_run.is_zero() || from_run_to_run == within * length;
                          return !is_even || DependsOnData(body_, address);
                        }) &&
           std::all_of(body_.stores.begin(), body_.stores.end(), [&](const Store& store) {
             const Affine& index = body_.addresses[store.address].index;
             return index.CoefficientOf(loops_.outer[last - 1].variable) ==
                    index.CoefficientOf(loops_.outer[last].variable) * length;
           });
  }

  // Whether there is a text in which a vector holds several runs.
  bool HoldsRuns(size_t last) const {
    return SeenSize(loops_.outer[last].extent, seen_extents_) <= kMostColumnsInLanes && AreEven(last);
  }

  // Several whole runs in a vector. What only the place in a run says is computed once for all runs.
  void EmitRunsInLanes(size_t last) {
    const std::string length = text_.Number(loops_.outer[last].extent), outer = absl::StrCat("i", last - 1);
    const uint64_t run_bits = loops_.outer[last - 1].bits, place_bits = loops_.outer[last].bits;
    text_.Line(absl::StrCat("const long whole = (end - at) / ", length,
                            ", rest_of_loop = ", text_.Number(loops_.outer[last - 1].extent), " - ", outer, ";"));
    text_.Line("const long runs = whole < rest_of_loop ? whole : rest_of_loop;");
    text_.Open(absl::StrCat("if (rows > 1 && runs > 0 && i", last, " == 0) {"));
    const std::vector<std::string> bases = bases_;
    PlaceBases(last);
    const auto place = [&](int a) {
      const Affine& index = body_.addresses[a].index;
      const bool is_even = index.CoefficientOf(loops_.outer[last - 1].variable) ==
                           index.CoefficientOf(loops_.outer[last].variable) * Polynomial(loops_.outer[last].extent);
      return PlaceText(a, is_even ? "l" : "column_of[l]", last, is_even ? "r" : "(r + row_of[l])");
    };
    std::vector<int> defined;
    const auto define = [&](auto filter) { DefineAt(filter, place, &defined); };
    const auto forget = [&] {
      for (const int e : std::exchange(defined, {})) text_.Forget(e);
    };
    const std::vector<int> hoisted = PlacesWithoutRuns(run_bits, place_bits);
    if (!hoisted.empty()) {
      for (const int e : hoisted)
        text_.Line(absl::StrCat(ComputeType(body_.expressions[e].dtype), " h", e, "[", kLanesOfRows, "];"));
      text_.Independent();
      text_.Open("for (long l = 0; l < lanes; ++l) {");
      define([&](uint64_t uses) { return (uses & run_bits) == 0; });
      for (const int e : hoisted) text_.Line(absl::StrCat("h", e, "[l] = ", text_.name(e), ";"));
      text_.Close("}");
      forget();
    }
    text_.Open("const auto step = [&](const long r, const long count) __attribute__((always_inline)) {");
    text_.Independent();
    text_.Open("for (long l = 0; l < count; ++l) {");
    for (const int e : hoisted) {
      text_.SetName(e, absl::StrCat("h", e, "[l]"));
      defined.push_back(e);
    }
    define([](uint64_t) { return true; });
    StoreAt(place);
    forget();
    text_.Close("}");
    text_.Close("};");
    text_.Line("long r = 0;");
    text_.Line(absl::StrCat("if (lanes == ", kLanesOfRows, ") for (; r + rows <= runs; r += rows) step(r, ",
                            kLanesOfRows, ");"));
    text_.Line(
        absl::StrCat("for (; r < runs; r += rows) step(r, (runs - r < rows ? runs - r : rows) * ", length, ");"));
    bases_ = bases;
    text_.Line(absl::StrCat("at += runs * ", length, ";"));
    text_.Line(absl::StrCat(outer, " += runs - 1;"));
    CountOn(last);
    text_.Line("continue;");
    text_.Close("}");
  }

  // Expressions that depend on the place in a run and not on the run, of which one that depends on the run is made.
  std::vector<int> PlacesWithoutRuns(uint64_t run_bits, uint64_t place_bits) const {
    std::vector<int> found;
    const auto add = [&](int e) {
      const uint64_t uses = body_.expressions[e].uses;
      if ((uses & run_bits) == 0 && (uses & place_bits) != 0 && !absl::c_linear_search(found, e)) found.push_back(e);
    };
    for (const Expression& expression : body_.expressions) {
      if ((expression.uses & run_bits) != 0) absl::c_for_each(expression.arguments, add);
    }
    for (const Store& store : body_.stores) add(store.expression);
    return found;
  }

  // The innermost loop, but for the last one, that was long; else the longest.
  size_t LoopOfShortRuns(size_t last) const {
    size_t longest = last - 1;
    for (size_t k = last; k-- > 0;) {
      const double extent = SeenSize(loops_.outer[k].extent, seen_extents_);
      if (extent >= kManySideBySide) return k;
      if (extent > SeenSize(loops_.outer[longest].extent, seen_extents_)) longest = k;
    }
    return longest;
  }

  // Many short runs at a time, where they are whole: for each place in a run, one loop through all of them.
  void EmitShortRuns(size_t last) {
    const size_t along = LoopOfShortRuns(last);
    const std::string position = absl::StrCat("i", along);
    std::string at_start, size;
    for (size_t k = along + 1; k <= last; ++k) {
      absl::StrAppend(&at_start, " && i", k, " == 0");
      absl::StrAppend(&size, size.empty() ? "" : " * ", text_.Number(loops_.outer[k].extent));
    }
    text_.Line(absl::StrCat("const long size = ", size, ", whole = (end - at) / size, rest_of_loop = ",
                            text_.Number(loops_.outer[along].extent), " - ", position, ";"));
    text_.Line(absl::StrCat("long runs = whole < rest_of_loop ? whole : rest_of_loop;"));
    text_.Open(absl::StrCat("if (", text_.Number(loops_.outer[last].extent), " <= ", kShortRun,
                            " && runs >= ", kTileRuns, at_start, ") {"));
    text_.Line(absl::StrCat("if (runs > ", kMostSideBySide, ") runs = ", kMostSideBySide, ";"));
    const std::vector<std::string> bases = bases_;
    for (size_t k = along + 1; k <= last; ++k) {
      const std::string i = absl::StrCat("i", k);
      text_.Open(
          absl::StrCat("for (long ", i, " = 0; ", i, " < ", text_.Number(loops_.outer[k].extent), "; ++", i, ") {"));
    }
    PlaceBases(last);
    const auto place = [&](int a) { return PlaceText(a, {{&loops_.outer[along], "r"}}); };
    std::vector<int> defined;
    DefineAt([&](uint64_t uses) { return (uses & loops_.outer[along].bits) == 0; }, place, &defined);
    text_.Independent();
    text_.Open("for (long r = 0; r < runs; ++r) {");
    DefineAt([](uint64_t) { return true; }, place, &defined);
    StoreAt(place);
    text_.Close("}");
    for (size_t k = along + 1; k <= last; ++k) text_.Close("}");
    for (const int e : defined) text_.Forget(e);
    bases_ = bases;
    text_.Line("at += runs * size;");
    text_.Line(absl::StrCat(position, " += runs - 1;"));
    CountOn(along + 1);
    text_.Line("continue;");
    text_.Close("}");
  }

  // Whether the expression is a number in memory beside which the next run's lies, and not its own run's next.
  bool IsTransposed(const Expression& e, size_t last) const {
    if (e.kind != Expression::Kind::kLoad || body_.addresses[e.address].slot < 0) return false;
    const Affine& index = body_.addresses[e.address].index;
    const bool has_data = std::any_of(index.terms.begin(), index.terms.end(), [&](const Affine::Term& term) {
      return body_.variables[term.variable].kind == Variable::Kind::kData;
    });
    const Polynomial stride = index.CoefficientOf(loops_.outer[last].variable);
    return !has_data && index.CoefficientOf(loops_.outer[last - 1].variable).is_one() && !stride.is_zero() &&
           !stride.is_one();
  }

  // Several whole runs at a time, in columns as wide: a tile is read line by line, so that each line of the cache is
  // fetched once, and is then computed with run by run.
  void EmitTiles(size_t last, const std::string& extent) {
    std::vector<int> transposed;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (IsTransposed(body_.expressions[e], last)) transposed.push_back(static_cast<int>(e));
    }
    if (transposed.empty()) return;
    const std::string outer = absl::StrCat("i", last - 1);
    text_.Open(absl::StrCat("if (i", last, " == 0 && end - at >= ", kTileRuns, " * ", extent, " && ",
                            text_.Number(loops_.outer[last - 1].extent), " - ", outer, " >= ", kTileRuns, ") {"));
    const std::vector<std::string> bases = bases_;
    PlaceBases(last);
    text_.Open(absl::StrCat("for (long c = 0; c < ", extent, "; c += ", kTileRuns, ") {"));
    text_.Line(
        absl::StrCat("const long width = ", extent, " - c < ", kTileRuns, " ? ", extent, " - c : ", kTileRuns, ";"));
    for (const int e : transposed) {
      const Expression& load = body_.expressions[e];
      const std::string place = PlaceText(load.address, "(c + k)", last, "r");
      text_.Line(absl::StrCat(ComputeType(load.dtype), " tile", e, "[", kTileRuns, "][", kTileRuns, "];"));
      text_.Open("for (long k = 0; k < width; ++k) {");
      text_.Line(absl::StrCat("for (long r = 0; r < ", kTileRuns, "; ++r) tile", e,
                              "[r][k] = ", LoadText(load.dtype, place), ";"));
      text_.Close("}");
    }
    text_.Open(absl::StrCat("for (long r = 0; r < ", kTileRuns, "; ++r) {"));
    const std::vector<int> of_runs =
        DefineInTile([&](uint64_t uses) { return (uses & InnermostBits()) == 0; }, last, {});
    text_.Independent();
    text_.Open("for (long j = 0; j < width; ++j) {");
    const std::vector<int> of_columns = DefineInTile([](uint64_t) { return true; }, last, transposed);
    StoreAt([&](int a) { return PlaceText(a, "(c + j)", last, "r"); });
    text_.Close("}");
    text_.Close("}");
    text_.Close("}");
    for (const std::vector<int>& defined : {of_runs, of_columns}) {
      for (const int e : defined) text_.Forget(e);
    }
    bases_ = bases;
    text_.Line(absl::StrCat("at += ", kTileRuns, " * ", extent, ";"));
    text_.Line(absl::StrCat(outer, " += ", kTileRuns - 1, ";"));
    CountOn(last);
    text_.Line("continue;");
    text_.Close("}");
  }

  // As DefineThose, within a tile. Returns what is new.
  template <typename Filter>
  std::vector<int> DefineInTile(Filter filter, size_t last, const std::vector<int>& transposed) {
    std::vector<int> defined;
    for (int e = 0; e < static_cast<int>(body_.expressions.size()); ++e) {
      const Expression& expression = body_.expressions[e];
      if (text_.defined(e) || !filter(expression.uses)) continue;
      if (absl::c_linear_search(transposed, e)) {
        text_.DefineAs(e, absl::StrCat("tile", e, "[r][j]"));
      } else {
        text_.Define(e, expression.address < 0 ? "" : PlaceText(expression.address, "(c + j)", last, "r"));
      }
      defined.push_back(e);
    }
    return defined;
  }

  // Where each address stands at the beginning of a run.
  void PlaceBases(size_t last) {
    std::vector<KernelText::Along> along;
    for (size_t k = 0; k <= last; ++k) along.push_back({&loops_.outer[k], absl::StrCat("i", k)});
    for (size_t a = 0; a < bases_.size(); ++a) {
      const Address& address = body_.addresses[a];
      const std::string index = text_.IndexText(address.index, along, /*with_offset=*/false);
      const std::string name = absl::StrCat("a", a);
      if (address.slot < 0) {
        text_.Line(absl::StrCat("const long ", name, " = ", index, ";"));
      } else {
        text_.Line(absl::StrCat("auto* const ", name, " = ", bases_[a], " + ", index, ";"));
      }
      bases_[a] = name;
    }
  }

  // The outer loops' positions after a run, like an odometer's.
  void CountOn(size_t last) {
    std::string line, braces;
    for (size_t k = last - 1; k > 0; --k) {
      absl::StrAppend(&line, "if (++i", k, " == ", text_.Number(loops_.outer[k].extent), ") { i", k, " = 0; ");
      absl::StrAppend(&braces, " }");
    }
    text_.Line(absl::StrCat(line, "++i0;", braces));
  }

  // Defines what is not yet, and depends on the loops only as the filter allows; `index` walks the
  // innermost loop.
  template <typename Filter>
  void DefineThose(Filter filter, const std::string& index) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (text_.defined(static_cast<int>(e)) || !filter(expression.uses)) continue;
      text_.Define(static_cast<int>(e), expression.address < 0 ? "" : PlaceText(expression.address, index));
    }
  }

  std::string PlaceText(int a, const std::string& index) {
    std::vector<KernelText::Along> along;
    if (!loops_.outer.empty() && !index.empty()) along.push_back({&loops_.outer.back(), index});
    return PlaceText(a, along);
  }

  std::string PlaceText(int a, const std::string& index, size_t last, const std::string& run) {
    return PlaceText(a, {{&loops_.outer[last - 1], run}, {&loops_.outer[last], index}});
  }

  std::string PlaceText(int a, const std::vector<KernelText::Along>& along) {
    const std::string offset = text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    if (body_.addresses[a].slot >= 0) return absl::StrCat(bases_[a], "[", offset, "]");
    return bases_[a] == "0" ? offset : absl::StrCat(bases_[a], " + ", offset);
  }

  void WriteStores(const std::string& index) {
    StoreAt([&](int a) { return PlaceText(a, index); });
  }

  // place(address): where an address is.
  template <typename Place>
  void StoreAt(const Place& place) {
    for (const Store& store : body_.stores) {
      const std::string number = StoreText(text_.TypeAt(store.address), text_.name(store.expression));
      text_.Line(absl::StrCat(place(store.address), " = ", number, ";"));
    }
  }

  // As DefineThose; adds what is new.
  template <typename Filter, typename Place>
  void DefineAt(const Filter& filter, const Place& place, std::vector<int>* defined) {
    for (int e = 0; e < static_cast<int>(body_.expressions.size()); ++e) {
      const Expression& expression = body_.expressions[e];
      if (text_.defined(e) || !filter(expression.uses)) continue;
      text_.Define(e, expression.address < 0 ? "" : place(expression.address));
      defined->push_back(e);
    }
  }

  const Body& body_;
  const Loops loops_;
  const absl::Span<const int64_t> seen_extents_;
  KernelText text_;
  std::vector<std::string> bases_;  // of each address: the pointer (or number) that the innermost index is added to
};

}  // namespace

WrittenKernel EmitMap(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents) {
  return MapEmitter(graph, body, seen_extents).Emit();
}

}  // namespace torch_lazy::codegen
