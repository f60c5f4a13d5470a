// SPDX-License-Identifier: Apache-2.0
// The kernels that are more than a recorded call.
//
// Each function registers one file's kernels in the library of `aten` at PrivateUse1; device/dispatch.cc calls them
// all.
#pragma once

#include <torch/library.h>

namespace torch_lazy::device {

void RegisterFactories(torch::Library& aten);
void RegisterViews(torch::Library& aten);
void RegisterCommonViews(torch::Library& aten);
void RegisterResizing(torch::Library& aten);
void RegisterCopies(torch::Library& aten);
void RegisterAttention(torch::Library& aten);
void RegisterFusedAttention(torch::Library& aten);
void RegisterComposites(torch::Library& aten);
void RegisterMultinomial(torch::Library& aten);
void RegisterNativeDropout(torch::Library& aten);
void RegisterCudnnRnn(torch::Library& aten);
void RegisterOneDnnRnn(torch::Library& aten);
void RegisterCudnnRnnAutocast(torch::Library& aten);  // at AutocastPrivateUse1
void RegisterNested(torch::Library& aten);            // at NestedTensorPrivateUse1

// At PrivateUse1 and at AutogradPrivateUse1: the parts of dropout and of recurrent nets have their own derivatives, and
// who asks whether tensors may be exchanged does not ask autograd for their history.
void RegisterDropout(torch::Library& aten);
void RegisterRecurrentNets(torch::Library& aten);
void RegisterShallowCopies(torch::Library& aten);

// At AutogradPrivateUse1, after the kernels.
void RegisterLinearAutograd(torch::Library& aten);
void RegisterRecurrentAutograd(torch::Library& aten);

}  // namespace torch_lazy::device
