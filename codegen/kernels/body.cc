// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/body.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/pace.h"
#include "codegen/layout/copies.h"
#include "codegen/partition/reduction_fit.h"

namespace torch_lazy::codegen {
namespace {

class BodyMaker {
 public:
  BodyMaker(const ir::Graph& graph, const Factors& factors, const Partition& partition, const Group& group)
      : graph_(graph), factors_(factors), partition_(partition), group_(group) {}

  Body Make() {
    body_.data.assign(group_.variables.size(), -1);
    for (size_t k = 0; k < group_.variables.size(); ++k) {
      if (group_.variables[k].kind == Variable::Kind::kInner) body_.inner |= uint64_t{1} << k;
    }
    for (const Group::Root& root : group_.roots) {
      const ir::Node& node = graph_.node(root.value);
      const bool is_put = node.op == ir::Op::kPut;
      const int expression = is_put ? Get(node.inputs[1], root.map) : Compute(root.value, root.map);
      const int place = is_put ? PlaceOfPut(root.value, root.map) : root.map;
      body_.stores.push_back({expression, AddressOf(root.value, place, /*written=*/true)});
    }
    body_.variables = group_.variables;
    return std::move(body_);
  }

 private:
  using Place = std::pair<ir::Value, int>;  // a node, and its map

  int Get(ir::Value v, int map) {
    const auto known = places_.find({v, map});
    if (known != places_.end()) return known->second;
    const int expression = Make(v, map);
    places_[{v, map}] = expression;
    return expression;
  }

  int Make(ir::Value v, int map) {
    const ir::Node& node = graph_.node(v);
    switch (ir::Info(node.op).kind) {
      case ir::Kind::kLeaf:
        return node.op == ir::Op::kParam ? Load(v, map) : Leaf(v, map);
      case ir::Kind::kView:
        return View(v, map);
      case ir::Kind::kPut:
      case ir::Kind::kConcat:
      case ir::Kind::kMatmul:
      case ir::Kind::kAttend:
      case ir::Kind::kCall:
        return Load(v, map);
      case ir::Kind::kElementwise:
      case ir::Kind::kReduce:
      case ir::Kind::kPartial:
      case ir::Kind::kIndexed:
        return group_.computes(v) ? Compute(v, map) : Load(v, map);
    }
    return -1;
  }

  // A root may be of any kind, and is computed here whatever it is.
  int Compute(ir::Value v, int map) {
    const auto known = places_.find({v, map});
    if (known != places_.end()) return known->second;
    int expression = -1;
    switch (ir::Info(graph_.node(v).op).kind) {
      case ir::Kind::kLeaf:
      case ir::Kind::kView:
      case ir::Kind::kPut:
      case ir::Kind::kConcat:
      case ir::Kind::kMatmul:
      case ir::Kind::kAttend:
      case ir::Kind::kCall:
        return Make(v, map);
      case ir::Kind::kElementwise:
        expression = Elementwise(v, map);
        break;
      case ir::Kind::kReduce:
        expression = Reduce(v, map);
        break;
      case ir::Kind::kPartial:
        expression = ShareSum(v, map);
        break;
      case ir::Kind::kIndexed:
        expression = Take(v, map);
        break;
    }
    places_[{v, map}] = expression;
    return expression;
  }

  int View(ir::Value v, int map) {
    const std::optional<IndexMap> input = InputMap(graph_, factors_, group_, v, 0, map);
    if (input.has_value()) return Get(graph_.node(v).inputs[0], group_.Intern(*input));
    return LoadReshaped(v, map);
  }

  // Its elements lie in order where its input's do. It may itself lie elsewhere, as a part of a concat that is made
  // here.
  int LoadReshaped(ir::Value v, int map) {
    const ir::Value stored = partition_.StoredAs(graph_, graph_.node(v).inputs[0]);
    return LoadAt(v,
                  AddressOf(v, stored, Linearize(group_.maps[map], graph_.type(v).dims, factors_), /*written=*/false));
  }

  int Leaf(ir::Value v, int map) {
    const ir::Node& node = graph_.node(v);
    Expression e{Expression::Kind::kNumber, v, node.type.dtype};
    if (node.op == ir::Op::kIota) {
      e.kind = Expression::Kind::kIota;
      e.address = static_cast<int>(body_.addresses.size());
      body_.addresses.push_back({-1, group_.maps[map][node.attrs.dim]});
      Note(body_.addresses.back().index, &e);
    }
    return Add(std::move(e));
  }

  int Elementwise(ir::Value v, int map) {
    Expression e{Expression::Kind::kOp, v, graph_.type(v).dtype};
    const bool is_copy = IsCopy(graph_, v);
    for (const ir::Value input : graph_.node(v).inputs) {
      e.arguments.push_back(is_copy ? Load(input, map) : Get(input, map));
    }
    return AddWithArguments(std::move(e));
  }

