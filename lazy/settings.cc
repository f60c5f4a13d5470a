// SPDX-License-Identifier: Apache-2.0
#include "lazy/settings.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

namespace torch_lazy::lazy {
namespace {

constexpr uint32_t kDeterministic = 1 << 8;  // above the dtype
constexpr uint32_t kWarnOnly = 1 << 9;

void Set(uint32_t settings) {
  const uint32_t changed = settings ^ CurrentSettings();
  if ((changed & 0xff) != 0) c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(settings & 0xff)));
  if ((changed & (kDeterministic | kWarnOnly)) != 0) {
    at::globalContext().setDeterministicAlgorithms((settings & kDeterministic) != 0, (settings & kWarnOnly) != 0);
  }
}

}  // namespace

uint32_t CurrentSettings() {
  const at::Context& context = at::globalContext();
  return static_cast<uint32_t>(c10::get_default_dtype_as_scalartype()) |
         (context.deterministicAlgorithms() ? kDeterministic : 0) |
         (context.deterministicAlgorithmsWarnOnly() ? kWarnOnly : 0);
}

UseSettings::UseSettings(uint32_t settings) : before_(CurrentSettings()) { Set(settings); }
UseSettings::~UseSettings() { Set(before_); }

}  // namespace torch_lazy::lazy
