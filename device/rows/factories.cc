// SPDX-License-Identifier: Apache-2.0
// Tensors from numbers alone: ATen makes them.
#include "device/shapes/factories.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

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
};

}  // namespace

Rows FactoryRows() { return kFactoryRows; }

}  // namespace torch_lazy::device
