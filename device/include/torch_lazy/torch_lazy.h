// SPDX-License-Identifier: Apache-2.0
// What a program may ask of device "lazy".
//
// Nobody needs this header to use the device: linking TorchLazy::torch_lazy and saying
// torch::Device("lazy") is enough. Calls go through PyTorch's dispatcher, so that they ask for no
// symbol of the library; options do not, since a model file may call whatever the dispatcher knows.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

extern "C" {

// Functions of libtorch_lazy.so itself. Those that return a text return null, or what was wrong; it
// lasts until the thread calls another of them.
const char* torch_lazy_set_option(const char* name, const char* value);
// A seed and an offset of the device's generator, for a kernel of one's own whose threads draw so
// many numbers each (Philox, as CUDA's kernels do).
const char* torch_lazy_take_draw(int64_t per_thread, int64_t* seed, int64_t* offset);
// Why the device cannot be used with this PyTorch; null if it can.
const char* torch_lazy_why_unfit();
// For the Python package: where files begin whose lines explain() does not name. None: it names none.
void torch_lazy_name_python_lines(const char* const* others, size_t count);
}

namespace torch_lazy {

// Runs all that is pending, and waits for it.
inline void Sync() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::sync", "").typed<void()>();
  op.call();
}

// The counters of the device, as a JSON object.
inline std::string Metrics() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::metrics", "").typed<std::string()>();
  return op.call();
}

// Sets all counters to zero.
inline void ResetMetrics() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::reset_metrics", "").typed<void()>();
  op.call();
}

// Why traces were cut, missed and compiled, for a reader.
inline std::string Explain() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::explain", "").typed<std::string()>();
  return op.call();
}

// Sets an option, as the environment variable LAZY_<NAME> would have; throws c10::ValueError for an
// unknown name or value, and for an option in use that cannot change any more: `compiler`,
// `cache_dir` and `dump`.
inline void SetOption(const std::string& name, const std::string& value) {
  const char* const error = torch_lazy_set_option(name.c_str(), value.c_str());
  if (error != nullptr) C10_THROW_ERROR(ValueError, error);
}

namespace internal {

template <typename Signature>
c10::TypedOperatorHandle<Signature> Operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace internal

// A function of tensors of the device whose calls are recorded once and replayed from then on: its own code does
// not run then. A whole training step may be one, with its backward pass and its optimizer.
//
// It must do the same on the device at each call, but for the values of its tensors; what else it does happens only
// while it is recorded. A call is not replayed, and runs as ever, if the function waits for a value, copies from the
// host, has a shape that depends on data, uses a number that changes, or returns what needs gradients: Explain() says
// why. Each size of the arguments is recorded for itself. For one thread at a time.
class Replayable {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Function = std::function<Tensors(const Tensors&)>;

  explicit Replayable(Function function)
      : function_(std::move(function)),
        number_(new int64_t(internal::Operator<int64_t()>("torch_lazy::replay_new").call()), [](int64_t* number) {
          internal::Operator<void(int64_t)>("torch_lazy::replay_free").call(*number);
          delete number;
        }) {}

  Tensors operator()(const Tensors& inputs) const {
    static const auto run =
        internal::Operator<std::tuple<bool, Tensors>(int64_t, Tensors, std::vector<double>)>("torch_lazy::replay_run");
    static const auto begin = internal::Operator<void(int64_t, Tensors)>("torch_lazy::replay_begin");
    static const auto end =
        internal::Operator<Tensors(int64_t, Tensors, std::vector<double>, std::vector<int64_t>, Tensors, bool)>(
            "torch_lazy::replay_end");
    static const auto abandon = internal::Operator<void(int64_t)>("torch_lazy::replay_abandon");
    auto [done, outputs] = run.call(*number_, inputs, {});
    if (done) return std::move(outputs);
    begin.call(*number_, inputs);
    try {
      outputs = function_(inputs);
    } catch (...) {
      abandon.call(*number_);
      throw;
    }
    end.call(*number_, inputs, {}, {}, outputs, /*saves=*/false);
    return outputs;
  }

 private:
  Function function_;
  std::shared_ptr<int64_t> number_;
};

inline Replayable make_replayable(Replayable::Function function) { return Replayable(std::move(function)); }

}  // namespace torch_lazy
