// SPDX-License-Identifier: Apache-2.0
// Tensors from numbers alone: ATen makes them, but for ranges of integers.
#include "device/shapes/factories.h"

#include "device/eager_overrides/our_arguments.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/in_place.h"

namespace torch_lazy::device {
namespace {

using ir::DType;

// (result, start, end, step). Floats are ATen's: how it rounds depends on the device.
bool Arange(lazy::Lowering& call) {
  const ir::Type& type = call.Result(0);
  if (!ir::IsInteger(type.dtype) || call.NumberIsFloat(1) || call.NumberIsFloat(3)) return false;
  ir::Builder& b = call.b();
  const Tensor place(b, b.Iota({DType::kI64, type.dims}, /*dim=*/0));
  const Tensor start(b, call.Number(1, DType::kI64)), step(b, call.Number(3, DType::kI64));
  call.Return(0, place * step + start);
  return true;
}

constexpr lazy::Row kFactoryRows[] = {
    {.name = "aten::arange.start_out", .shape = shapes::Arange},
    {.name = "aten::eye", .shape = shapes::Eye},
    {.name = "aten::eye.m", .shape = shapes::EyeOf},
    {.name = "aten::full*", .flags = kTakesAllValues},
    {.name = "aten::linspace", .shape = shapes::Linspace},
    {.name = "aten::ones*", .flags = kTakesAllValues},
    {.name = "aten::tril_indices", .flags = kTakesAllValues},
    {.name = "aten::triu_indices", .flags = kTakesAllValues},
    {.name = "aten::zeros*", .flags = kTakesAllValues},
    {.name = "torch_lazy::arange",
     .lower = Arange,
     .flags = kTakesAllValues,
     .shape = shapes::Fill,
     .runner = RunArange,
     .check = CheckArange},
};

}  // namespace

Rows FactoryRows() { return kFactoryRows; }

}  // namespace torch_lazy::device
