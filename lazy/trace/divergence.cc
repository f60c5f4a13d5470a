// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/divergence.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::lazy {
namespace {

template <typename T>
std::string TextOf(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// What holds the value: "the result of call 3, aten::mul.Tensor".
std::string SourceOf(const TrieNode& call, int32_t slot) {
  for (const TrieNode* node = call.parent; node != nullptr && node->op != nullptr; node = node->parent) {
    int32_t results = 0;
    for (const ResultShape& result : node->shape->results) results += result.defined && result.arg < 0;
    if (slot >= node->first_result_slot && slot < node->first_result_slot + results) {
      return absl::StrCat("the result of call ", node->depth, ", ", node->op->name);
    }
  }
  return absl::StrCat("tensor ", slot, " of the trace, made before it");
}

std::string NameOf(const TrieNode& call, const NodeOperand& operand) {
  const std::string& name = call.op->handle.schema().arguments()[static_cast<size_t>(operand.arg)].name();
  return operand.item < 0 ? absl::StrCat("`", name, "`") : absl::StrCat("item ", operand.item, " of `", name, "`");
}

std::string DifferenceOfCalls(const TrieNode& now, const TrieNode& known) {
  if (now.op != known.op) return absl::StrCat("it came where ", known.op->name, " was called");
  if (SettingsOf(now.words()[0]) != SettingsOf(known.words()[0])) return "default dtype or determinism are others";
  if (now.operands.size() != known.operands.size()) {
    return absl::StrCat("it has ", now.operands.size(), " tensors where it had ", known.operands.size());
  }
  for (size_t k = 0; k < now.operands.size(); ++k) {
    const NodeOperand &one = now.operands[k], &other = known.operands[k];
    const std::string argument = absl::StrCat("argument ", NameOf(now, one), " is ");
    if (one.geometry != other.geometry) {
      const bool strides = one.geometry.sizes == other.geometry.sizes && one.geometry.dtype == other.geometry.dtype;
      return absl::StrCat(argument, TextOfGeometry(one.geometry, strides), " where it was ",
                          TextOfGeometry(other.geometry, strides));
    }
    if (one.slot != other.slot) {
      return absl::StrCat(argument, SourceOf(now, one.slot), ", where it was ", SourceOf(known, other.slot));
    }
  }
  for (size_t a = 0; a < now.args.size(); ++a) {
    const std::string one = TextOf(now.args[a]), other = TextOf(known.args[a]);
    if (one == other) continue;
    return absl::StrCat("argument `", now.op->handle.schema().arguments()[a].name(), "` is ", one, " where it was ",
                        other);
  }
  return "a number has another type, or a storage is seen in another part";
}

}  // namespace

std::string DifferenceOf(const Trace& trace) {
  const Divergence& divergence = trace.divergence;
  if (divergence.now == nullptr) {
    const bool cut_here = trace.path.empty() || trace.path.back()->entries.size() > 1;
    return cut_here ? "its calls are known, but other results of theirs are kept"
                    : "its calls are known, but were not cut there";
  }
  const std::string call = absl::StrCat("call ", divergence.now->depth, ", ", divergence.now->op->name, ": ");
  if (divergence.known == nullptr) return absl::StrCat(call, "no known trace goes so far");
  return absl::StrCat(call, DifferenceOfCalls(*divergence.now, *divergence.known));
}

}  // namespace torch_lazy::lazy
