// SPDX-License-Identifier: Apache-2.0
// The one kernel behind all operators without their own.
#pragma once

#include <string>

#include <torch/library.h>

namespace torch_lazy::device {

// Registers the recorder for every operator of ATen that computes something and has no kernel at PrivateUse1 yet.
void RecordTheRest(torch::Library& aten);

// Registers it for every operator that has a kernel for sparse, or for nested, tensors of the CPU and none for ours
// yet. They run at once.
void RunMembersAtOnce(torch::Library& aten, c10::DispatchKey cpu_key);

// A line for each operator so registered: its name, and `compiled`, `recorded` or `immediate`.
std::string OperatorClasses();

// For those of our own that take tensors.
void RecordOurs(torch::Library& ours);

// The recorder for operators of other libraries.
void RecordOthers(torch::Library& fallback);

// Says for every operator that the device has no quantized tensors.
void RefuseQuantized(torch::Library& fallback);

}  // namespace torch_lazy::device
