// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace.h"

namespace torch_lazy::lazy {

const c10::IValue& Trace::Argument(const TrieNode& call, size_t arg) const {
  const int32_t place = call.PlaceOfNumber(arg);
  return place >= 0 ? numbers[place] : call.args[arg];
}

}  // namespace torch_lazy::lazy
