// SPDX-License-Identifier: Apache-2.0
#include "ir/unify.h"

#include <string>

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

}  // namespace torch_lazy::ir
