// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/gil.h"

#include <dlfcn.h>

namespace torch_lazy::lazy {
namespace {

// The library does not link Python: a C++ program has none.
template <typename Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

bool IsHeld() {
  static auto* const is_initialized = Find<int()>("Py_IsInitialized");
  static auto* const check = Find<int()>("PyGILState_Check");
  return is_initialized != nullptr && check != nullptr && is_initialized() != 0 && check() != 0;
}

}  // namespace

ReleaseGil::ReleaseGil() {
  static auto* const save = Find<void*()>("PyEval_SaveThread");
  if (IsHeld() && save != nullptr) state_ = save();
}

ReleaseGil::~ReleaseGil() {
  static auto* const restore = Find<void(void*)>("PyEval_RestoreThread");
  if (state_ != nullptr) restore(state_);
}

}  // namespace torch_lazy::lazy
