// SPDX-License-Identifier: Apache-2.0
#include "test/lazy/fake_backend.h"

#include <atomic>
#include <utility>

#include "backends/registry.h"

namespace torch_lazy::backends {

// Its functions are the kernels' names.
class FakeBackend::FakeModule final : public Module {
 public:
  FakeModule(std::vector<std::string> names, std::vector<absl::Status> statuses, bool is_ready)
      : names_(std::move(names)), statuses_(std::move(statuses)), is_ready_(is_ready) {}

  bool ready() const override { return is_ready_; }
  absl::Status status() const override {
    for (const absl::Status& status : statuses_) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  void Wait() override { is_ready_ = true; }
  void* Function(int kernel) const override { return const_cast<std::string*>(&names_[static_cast<size_t>(kernel)]); }
  absl::Status StatusOf(int kernel) const override { return statuses_[static_cast<size_t>(kernel)]; }

 private:
  const std::vector<std::string> names_;
  const std::vector<absl::Status> statuses_;
  std::atomic<bool> is_ready_;
};

int FakeBackend::num_compiles() const {
  absl::MutexLock lock(&mutex_);
  return num_compiles_;
}

std::vector<std::string> FakeBackend::compiled() const {
  absl::MutexLock lock(&mutex_);
  return compiled_;
}

std::vector<Launched> FakeBackend::launched() const {
  absl::MutexLock lock(&mutex_);
  return launched_;
}

int FakeBackend::num_launches() const {
  absl::MutexLock lock(&mutex_);
  return num_launches_;
}

void FakeBackend::FinishCompiling() {
  absl::MutexLock lock(&mutex_);
  for (const std::shared_ptr<FakeModule>& module : modules_) module->Wait();
}

void FakeBackend::Reset() {
  launch = nullptr;
  refuse = nullptr;
  is_slow = false;
  does_compute = true;
  absl::MutexLock lock(&mutex_);
  compiled_.clear();
  launched_.clear();
  kept_.clear();
  num_compiles_ = 0;
  num_launches_ = 0;
}

std::shared_ptr<Module> FakeBackend::Compile(absl::Span<const codegen::Kernel> kernels, bool wait) {
  absl::MutexLock lock(&mutex_);
  ++num_compiles_;
  std::vector<std::string> names;
  std::vector<absl::Status> statuses;
  for (const codegen::Kernel& kernel : kernels) {
    names.push_back(kernel.name);
    statuses.push_back(refuse == nullptr ? absl::OkStatus() : refuse(kernel));
    compiled_.push_back(kernel.name);
  }
  modules_.push_back(std::make_shared<FakeModule>(std::move(names), std::move(statuses), wait || !is_slow));
  return modules_.back();
}

absl::Status FakeBackend::Launch(absl::Span<const BoundInstance> instances) {
  absl::MutexLock lock(&mutex_);
  ++num_launches_;
  for (const BoundInstance& instance : instances) {
    launched_.push_back({*static_cast<const std::string*>(instance.function),
                         {instance.buffers.begin(), instance.buffers.end()},
                         {instance.extents.begin(), instance.extents.end()},
                         {instance.scalars.begin(), instance.scalars.end()},
                         instance.iterations});
    if (launch == nullptr) continue;
    if (absl::Status status = launch(launched_.back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void FakeBackend::Keep(absl::string_view key, absl::string_view word) {
  absl::MutexLock lock(&mutex_);
  kept_.insert_or_assign(std::string(key), std::string(word));
}

std::string FakeBackend::Recall(absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  const auto found = kept_.find(key);
  return found == kept_.end() ? "" : found->second;
}

FakeBackend& Fake() {
  static auto* const fake = new FakeBackend;
  return *fake;
}

// What backends/registry.h declares.

void SetCudaFinder(const CudaHost* (*)()) {}

const absl::StatusOr<Backend*>& TryGet() {
  static const auto& backend = *new absl::StatusOr<Backend*>(&Fake());
  return backend;
}

Backend& Get() { return Fake(); }

}  // namespace torch_lazy::backends
