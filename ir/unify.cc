// SPDX-License-Identifier: Apache-2.0
#include "ir/unify.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/attrs.h"

namespace torch_lazy::ir {
namespace {

class Unifier {
 public:
  explicit Unifier(int num_symbols) : symbols_(static_cast<size_t>(num_symbols), -1) {}

  bool Add(const Node& general, const Node& special) {
    if (general.op != special.op || general.inputs != special.inputs || general.type.dtype != special.type.dtype ||
        !Same(general.type.dims, special.type.dims)) {
      return false;
    }
    bool same = true;
    VisitAttrs([&](Attr, const char*, auto field) { same = same && Same(general.attrs.*field, special.attrs.*field); });
    return same;
  }
  std::vector<int32_t> Take() { return std::move(symbols_); }

 private:
  template <typename T>
  bool Same(const T& a, const T& b) {
    return a == b;
  }
  bool Same(const double& a, const double& b) { return SameBits(a, b); }
  bool Same(const Extent& general, const Extent& special) {
    if (general.is_constant() || special.is_constant()) return general == special;
    int32_t& symbol = symbols_[static_cast<size_t>(general.symbol())];
    if (symbol < 0) symbol = special.symbol();
    return symbol == special.symbol();
  }
  bool Same(const Dims& general, const Dims& special) {
    if (general.size() != special.size()) return false;
    for (size_t d = 0; d < general.size(); ++d) {
      if (!Same(general[d], special[d])) return false;
    }
    return true;
  }

  std::vector<int32_t> symbols_;
};

// Makes one graph of two: the first of each pair of extents becomes the symbol of that pair.
class Generalizer {
 public:
  bool Add(Node* a, const Node& b) {
    if (a->op != b.op || a->inputs != b.inputs || a->type.dtype != b.type.dtype || !Join(&a->type.dims, b.type.dims))
      return false;
    bool same = true;
    VisitAttrs([&](Attr, const char*, auto field) { same = same && Join(&(a->attrs.*field), b.attrs.*field); });
    return same;
  }

 private:
  template <typename T>
  bool Join(const T* a, const T& b) {
    return *a == b;
  }
  bool Join(const double* a, const double& b) { return SameBits(*a, b); }
  bool Join(Extent* a, const Extent& b) {
    if (a->is_constant() || b.is_constant()) return *a == b;
    const auto next = static_cast<int32_t>(symbols_.size());
    *a = Extent::Symbol(symbols_.try_emplace({a->symbol(), b.symbol()}, next).first->second);
    return true;
  }
  bool Join(Dims* a, const Dims& b) {
    if (a->size() != b.size()) return false;
    for (size_t d = 0; d < a->size(); ++d) {
      if (!Join(&(*a)[d], b[d])) return false;
    }
    return true;
  }

  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> symbols_;
};

}  // namespace

std::optional<std::vector<int32_t>> Unify(const Graph& general, const Graph& special) {
  if (general.nodes.size() != special.nodes.size() || general.outputs != special.outputs) {
    return std::nullopt;
  }
  Unifier unifier(general.num_symbols());
  for (size_t v = 0; v < general.nodes.size(); ++v) {
    if (!unifier.Add(general.nodes[v], special.nodes[v])) return std::nullopt;
  }
  return unifier.Take();
}

std::optional<Graph> Generalize(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || a.outputs != b.outputs) return std::nullopt;
  Graph general = a;
  Generalizer generalizer;
  for (size_t v = 0; v < b.nodes.size(); ++v) {
    if (!generalizer.Add(&general.nodes[v], b.nodes[v])) return std::nullopt;
  }
  return general;
}

}  // namespace torch_lazy::ir
