// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/generator.h"

#include <map>
#include <mutex>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GeneratorImpl.h>

#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

// Nothing is cut when the state is read: random calls draw when they are recorded, so the engine is never behind.
class LazyGenerator final : public c10::GeneratorImpl {
 public:
  LazyGenerator(at::Generator eager, c10::DeviceIndex index)
      : GeneratorImpl(c10::Device(c10::kPrivateUse1, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        eager_(std::move(eager)) {}

  const at::Generator& eager() const { return eager_; }

  void set_current_seed(uint64_t seed) override {
    const std::lock_guard<std::mutex> lock(eager_.mutex());
    eager_.set_current_seed(seed);
  }
  uint64_t current_seed() const override { return eager_.current_seed(); }
  uint64_t seed() override {
    const std::lock_guard<std::mutex> lock(eager_.mutex());
    return eager_.unsafeGetGeneratorImpl()->seed();
  }
  // The CPU's engine has none. A copy by pickle asks for it, and sets it before the state.
  void set_offset(uint64_t offset) override {
    if (!IsOnHost()) return eager_.unsafeGetGeneratorImpl()->set_offset(offset);
    TORCH_CHECK(offset == 0, "lazy: the generator does not use an offset");
  }
  uint64_t get_offset() const override { return IsOnHost() ? 0 : eager_.unsafeGetGeneratorImpl()->get_offset(); }
  void set_state(const c10::TensorImpl& state) override {
    const std::lock_guard<std::mutex> lock(eager_.mutex());
    eager_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return eager_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  LazyGenerator* clone_impl() const override { return new LazyGenerator(eager_.clone(), device().index()); }

  at::Generator eager_;
};

}  // namespace

const at::Generator& DefaultGenerator(int index) {
  const OnDevice on(index);
  static auto* const lock = new std::mutex;
  static auto* const generators = new std::map<int, at::Generator>;
  const std::lock_guard<std::mutex> held(*lock);
  at::Generator& generator = (*generators)[CurrentDevice()];
  if (!generator.defined()) {
    generator = at::make_generator<LazyGenerator>(at::globalContext().defaultGenerator(EagerDevice()),
                                                  static_cast<c10::DeviceIndex>(CurrentDevice()));
  }
  return generator;
}

at::Generator NewGenerator(int index) {
  const OnDevice on(index);
  return at::make_generator<LazyGenerator>(
      IsOnHost() ? at::detail::createCPUGenerator() : at::detail::getCUDAHooks().getNewGenerator(EagerDevice().index()),
      static_cast<c10::DeviceIndex>(CurrentDevice()));
}

at::Generator EagerGeneratorOf(const at::Generator& generator) {
  if (!generator.defined()) return generator;
  TORCH_CHECK(generator.device().type() == c10::kPrivateUse1, "Expected a 'lazy' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl())->eager();
}

}  // namespace torch_lazy::lazy