  int Reduce(ir::Value v, int map) {
    const bool of_one = ReducedFactors(graph_, factors_, v).empty();
    Expression e{of_one ? Expression::Kind::kOp : Expression::Kind::kReduce, v, graph_.type(v).dtype};
    const std::optional<IndexMap> operand = InputMap(graph_, factors_, group_, v, 0, map);
    e.arguments.push_back(Get(graph_.node(v).inputs[0], group_.Intern(*operand)));
    const int expression = AddWithArguments(std::move(e));
    if (of_one) return expression;
    ++body_.expressions[expression].depth;
    body_.expressions[expression].uses &= ~body_.inner;
    return expression;
  }

  int ShareSum(ir::Value v, int map) {
    body_.shares = graph_.type(v).dims[0].constant();
    Expression e{Expression::Kind::kShareSum, v, graph_.type(v).dtype};
    const std::optional<IndexMap> operand = InputMap(graph_, factors_, group_, v, 0, map);
    e.arguments.push_back(Get(graph_.node(v).inputs[0], group_.Intern(*operand)));
    if (!group_.makes_shares()) e.uses = body_.inner;
    const int expression = AddWithArguments(std::move(e));
    if (group_.makes_shares()) body_.expressions[expression].uses &= ~body_.inner;
    return expression;
  }

  int Take(ir::Value v, int map) {
    const ir::Node& node = graph_.node(v);
    const IndexMap taken = *InputMap(graph_, factors_, group_, v, 0, map);
    for (const Affine::Term& term : taken[node.attrs.dim].terms) {
      body_.data.resize(group_.variables.size(), -1);
      body_.data[term.variable] = Get(node.inputs[1], map);
    }
    return Get(node.inputs[0], group_.Intern(taken));
  }

  // The map of the put at which its rows at `map` lie.
  int PlaceOfPut(ir::Value v, int map) {
    const ir::Node& node = graph_.node(v);
    const IndexMap place = PutMap(graph_, factors_, group_, v, map);
    const int variable = place[node.attrs.dim].terms[0].variable;
    const int index = Get(node.inputs[2], group_.variables[variable].index_map);
    body_.data.resize(group_.variables.size(), -1);
    if (body_.data[variable] < 0) body_.bounds.push_back({index, group_.variables[variable].extent});
    body_.data[variable] = index;
    return group_.Intern(place);
  }

  int Load(ir::Value v, int map) { return LoadAt(v, AddressOf(v, map, /*written=*/false)); }

  int LoadAt(ir::Value v, int address) {
    Expression e{Expression::Kind::kLoad, v, graph_.type(v).dtype};
    e.address = address;
    Note(body_.addresses[address].index, &e);
    return Add(std::move(e));
  }

  int AddressOf(ir::Value v, int map, bool written) {
    return AddressOf(v, partition_.StoredAs(graph_, v),
                     AddressIn(graph_, partition_.concats, v, group_.maps[map], factors_), written);
  }

  int AddressOf(ir::Value v, ir::Value stored, Affine index, bool written) {
    LAZY_CHECK(stored != ir::kNoValue, "value ", v, " is read from memory but never stored");
    const auto found = std::find_if(body_.slots.begin(), body_.slots.end(),
                                    [&](const Slot& slot) { return slot.value == stored && slot.written == written; });
    const int slot = static_cast<int>(found - body_.slots.begin());
    if (found == body_.slots.end()) body_.slots.push_back({stored, written, index.offset});
    index.offset += body_.slots[slot].offset * Polynomial(-1);
    body_.addresses.push_back({slot, std::move(index)});
    return static_cast<int>(body_.addresses.size()) - 1;
  }

  // What an index depends on.
  void Note(const Affine& index, Expression* e) const {
    for (const Affine::Term& term : index.terms) {
      if (group_.variables[term.variable].kind != Variable::Kind::kData) {
        e->uses |= uint64_t{1} << term.variable;
        continue;
      }
      const Expression& number = body_.expressions[body_.data[term.variable]];
      e->uses |= number.uses;
      e->depth = std::max(e->depth, number.depth);
    }
  }

  int AddWithArguments(Expression e) {
    for (const int argument : e.arguments) {
      e.uses |= body_.expressions[argument].uses;
      e.depth = std::max(e.depth, body_.expressions[argument].depth);
    }
    return Add(std::move(e));
  }

  int Add(Expression e) {
    LAZY_CHECK(group_.variables.size() <= 64, "a kernel of ", group_.variables.size(), " loops");
    body_.expressions.push_back(std::move(e));
    return static_cast<int>(body_.expressions.size()) - 1;
  }

  const ir::Graph& graph_;
  const Factors& factors_;
  const Partition& partition_;
  Group group_;  // its maps grow
  Body body_;
  absl::flat_hash_map<Place, int> places_;
};

}  // namespace

std::vector<Body> MakeBodies(const ir::Graph& graph, const Factors& factors, const Partition& partition) {
  std::vector<Body> bodies;
  for (const Group& group : partition.groups) {
    bodies.push_back(BodyMaker(graph, factors, partition, group).Make());
    base::GiveWay();
  }
  return bodies;
}

}  // namespace torch_lazy::codegen
