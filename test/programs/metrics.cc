// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

namespace programs {
namespace {

// Boxed, so that the operators' C++ types do not matter.
std::vector<c10::IValue> Call(const char* name, std::vector<c10::IValue> stack = {}) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
  return stack;
}

}  // namespace

void Sync() { Call("torch_lazy::sync"); }

// By name, since programs that use this are also linked without the device.
void SetOption(const std::string& name, const std::string& value) {
  using Function = const char* (*)(const char*, const char*);
  const auto set_option = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "torch_lazy_set_option"));
  TORCH_CHECK(set_option != nullptr, "set_option: the device is not loaded");
  const char* const error = set_option(name.c_str(), value.c_str());
  TORCH_CHECK(error == nullptr, error);
}

int64_t Metric(const std::string& key) {
  const std::string json = Call("torch_lazy::metrics").at(0).toStringRef();
  const size_t at = json.find('"' + key + '"');
  TORCH_CHECK(at != std::string::npos, "metrics: no key ", key, " in ", json);
  return std::stoll(json.substr(json.find(':', at) + 1));
}

}  // namespace programs
