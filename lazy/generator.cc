// SPDX-License-Identifier: Apache-2.0
#include "lazy/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_lazy::lazy {
namespace {

// Nothing is cut when the state is read: random calls draw when they are recorded, so the engine is never behind.
class LazyGenerator final : public c10::GeneratorImpl {
 public:
  explicit LazyGenerator(at::Generator cpu)
      : GeneratorImpl(c10::Device(c10::kPrivateUse1, 0), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  const at::Generator& cpu() const { return cpu_; }

  void set_current_seed(uint64_t seed) override {
    const std::lock_guard<std::mutex> lock(cpu_.mutex());
    cpu_.set_current_seed(seed);
  }
  uint64_t current_seed() const override { return cpu_.current_seed(); }
  uint64_t seed() override {
    const std::lock_guard<std::mutex> lock(cpu_.mutex());
    return cpu_.unsafeGetGeneratorImpl()->seed();
  }
  // The CPU's engine has none. A copy by pickle asks for it, and sets it before the state.
  void set_offset(uint64_t offset) override { TORCH_CHECK(offset == 0, "lazy: the generator does not use an offset"); }
  uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl& state) override {
    const std::lock_guard<std::mutex> lock(cpu_.mutex());
    cpu_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpu_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  LazyGenerator* clone_impl() const override { return new LazyGenerator(cpu_.clone()); }

  at::Generator cpu_;
};

}  // namespace

const at::Generator& DefaultGenerator() {
  static const at::Generator* const generator =
      new at::Generator(at::make_generator<LazyGenerator>(at::detail::getDefaultCPUGenerator()));
  return *generator;
}

at::Generator NewGenerator() { return at::make_generator<LazyGenerator>(at::detail::createCPUGenerator()); }

at::Generator CpuGeneratorOf(const at::Generator& generator) {
  if (!generator.defined()) return generator;
  TORCH_CHECK(generator.device().type() == c10::kPrivateUse1, "Expected a 'lazy' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl())->cpu();
}

}  // namespace torch_lazy::lazy
