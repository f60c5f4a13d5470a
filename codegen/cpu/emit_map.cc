// SPDX-License-Identifier: Apache-2.0
// Where everything lies evenly, one flat loop. Else the range is walked in runs along the innermost
// loop; the outer loops' positions are worked out once and then counted on.
#include "absl/strings/str_cat.h"
#include "codegen/cpu/emit.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen {
namespace {

class MapEmitter {
 public:
  MapEmitter(const ir::Graph& graph, const Body& body) : body_(body), loops_(MakeLoops(body)), text_(graph, body) {}

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
    text_.Open("for (long at = begin; at < end;) {");
    const std::string extent = text_.Number(loops_.outer[last].extent);
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
    const std::string offset = text_.IndexText(body_.addresses[a].index, along, /*with_offset=*/true);
    if (body_.addresses[a].slot >= 0) return absl::StrCat(bases_[a], "[", offset, "]");
    return bases_[a] == "0" ? offset : absl::StrCat(bases_[a], " + ", offset);
  }

  void WriteStores(const std::string& index) {
    for (const Store& store : body_.stores) {
      const ir::DType dtype = text_.TypeAt(store.address);
      text_.Line(
          absl::StrCat(PlaceText(store.address, index), " = ", StoreText(dtype, text_.name(store.expression)), ";"));
    }
  }

  const Body& body_;
  const Loops loops_;
  KernelText text_;
  std::vector<std::string> bases_;  // of each address: the pointer (or number) that the innermost index is added to
};

}  // namespace

WrittenKernel EmitMap(const ir::Graph& graph, const Body& body) { return MapEmitter(graph, body).Emit(); }

}  // namespace torch_lazy::codegen
