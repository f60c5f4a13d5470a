// SPDX-License-Identifier: Apache-2.0
// What a kernel computes in one iteration, as expressions over loaded numbers.
//
// A node met at two maps becomes two expressions. Expressions stand in an order in which they can
// be computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/partition/group.h"

namespace torch_lazy::codegen {

// A place in a buffer, counted from the slot's pointer: an affine form of loop variables and of
// numbers computed here.
struct Address {
  int slot = -1;  // of Body::slots
  Affine index;
};

struct Expression {
  enum class Kind : uint8_t { kLoad, kIota, kNumber, kOp, kReduce, kShareSum };
  Kind kind;       // share sum: what is added up where it is stored
  ir::Value node;  // number: a const, scalar or extent node; op, reduce: what is computed
  ir::DType dtype;
  int address = -1;  // load: of Body::addresses. iota: its index is the number
  std::vector<int> arguments = {};
  uint64_t uses = 0;  // the loop variables it depends on, as bits
  int depth = 0;      // how many reductions of this kernel come before it
};

struct Store {
  int expression;
  int address;
  bool is_non_temporal = false;  // past the caches: larger than they are, and nobody reads it soon
};

// Kernels that differ only in where in a buffer they begin have one text: the pointer says it.
struct Slot {
  ir::Value value;  // whose buffer
  bool written;
  Polynomial offset;  // of the pointer from the buffer's start, in elements
};

// An expression that must be a number from 0 to below an extent; else the kernel traps.
struct Bound {
  int expression;
  Monomial extent;
};

struct Body {
  std::vector<Variable> variables;
  std::vector<int> data;  // of each data variable, by variable: the expression that is its number
  std::vector<Slot> slots;
  std::vector<Address> addresses;
  std::vector<Expression> expressions;
  std::vector<Store> stores;
  uint64_t inner = 0;  // the inner variables, as bits
  std::vector<Bound> bounds;
  int64_t shares = 0;  // not 0 if some store adds up: the range is so many shares of the rows

  bool has_shares() const { return shares > 0; }
  bool uses_inner(int expression) const { return (expressions[expression].uses & inner) != 0; }
};

// Does the place depend on numbers computed or loaded?
inline bool DependsOnData(const Body& body, const Address& address) {
  return std::any_of(address.index.terms.begin(), address.index.terms.end(), [&](const Affine::Term& term) {
    return body.variables[term.variable].kind == Variable::Kind::kData;
  });
}

// One for each group.
std::vector<Body> MakeBodies(const ir::Graph& graph, const Factors& factors, const Partition& partition);

}  // namespace torch_lazy::codegen
