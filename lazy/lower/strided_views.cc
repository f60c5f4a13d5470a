// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/strided_views.h"

#include <algorithm>
#include <numeric>

namespace torch_lazy::lazy {
namespace {

int64_t Product(c10::IntArrayRef numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

// A box in an array of shape `ambient`: along dim k, `sizes[k]` elements from `starts[k]` on, `steps[k]` apart.
struct Box {
  c10::DimVector ambient, starts, sizes;
  ir::Ints steps;
  c10::SmallVector<int, 6>
      from;  // per logical dim of the tensor: the dim of the box, -1 if it has none (extent 1, stride 0)
};

struct Walk {
  int64_t size, stride;
  int logical;
};

// The dims of a geometry that move through memory, largest stride first. False for overlapping or negative strides.
bool Walks(const Geometry& geometry, c10::SmallVectorImpl<Walk>* walks) {
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    if (geometry.sizes[d] == 1 || geometry.strides[d] == 0) continue;
    if (geometry.strides[d] < 0) return false;
    walks->push_back({geometry.sizes[d], geometry.strides[d], static_cast<int>(d)});
  }
  std::sort(walks->begin(), walks->end(), [](const Walk& a, const Walk& b) { return a.stride > b.stride; });
  for (size_t k = 1; k < walks->size(); ++k) {
    if ((*walks)[k - 1].stride == (*walks)[k].stride) return false;
  }
  return true;
}

// The tensor as a box of the array's own dims: each walk steps along one of them.
bool BoxInOwnDims(const MemoryValue& memory, const Geometry& geometry, c10::ArrayRef<Walk> walks, Box* box) {
  const size_t rank = memory.dims.size();
  box->ambient = memory.dims;
  box->starts.resize(rank);
  box->sizes.assign(rank, 1);
  box->steps.assign(rank, 1);
  box->from.assign(geometry.sizes.size(), -1);
  c10::DimVector strides(rank);
  int64_t offset = geometry.offset;
  int64_t stride = Product(memory.dims);
  for (size_t i = 0; i < rank; ++i) {
    stride /= memory.dims[i];
    strides[i] = stride;
    box->starts[i] = offset / stride;
    offset %= stride;
  }
  for (const Walk& walk : walks) {
    size_t i = 0;
    while (i < rank && walk.stride < strides[i]) ++i;
    if (i == rank || walk.stride % strides[i] != 0 || box->sizes[i] != 1) return false;
    box->sizes[i] = walk.size;
    box->steps[i] = walk.stride / strides[i];
    box->from[walk.logical] = static_cast<int>(i);
  }
  for (size_t i = 0; i < rank; ++i) {
    if (box->starts[i] + (box->sizes[i] - 1) * box->steps[i] >= memory.dims[i]) return false;
  }
  return true;
}

// The tensor as a box of the flat array cut along the tensor's own strides: views that split or merge dims.
bool BoxInStrides(const MemoryValue& memory, const Geometry& geometry, c10::ArrayRef<Walk> walks, Box* box) {
  *box = Box();
  box->from.assign(geometry.sizes.size(), -1);
  int64_t outer = Product(memory.dims);
  int64_t offset = geometry.offset;
  auto cut = [&](int64_t stride, int64_t size) {
    if (outer % stride != 0) return false;
    const int64_t extent = outer / stride;
    const int64_t start = offset / stride;
    offset %= stride;
    outer = stride;
    if (start + size > extent) return false;
    if (extent == 1) return true;
    box->ambient.push_back(extent);
    box->starts.push_back(start);
    box->sizes.push_back(size);
    box->steps.push_back(1);
    return true;
  };
  for (const Walk& walk : walks) {
    if (!cut(walk.stride, walk.size)) return false;
    box->from[walk.logical] = static_cast<int>(box->ambient.size()) - 1;
  }
  return outer == 1 || cut(1, 1);
}

ir::Value ReadBox(ir::Builder* b, SymbolTable* symbols, ir::Value value, const Box& box, const Geometry& geometry) {
  value = b->Reshape(value, symbols->DimsOf(box.ambient));
  value = b->Slice(value, symbols->DimsOf(box.starts), symbols->DimsOf(box.sizes), box.steps);
  // Without the dims of which one element is left, then in logical order, then with the dims that do not move.
  c10::SmallVector<int, 6> kept(box.sizes.size(), -1);
  ir::Dims moving;
  for (size_t i = 0; i < box.sizes.size(); ++i) {
    if (box.sizes[i] == 1) continue;
    kept[i] = static_cast<int>(moving.size());
    moving.push_back(symbols->ExtentOf(box.sizes[i]));
  }
  value = b->Reshape(value, moving);
  ir::Ints order;
  ir::Dims with_ones, logical;
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    const bool moves = box.from[d] >= 0;
    if (moves) order.push_back(kept[box.from[d]]);
    logical.push_back(symbols->ExtentOf(geometry.sizes[d]));
    with_ones.push_back(moves ? logical.back() : ir::Extent::Constant(1));
  }
  return b->Expand(b->Reshape(b->Permute(value, order), with_ones), logical);
}

}  // namespace

