// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/indexing.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <ATen/ExpandUtils.h>

namespace torch_lazy::device::shapes {
namespace {

bool AreDims(const std::vector<int64_t>& dims, int64_t rank) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return dim >= -rank && dim < rank; });
}

struct Chosen {
  c10::DimVector sizes;
  bool are_apart;  // dimensions that are chosen from, so that what is chosen from all of them comes first
};

// The elements that indices choose; nothing if the indices are no numbers, or not of one shape.
std::optional<Chosen> ChosenBy(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const auto is_given = [](const at::Tensor& index) { return index.defined(); };
  const auto first = std::find_if(indices.begin(), indices.end(), is_given);
  if (first == indices.end() || static_cast<int64_t>(indices.size()) > self.dim()) return std::nullopt;
  for (auto index = first; index != indices.end(); ++index) {
    if (!index->defined()) continue;
    if (index->sizes() != first->sizes()) return std::nullopt;
    if (index->scalar_type() != at::kLong && index->scalar_type() != at::kInt) return std::nullopt;
  }
  const auto last = std::find_if_not(first, indices.end(), is_given);
  Chosen chosen{{}, std::any_of(last, indices.end(), is_given)};
  c10::DimVector& sizes = chosen.sizes;
  const auto append = [&sizes](c10::IntArrayRef more) { sizes.append(more.begin(), more.end()); };
  if (chosen.are_apart) append(first->sizes());
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if (d >= indices.size() || !indices[d].defined()) sizes.push_back(self.size(static_cast<int64_t>(d)));
    if (!chosen.are_apart && indices.begin() + static_cast<ptrdiff_t>(d) == first) append(first->sizes());
  }
  return chosen;
}

}  // namespace

// (self, dim, index, ...)
bool Gather(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(0), &index = call.Tensor(2);
  const int64_t dim = call.Dim(1, self.dim());
  if (dim < 0 || index.dim() != self.dim()) return false;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim && index.size(d) > self.size(d)) return false;
  }
  return call.Return(index.sizes(), self.scalar_type());
}

// (self, dim, index)
bool IndexSelect(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(0), &index = call.Tensor(2);
  const int64_t dim = call.Dim(1, self.dim());
  if (dim < 0 || index.dim() > 1) return false;
  c10::DimVector sizes(self.sizes());
  sizes[dim] = index.numel();
  return call.Return(sizes, self.scalar_type());
}

// (self, indices): in one dimension or in several that follow one another.
bool Index(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  const std::vector<at::Tensor> indices = call.Tensors(1);
  const std::optional<Chosen> chosen = ChosenBy(self, indices);
  if (!chosen || chosen->are_apart || !self.is_contiguous() || self.numel() == 0) return false;
  const auto lies_otherwise = [](const at::Tensor& index) {
    return index.defined() && index.dim() > 1 && !index.is_contiguous();
  };
  return std::none_of(indices.begin(), indices.end(), lies_otherwise) && call.Return(chosen->sizes, self.scalar_type());
}

// (self, indices, values, ...)
bool IndexPutInPlace(ShapeCall& call) {
  const std::optional<Chosen> chosen = ChosenBy(call.Tensor(0), call.Tensors(1));
  return chosen && at::is_expandable_to(call.Tensor(2).sizes(), chosen->sizes) && call.ReturnWritten(0);
}

bool Concatenate(ShapeCall& call) {
  const std::vector<at::Tensor> tensors = call.Tensors(0);
  if (tensors.empty()) return false;
  const at::Tensor& first = tensors[0];
  const int64_t dim = call.Dim(1, first.dim());
  if (dim < 0) return false;
  c10::DimVector sizes(first.sizes());
  sizes[dim] = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() != first.dim() || tensor.scalar_type() != first.scalar_type() ||
        tensor.suggest_memory_format() != first.suggest_memory_format()) {
      return false;
    }
    for (int64_t d = 0; d < first.dim(); ++d) {
      if (d != dim && tensor.size(d) != first.size(d)) return false;
    }
    sizes[dim] += tensor.size(dim);
  }
  return call.Return(sizes, first.suggest_memory_format(), first.scalar_type());
}

// (self, diagonal)
bool Triangle(ShapeCall& call) { return call.ReturnLike(call.Tensor(0)); }

// (self, dims), each once
bool Flip(ShapeCall& call) {
  const int64_t rank = call.Tensor(0).dim();
  std::vector<int64_t> dims = call.Ints(1);
  if (!AreDims(dims, rank)) return false;
  for (int64_t& dim : dims) dim = dim < 0 ? dim + rank : dim;
  std::sort(dims.begin(), dims.end());
  return std::adjacent_find(dims.begin(), dims.end()) == dims.end() && call.ReturnLike(call.Tensor(0));
}

// (self, shifts, dims)
bool Roll(ShapeCall& call) {
  const std::vector<int64_t> shifts = call.Ints(1), dims = call.Ints(2);
  const bool fit = dims.empty() ? shifts.size() == 1 : shifts.size() == dims.size();
  return fit && AreDims(dims, call.Tensor(0).dim()) && call.ReturnLike(call.Tensor(0));
}

// (self, stable?, dim, descending) -> (values, indices)
bool Sort(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  if (self.dim() != 0 && call.Dim(2, self.dim()) < 0) return false;
  return call.Return(self.sizes(), self.strides(), self.scalar_type()) &&
         call.Return(self.sizes(), self.strides(), at::kLong);
}

// (self, k, dim, ...) -> (values, indices)
bool TopK(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  const int64_t dim = call.Dim(2, self.dim());
  if (dim < 0 || call.Int(1) < 0 || call.Int(1) > self.size(dim)) return false;
  c10::DimVector sizes(self.sizes());
  sizes[dim] = call.Int(1);
  return call.Return(sizes, self.scalar_type()) && call.Return(sizes, at::kLong);
}

// (values, boundaries, out_int32, ...)
bool Bucketize(ShapeCall& call) { return call.Return(call.Tensor(0).sizes(), call.Bool(2) ? at::kInt : at::kLong); }

// (condition, self, other)
bool Where(ShapeCall& call) {
  return call.Tensor(1).scalar_type() == call.Tensor(2).scalar_type() &&
         call.ReturnElementwise(call.Tensor(1).scalar_type());
}

// (self, mask, value); contiguous, whatever self is
bool MaskedFill(ShapeCall& call) {
  return call.Return(at::infer_size_dimvector(call.Tensor(0).sizes(), call.Tensor(1).sizes()),
                     call.Tensor(0).scalar_type());
}

// (grad, input_sizes, dim, ...)
bool PartBackward(ShapeCall& call) {
  const std::vector<int64_t> sizes = call.Ints(1);
  return call.Dim(2, static_cast<int64_t>(sizes.size())) >= 0 && call.Return(sizes, call.Tensor(0).scalar_type());
}

}  // namespace torch_lazy::device::shapes
