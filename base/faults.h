// SPDX-License-Identifier: Apache-2.0
// Faults on demand, for tests of what is left after one.
//
//   if (base::MustFail()) return nullptr;
//
// Stands where the machine may fail: memory is asked for, a call runs, a compiler ends. Whoever defines the function below
// (test/faults does) decides; nobody does where no test runs, and then this is a comparison with null.
#pragma once

extern "C" __attribute__((weak, visibility("default"))) bool torch_lazy_must_fail();

namespace torch_lazy::base {

inline bool MustFail() { return torch_lazy_must_fail != nullptr && torch_lazy_must_fail(); }

}  // namespace torch_lazy::base