std::optional<ir::DType> DTypeOf(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool:
      return ir::DType::kBool;
    case at::kByte:
      return ir::DType::kU8;
    case at::kChar:
      return ir::DType::kI8;
    case at::kShort:
      return ir::DType::kI16;
    case at::kInt:
      return ir::DType::kI32;
    case at::kLong:
      return ir::DType::kI64;
    case at::kHalf:
      return ir::DType::kF16;
    case at::kBFloat16:
      return ir::DType::kBF16;
    case at::kFloat:
      return ir::DType::kF32;
    case at::kDouble:
      return ir::DType::kF64;
    case at::kComplexFloat:
      return ir::DType::kC64;
    case at::kComplexDouble:
      return ir::DType::kC128;
    default:
      return std::nullopt;  // quantized, 8-bit floats, bits
  }
}

std::optional<c10::SmallVector<int, 6>> MemoryOrder(const Geometry& geometry, size_t size_bytes) {
  if (geometry.offset != 0 || geometry.conj || geometry.neg) return std::nullopt;
  if (static_cast<size_t>(Product(geometry.sizes)) * c10::elementSize(geometry.dtype) != size_bytes)
    return std::nullopt;
  c10::SmallVector<int, 6> order;
  if (size_bytes == 0) {
    for (size_t d = 0; d < geometry.sizes.size(); ++d) {
      if (geometry.sizes[d] != 1) order.push_back(static_cast<int>(d));
    }
    return order;
  }
  c10::SmallVector<Walk, 6> walks;
  if (!Walks(geometry, &walks)) return std::nullopt;
  int64_t stride = Product(geometry.sizes);
  for (const Walk& walk : walks) {
    if (stride / walk.size != walk.stride) return std::nullopt;
    stride = walk.stride;
    order.push_back(walk.logical);
  }
  return stride == 1 ? std::make_optional(order) : std::nullopt;
}

ir::Value Read(ir::Builder* b, SymbolTable* symbols, const MemoryValue& memory, const Geometry& geometry) {
  if (geometry.dtype != memory.dtype || geometry.conj || geometry.neg) return ir::kNoValue;
  if (Product(geometry.sizes) == 0) {
    if (ir::IsComplex(*DTypeOf(geometry.dtype))) return ir::kNoValue;  // no constants of complex types
    return b->Full(b->Cast(b->Const(ir::DType::kI64, 0), *DTypeOf(geometry.dtype)), symbols->DimsOf(geometry.sizes));
  }
  if (Product(memory.dims) == 0) return ir::kNoValue;
  c10::SmallVector<Walk, 6> walks;
  Box box;
  if (!Walks(geometry, &walks)) return ir::kNoValue;
  if (!BoxInOwnDims(memory, geometry, walks, &box) && !BoxInStrides(memory, geometry, walks, &box)) return ir::kNoValue;
  return ReadBox(b, symbols, memory.value, box, geometry);
}

MemoryValue Write(ir::Builder* b, SymbolTable* symbols, ir::Value logical, const Geometry& geometry,
                  c10::ArrayRef<int> order) {
  MemoryValue memory;
  memory.dtype = geometry.dtype;
  for (const int d : order) memory.dims.push_back(geometry.sizes[d]);
  // Ones last, so that dropping them is a reshape.
  ir::Ints all(order.begin(), order.end());
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    if (std::find(order.begin(), order.end(), static_cast<int>(d)) == order.end())
      all.push_back(static_cast<int64_t>(d));
  }
  memory.value = b->Reshape(b->Permute(logical, all), symbols->DimsOf(memory.dims));
  return memory;
}

}  // namespace torch_lazy::lazy
