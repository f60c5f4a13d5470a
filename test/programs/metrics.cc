// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace programs {
namespace {

// Boxed, so that the operators' C++ types do not matter.
std::vector<c10::IValue> Call(const char* name, std::vector<c10::IValue> stack = {}) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
  return stack;
}

}  // namespace

void Sync() { Call("torch_lazy::sync"); }

void SetOption(const std::string& name, const std::string& value) { Call("torch_lazy::set_option", {name, value}); }

int64_t Metric(const std::string& key) {
  const std::string json = Call("torch_lazy::metrics").at(0).toStringRef();
  const size_t at = json.find('"' + key + '"');
  TORCH_CHECK(at != std::string::npos, "metrics: no key ", key, " in ", json);
  return std::stoll(json.substr(json.find(':', at) + 1));
}

}  // namespace programs
