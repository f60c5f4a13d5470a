// SPDX-License-Identifier: Apache-2.0
// A row is walked once per stage: a stage folds what the reductions of the stage before allow to be
// known. Numbers of an inner loop are computed anew in each stage; those of the row as a whole are
// constants between the loops.
//
// A reduction has 32 accumulators side by side, which become vector registers and make long sums
// exact.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/emit.h"
#include "codegen/op_text.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kLanes = 32;

class RowEmitter {
 public:
  RowEmitter(const ir::Graph& graph, const Body& body)
      : body_(body), loops_(MakeLoops(body)), text_(graph, body) {}

  WrittenKernel Emit() {
    text_.Open("for (long r = begin; r < end; ++r) {");
    PlaceBases();
    int stages = 0;
    for (const Expression& e : body_.expressions) stages = std::max(stages, e.depth + 1);
    for (int stage = 0; stage < stages; ++stage) {
      DefineRowNumbers(stage);
      EmitStage(stage);
    }
    text_.Close("}");
    return text_.Finish("rows", RangeOf(loops_));
  }

 private:
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
      const std::string pointer =
          address.slot < 0 ? "" : absl::StrCat(text_.PointerTo(address.slot), " + ");
      text_.Line(absl::StrCat(address.slot < 0 ? "const long a" : "auto* const a", a, " = ",
                              pointer, index, ";"));
    }
  }

  std::string PlaceText(int a, bool along_inner) {
    std::vector<KernelText::Along> along;
    for (size_t k = 0; along_inner && k < loops_.inner.size(); ++k)
      along.push_back({&loops_.inner[k], IndexName(k)});
    const std::string offset =
        text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    return body_.addresses[a].slot >= 0 ? absl::StrCat("a", a, "[", offset, "]")
                                        : absl::StrCat("a", a, " + ", offset);
  }

  std::string IndexName(size_t k) const {
    return k + 1 == loops_.inner.size() ? "j" : absl::StrCat("j", k);
  }

  // The number of the element within its row.
  std::string FlatIndex() {
    std::string flat;
    for (size_t k = 0; k < loops_.inner.size(); ++k) {
      flat = k == 0 ? IndexName(k)
                    : absl::StrCat("(", flat, ") * ", text_.Number(loops_.inner[k].extent), " + ",
                                   IndexName(k));
    }
    return flat;
  }

  // What is the same for the whole row and known before the stage's loop. Reductions got their
  // names after theirs.
  void DefineRowNumbers(int stage) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.depth != stage || body_.uses_inner(e) || text_.defined(e)) continue;
      text_.Define(
          e, expression.address < 0 ? "" : PlaceText(expression.address, /*along_inner=*/false));
    }
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth == stage && !StoresInner(store))
        WriteStore(store, false);
    }
  }

  // A row's number may be stored all along the row.
  bool StoresInner(const Store& store) const {
    const auto& terms = body_.addresses[store.address].index.terms;
    return std::any_of(terms.begin(), terms.end(), [&](const Affine::Term& term) {
      return (body_.inner >> term.variable & 1) != 0;
    });
  }

  void WriteStore(const Store& store, bool along_inner) {
    const ir::DType dtype = text_.SlotType(body_.addresses[store.address].slot);
    text_.Line(absl::StrCat(PlaceText(store.address, along_inner), " = ",
                            StoreText(dtype, text_.name(store.expression)), ";"));
  }

  struct Accumulator {
    int expression;
    std::string name;
    Fold fold;  // not of argmax and argmin
    bool is_index;
  };

  void EmitStage(int stage) {
    std::vector<Accumulator> accumulators;
    std::vector<Store> stores;
    std::vector<int> sinks;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const Expression& expression = body_.expressions[e];
      if (expression.kind != Expression::Kind::kReduce || expression.depth != stage + 1) continue;
      accumulators.push_back(NewAccumulator(static_cast<int>(e)));
      sinks.push_back(expression.arguments[0]);
    }
    for (const Store& store : body_.stores) {
      if (body_.expressions[store.expression].depth != stage || !StoresInner(store)) continue;
      stores.push_back(store);
      sinks.push_back(store.expression);
    }
    if (sinks.empty()) return;
    const std::vector<int> numbers = InnerNumbersFor(sinks);

    for (const Accumulator& accumulator : accumulators) Declare(accumulator);
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) {
      const std::string j = IndexName(k);
      text_.Open(absl::StrCat("for (long ", j, " = 0; ", j, " < ",
                              text_.Number(loops_.inner[k].extent), "; ++", j, ") {"));
    }
    const std::string extent =
        loops_.inner.empty() ? "1" : text_.Number(loops_.inner.back().extent);
    if (accumulators.empty()) {
      text_.Line("#pragma GCC ivdep");
      text_.Open(absl::StrCat("for (long j = 0; j < ", extent, "; ++j) {"));
      Step(numbers, accumulators, stores);
      text_.Close("}");
    } else {
      text_.Open("{");
      text_.Open("const auto step = [&](long j, int l) __attribute__((always_inline)) {");
      Step(numbers, accumulators, stores);
      text_.Close("};");
      text_.Line("long j = 0;");
      text_.Open(absl::StrCat("for (; j + ", kLanes, " <= ", extent, "; j += ", kLanes, ") {"));
      text_.Line("#pragma GCC ivdep");
      text_.Line(absl::StrCat("for (int l = 0; l < ", kLanes, "; ++l) step(j + l, l);"));
      text_.Close("}");
      text_.Line(absl::StrCat("for (int l = 0; j < ", extent, "; ++j, ++l) step(j, l);"));
      text_.Close("}");
    }
    for (size_t k = 0; k + 1 < loops_.inner.size(); ++k) text_.Close("}");
    for (const int number : numbers) text_.Forget(number);
    for (const Accumulator& accumulator : accumulators) Combine(accumulator);
  }

  // All that must be computed in the inner loop for the sinks, in order.
  std::vector<int> InnerNumbersFor(std::vector<int> sinks) const {
    std::vector<bool> needed(body_.expressions.size());
    while (!sinks.empty()) {
      const int e = sinks.back();
      sinks.pop_back();
      if (needed[e] || !body_.uses_inner(e)) continue;
      needed[e] = true;
      const Expression& expression = body_.expressions[e];
      sinks.insert(sinks.end(), expression.arguments.begin(), expression.arguments.end());
      if (expression.address < 0) continue;
      for (const Affine::Term& term : body_.addresses[expression.address].index.terms) {
        if (body_.variables[term.variable].kind == Variable::Kind::kData)
          sinks.push_back(body_.data[term.variable]);
      }
    }
    std::vector<int> numbers;
    for (size_t e = 0; e < needed.size(); ++e) {
      if (needed[e]) numbers.push_back(static_cast<int>(e));
    }
    return numbers;
  }

  void Step(const std::vector<int>& numbers, const std::vector<Accumulator>& accumulators,
            const std::vector<Store>& stores) {
    for (const int number : numbers) {
      const int address = body_.expressions[number].address;
      text_.Define(number, address < 0 ? "" : PlaceText(address, /*along_inner=*/true));
    }
    for (const Accumulator& accumulator : accumulators) {
      const std::string& operand =
          text_.name(body_.expressions[accumulator.expression].arguments[0]);
      const std::string lane = absl::StrCat(accumulator.name, "[l]");
      if (accumulator.is_index) {
        text_.Line(absl::StrCat(ArgFunction(accumulator), "(", lane, ", ", accumulator.name,
                                "_at[l], ", operand, ", ", FlatIndex(), ");"));
      } else {
        text_.Line(
            absl::StrCat(lane, " = ", Substitute(accumulator.fold.step, {lane, operand}), ";"));
      }
    }
    for (const Store& store : stores) WriteStore(store, /*along_inner=*/true);
  }

  Accumulator NewAccumulator(int expression) {
    const ir::Node& node = text_.graph().node(body_.expressions[expression].node);
    Accumulator accumulator{expression, text_.NewName('c'), {}, false};
    accumulator.is_index = node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin;
    if (!accumulator.is_index) accumulator.fold = FoldOf(node.op, node.type.dtype);
    return accumulator;
  }

  std::string ArgFunction(const Accumulator& accumulator) const {
    const ir::Op op = text_.graph().node(body_.expressions[accumulator.expression].node).op;
    return op == ir::Op::kArgMax ? "lazy_arg<true>" : "lazy_arg<false>";
  }

  void Declare(const Accumulator& accumulator) {
    const std::string each = absl::StrCat("for (int l = 0; l < ", kLanes, "; ++l) ");
    const std::string& c = accumulator.name;
    if (accumulator.is_index) {
      const int operand = body_.expressions[accumulator.expression].arguments[0];
      text_.Line(absl::StrCat(ComputeType(body_.expressions[operand].dtype), " ", c, "[", kLanes,
                              "] = {};"));
      text_.Line(absl::StrCat("long ", c, "_at[", kLanes, "];"));
      text_.Line(absl::StrCat(each, c, "_at[l] = -1;"));
      return;
    }
    text_.Line(absl::StrCat(accumulator.fold.type, " ", c, "[", kLanes, "];"));
    text_.Line(absl::StrCat(each, c, "[l] = ", accumulator.fold.identity, ";"));
  }

  // The lanes become one number, the reduction's.
  void Combine(const Accumulator& accumulator) {
    const std::string& c = accumulator.name;
    const ir::DType dtype = body_.expressions[accumulator.expression].dtype;
    text_.Open(absl::StrCat("for (int half = ", kLanes / 2, "; half > 0; half /= 2) {"));
    std::string line =
        absl::StrCat(c, "[l] = ",
                     Substitute(accumulator.fold.combine,
                                {absl::StrCat(c, "[l]"), absl::StrCat(c, "[l + half]")}),
                     ";");
    if (accumulator.is_index) {
      line = absl::StrCat(ArgFunction(accumulator), "(", c, "[l], ", c, "_at[l], ", c,
                          "[l + half], ", c, "_at[l + half]);");
    }
    text_.Line(absl::StrCat("for (int l = 0; l < half; ++l) ", line));
    text_.Close("}");
    const std::string name = text_.NewName('v');
    const std::string type = ComputeType(dtype);
    const std::string result =
        accumulator.is_index ? absl::StrCat(c, "_at[0]") : absl::StrCat("(", type, ")", c, "[0]");
    text_.Line(absl::StrCat("const ", type, " ", name, " = ", result, ";"));
    text_.SetName(accumulator.expression, name);
  }

  const Body& body_;
  const Loops loops_;
  KernelText text_;
};

}  // namespace

WrittenKernel EmitRows(const ir::Graph& graph, const Body& body) {
  return RowEmitter(graph, body).Emit();
}

}  // namespace torch_lazy::codegen
