// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace programs {
namespace {

c10::OperatorHandle Find(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

}  // namespace

void Sync() { Find("torch_lazy::sync").typed<void()>().call(); }

void SetOption(const std::string& name, const std::string& value) {
  Find("torch_lazy::set_option").typed<void(c10::string_view, c10::string_view)>().call(name, value);
}

int64_t Metric(const std::string& key) {
  const std::string json = Find("torch_lazy::metrics").typed<std::string()>().call();
  const size_t at = json.find('"' + key + '"');
  TORCH_CHECK(at != std::string::npos, "metrics: no key ", key, " in ", json);
  return std::stoll(json.substr(json.find(':', at) + 1));
}

}  // namespace programs
