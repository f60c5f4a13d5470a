// SPDX-License-Identifier: Apache-2.0
// Tensors' geometries as views of the values behind their storages.
//
// A storage's value has its dims in memory order: row-major contiguous, without extents of 1. A tensor on it is a chain
// of reshape, slice, permute and expand, found from the numbers; two tensors of one storage may need different chains.
#pragma once

#include <optional>

#include "ir/builder.h"
#include "lazy/eager/geometry.h"
#include "lazy/lower/symbols.h"

namespace torch_lazy::lazy {

// A value that fills a storage.
struct MemoryValue {
  ir::Value value = ir::kNoValue;
  c10::DimVector dims;  // in memory order, no ones
  at::ScalarType dtype = at::kFloat;
};

// Nullopt for dtypes that graphs do not know.
std::optional<ir::DType> DTypeOf(at::ScalarType dtype);

// The logical dims of a geometry that covers a storage of `size_bytes` exactly, each byte once, ordered from the
// largest stride to the smallest; extents of 1 left out. Nullopt if it does not cover it so.
std::optional<c10::SmallVector<int, 6>> MemoryOrder(const Geometry& geometry, size_t size_bytes);

// The tensor of this geometry on the storage that `memory` fills: logical dims. kNoValue if no chain of views gives it.
ir::Value Read(ir::Builder* builder, SymbolTable* symbols, const MemoryValue& memory, const Geometry& geometry);

// The value that fills the storage when `logical` is written through a covering geometry.
MemoryValue Write(ir::Builder* builder, SymbolTable* symbols, ir::Value logical, const Geometry& geometry,
                  c10::ArrayRef<int> order);

}  // namespace torch_lazy::lazy
