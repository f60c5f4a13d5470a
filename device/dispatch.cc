// SPDX-License-Identifier: Apache-2.0
// What the dispatcher is told at load: every kernel of the device, in the order that matters.
#include "device/eager_overrides/kernels.h"
#include "device/recorder.h"
#include "device/rows/rows.h"
#include "device/self_check.h"
#include "device/unboxed.h"

namespace torch_lazy::device {
namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, aten) {
  if (!WhyUnfit().empty()) return;
  RegisterRows();
  RegisterFactories(aten);
  RegisterViews(aten);
  RegisterCommonViews(aten);
  RegisterResizing(aten);
  RegisterCopies(aten);
  RegisterAttention(aten);
  RegisterFusedAttention(aten);
  RegisterComposites(aten);
  RegisterMultinomial(aten);
  RegisterNativeDropout(aten);
  RegisterCudnnRnn(aten);
  RegisterOneDnnRnn(aten);
  RegisterDropout(aten);
  RegisterRecurrentNets(aten);
  RegisterShallowCopies(aten);
  RecordTheRest(aten);  // last: it leaves out what has a kernel by now
}

TORCH_LIBRARY_IMPL(torch_lazy, PrivateUse1, ours) { RecordOurs(ours); }

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, aten) {
  RegisterDropout(aten);
  RegisterRecurrentNets(aten);
  RegisterShallowCopies(aten);
  RegisterLinearAutograd(aten);
  RegisterRecurrentAutograd(aten);
  RecordWithoutGrad(aten);  // last, as above
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, aten) { RegisterCudnnRnnAutocast(aten); }

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, aten) { RunMembersAtOnce(aten, c10::DispatchKey::SparseCPU); }
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, aten) { RunMembersAtOnce(aten, c10::DispatchKey::SparseCsrCPU); }
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, aten) {
  RegisterNested(aten);
  RunMembersAtOnce(aten, c10::DispatchKey::NestedTensorCPU);  // last, as above
}

void RaiseWhyUnfit(const c10::OperatorHandle&, torch::jit::Stack*) { TORCH_CHECK(false, "lazy: ", WhyUnfit()); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, fallback) {
  if (WhyUnfit().empty()) return RecordOthers(fallback);
  fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&RaiseWhyUnfit>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, fallback) { RefuseQuantized(fallback); }

}  // namespace
}  // namespace torch_lazy::device
