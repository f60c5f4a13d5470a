// SPDX-License-Identifier: Apache-2.0
#include "lazy/ops/call_settings.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include "lazy/eager/current_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/deterministic.h"
#include "torch_compat/gpu_settings.h"

namespace torch_lazy::lazy {
namespace {

// Above the dtype is kDeterministic.
constexpr uint32_t kWarnOnly = 1 << 9;
// Of calls on a GPU.
constexpr uint32_t kTf32Products = 1 << 10;
constexpr uint32_t kTf32Convolutions = 1 << 11;
constexpr uint32_t kCudnn = 1 << 12;
constexpr uint32_t kCudnnBenchmark = 1 << 13;
constexpr uint32_t kCudnnDeterministic = 1 << 14;
constexpr int kNewShift = 15;
constexpr uint32_t kNew = ((1u << torch_compat::kNewGpuSettingsBits) - 1) << kNewShift;
static_assert(kNew >> kDeviceShift == 0);
constexpr uint32_t kGpu = kTf32Products | kTf32Convolutions | kCudnn | kCudnnBenchmark | kCudnnDeterministic | kNew;

uint32_t GpuSettings(const at::Context& context) {
  const auto is_tf32 = [&](at::Float32Op op) {
    return context.float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::TF32;
  };
  return (is_tf32(at::Float32Op::MATMUL) ? kTf32Products : 0) | (is_tf32(at::Float32Op::CONV) ? kTf32Convolutions : 0) |
         (context.userEnabledCuDNN() ? kCudnn : 0) | (context.benchmarkCuDNN() ? kCudnnBenchmark : 0) |
         (context.deterministicCuDNN() ? kCudnnDeterministic : 0) | torch_compat::NewGpuSettings(context) << kNewShift;
}

uint32_t& LatestGpuSettings() {
  thread_local uint32_t latest = IsOnHost() ? 0 : GpuSettings(at::globalContext());
  return latest;
}

void SetGpuSettings(uint32_t settings, uint32_t changed) {
  at::Context& context = at::globalContext();
  if ((changed & (kTf32Products | kNew)) != 0) context.setAllowTF32CuBLAS((settings & kTf32Products) != 0);
  if ((changed & kNew) != 0) torch_compat::SetNewGpuSettings(context, (settings & kNew) >> kNewShift);
  if ((changed & kTf32Convolutions) != 0) {  // not setAllowTF32CuDNN, which sets that of recurrent nets, too
    const bool is_tf32 = (settings & kTf32Convolutions) != 0;
    context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV,
                                is_tf32 ? at::Float32Precision::TF32 : at::Float32Precision::NONE);
  }
  if ((changed & kCudnn) != 0) context.setUserEnabledCuDNN((settings & kCudnn) != 0);
  if ((changed & kCudnnBenchmark) != 0) context.setBenchmarkCuDNN((settings & kCudnnBenchmark) != 0);
  if ((changed & kCudnnDeterministic) != 0) context.setDeterministicCuDNN((settings & kCudnnDeterministic) != 0);
}

void Set(uint32_t settings) {
  const uint32_t changed = settings ^ CurrentSettings();
  if ((changed & 0xff) != 0)
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(settings & 0xff)));
  if ((changed & (kDeterministic | kWarnOnly)) != 0) {
    at::globalContext().setDeterministicAlgorithms((settings & kDeterministic) != 0, (settings & kWarnOnly) != 0);
  }
  if ((changed & kGpu) != 0) SetGpuSettings(settings, changed);
  LatestGpuSettings() = settings & kGpu;
  if ((changed >> kDeviceShift) != 0) SetCurrentDevice(DeviceOfSettings(settings));
}

// All but a GPU's.
uint32_t HostSettings(const at::Context& context) {
  return static_cast<uint32_t>(c10::get_default_dtype_as_scalartype()) |
         (context.deterministicAlgorithms() ? kDeterministic : 0) |
         (context.deterministicAlgorithmsWarnOnly() ? kWarnOnly : 0) |
         static_cast<uint32_t>(CurrentDevice()) << kDeviceShift;
}

}  // namespace

uint32_t CurrentSettings() {
  const at::Context& context = at::globalContext();
  if (!IsOnHost()) LatestGpuSettings() = GpuSettings(context);
  return LatestSettings();
}

uint32_t LatestSettings() { return HostSettings(at::globalContext()) | (IsOnHost() ? 0 : LatestGpuSettings()); }

uint32_t SettingsOfLibraries(uint32_t settings) { return settings & (kDeterministic | kWarnOnly | kGpu); }

UseSettings::UseSettings(uint32_t settings) : before_(CurrentSettings()) { Set(settings); }
UseSettings::~UseSettings() { Set(before_); }

}  // namespace torch_lazy::lazy
