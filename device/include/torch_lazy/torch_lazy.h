// SPDX-License-Identifier: Apache-2.0
// What a program may ask of device "lazy".
//
// Nobody needs this header to use the device: linking TorchLazy::torch_lazy and saying
// torch::Device("lazy") is enough. All calls go through PyTorch's dispatcher, so that the header
// asks for no symbol of the library.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace torch_lazy {

// Runs all that is pending, and waits for it.
inline void Sync() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::sync", "").typed<void()>();
  op.call();
}

// The counters of the device, as a JSON object.
inline std::string Metrics() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::metrics", "")
                             .typed<std::string()>();
  return op.call();
}

// Sets all counters to zero.
inline void ResetMetrics() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::reset_metrics", "")
                             .typed<void()>();
  op.call();
}

// Why traces were cut, missed and compiled, for a reader.
inline std::string Explain() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::explain", "")
                             .typed<std::string()>();
  return op.call();
}

// Sets an option, as the environment variable LAZY_<NAME> would have; throws c10::ValueError for an
// unknown name or value.
inline void SetOption(const std::string& name, const std::string& value) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::set_option", "")
                             .typed<void(std::string, std::string)>();
  op.call(name, value);
}

}  // namespace torch_lazy
