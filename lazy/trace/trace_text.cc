// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/trace_text.h"

#include <charconv>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::lazy {
namespace {

template <typename T>
std::string Streamed(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// As short as tells it from other numbers: an IValue of 0.1 says 0.10000000000000001.
std::string TextOfValue(const c10::IValue& value) {
  if (!value.isDouble()) return Streamed(value);
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value.toDouble()).ptr);
}

class TraceText {
 public:
  explicit TraceText(const Trace& trace) : trace_(trace), is_named_(trace.slots.size()) {}

  std::string CallText(const TrieNode& call) {
    std::vector<std::string> arguments, results;
    for (size_t a = 0; a < call.args.size(); ++a) {
      const std::string value = ArgumentText(call, a);
      const c10::Argument& declared = call.op->handle.schema().arguments()[a];
      if (!value.empty()) arguments.push_back(absl::StrCat(declared.name(), "=", value));
    }
    int32_t slot = call.first_result_slot;
    for (const ResultShape& result : call.shape->results) {
      if (result.defined && result.arg < 0) results.push_back(SlotText(slot++, result.geometry, /*written=*/false));
    }
    return absl::StrCat(call.op->name, "(", absl::StrJoin(arguments, ", "), ")", results.empty() ? "" : " -> ",
                        absl::StrJoin(results, ", "));
  }

 private:
  // Empty: the default.
  std::string ArgumentText(const TrieNode& call, size_t arg) {
    std::vector<std::string> tensors;
    bool is_list = false;
    for (const NodeOperand& operand : call.operands) {
      if (operand.arg != static_cast<int16_t>(arg)) continue;
      is_list = operand.item >= 0;
      tensors.push_back(SlotText(operand.slot, operand.geometry, operand.written));
    }
    if (is_list) return absl::StrCat("[", absl::StrJoin(tensors, ", "), "]");
    if (!tensors.empty()) return tensors.front();
    const std::string value = TextOfValue(trace_.Argument(call, arg));
    const auto& given = call.op->handle.schema().arguments()[arg].default_value();
    return value == "None" || (given.has_value() && value == TextOfValue(*given)) ? "" : value;
  }

  std::string SlotText(int32_t slot, const Geometry& geometry, bool written) {
    const bool is_new = !is_named_[static_cast<size_t>(slot)];
    is_named_[static_cast<size_t>(slot)] = true;
    return absl::StrCat("%", slot, written ? "!" : "", is_new ? " " : "",
                        is_new ? TextOfGeometry(geometry, /*with_strides=*/false) : "");
  }

  const Trace& trace_;
  std::vector<bool> is_named_;  // per slot
};

}  // namespace

std::string TextOfTrace(const CallSequence& sequence, const Trace& trace) {
  TraceText texts(trace);
  std::string text;
  for (const TrieNode* const call : sequence.calls())
    absl::StrAppend(&text, call->depth, " ", texts.CallText(*call), "\n");
  absl::StrAppend(&text, "needed:");
  for (size_t slot = 0; slot < sequence.live().size(); ++slot) {
    if (sequence.live()[slot]) absl::StrAppend(&text, " %", slot);
  }
  return absl::StrCat(text, "\n");
}

}  // namespace torch_lazy::lazy
