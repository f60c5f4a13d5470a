// SPDX-License-Identifier: Apache-2.0
#include "torch_compat/try_hook.h"

#include "torch_compat/storage_hook.h"

namespace torch_lazy::torch_compat {
namespace {

struct Tried final : HookedStorage {
  Tried() : HookedStorage(sizeof(memory), &placeholder, c10::Device(c10::kPrivateUse1, 0)) {}
  ~Tried() override { Disarm(); }
  c10::DataPtr Answer() override {
    ++num_answers;
    return c10::DataPtr(&memory, device());
  }
  c10::DataPtr NewMemory(size_t) override { return c10::DataPtr(); }
  void copy_data(void*, const void*, size_t) const override {}

  int num_answers = 0;
  char memory = 0;
  inline static char placeholder = 0;
};

}  // namespace

bool HookIsAsked() {
  const auto storage = c10::make_intrusive<Tried>();
  for (int time = 1; time <= 2; ++time) {
    storage->Arm(&Tried::placeholder);
    if (storage->data() != &Tried::placeholder || storage->num_answers != time - 1) return false;
    for (int access = 0; access < 2; ++access) {
      if (storage->mutable_data() != &storage->memory || storage->num_answers != time) return false;
    }
  }
  return true;
}

}  // namespace torch_lazy::torch_compat
