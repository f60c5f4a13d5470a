// SPDX-License-Identifier: Apache-2.0
// Faults on demand, for tests of what is left after one.
//
//   if (base::MustFail()) return nullptr;
//
// Stands where the machine may fail: memory is asked for, a call runs, a compiler ends. Whoever defines the functions
// below (test/faults does) decides; nobody does where no test runs, and then this is a comparison with null.
#pragma once

extern "C" __attribute__((weak, visibility("default"))) bool torch_lazy_must_fail();
extern "C" __attribute__((weak, visibility("default"))) bool torch_lazy_must_spoil_kernel();

namespace torch_lazy::base {

inline bool MustFail() { return torch_lazy_must_fail != nullptr && torch_lazy_must_fail(); }

// Asked once for each kernel that a compiler is to be given: true if its text is to be made wrong.
inline bool MustSpoilKernel() { return torch_lazy_must_spoil_kernel != nullptr && torch_lazy_must_spoil_kernel(); }
inline constexpr char kSpoiltText[] = "\n#error a fault that was asked for\n";

}  // namespace torch_lazy::base
