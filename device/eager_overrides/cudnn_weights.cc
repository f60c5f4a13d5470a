// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/cudnn_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/DimVector.h>

#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::device {
namespace {

int64_t NumGates(RnnMode mode) { return mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1; }

// w_ih, w_hh, b_ih and b_hh where there are biases, w_hr where there are projections.
std::vector<c10::DimVector> SizesOfLayer(const RnnForm& form, int64_t layer, int64_t per_layer) {
  const int64_t rows = NumGates(form.mode) * form.hidden_size;
  const int64_t input = layer == 0 ? form.input_size : form.output_size() * form.num_directions();
  std::vector<c10::DimVector> sizes = {{rows, input}, {rows, form.output_size()}};
  if (per_layer >= 4) sizes.insert(sizes.end(), 2, c10::DimVector{rows});
  if (form.proj_size != 0) sizes.push_back({form.proj_size, form.hidden_size});
  return sizes;
}

void CheckSizes(const RnnForm& form, at::TensorList weights, int64_t per_layer) {
  TORCH_CHECK(static_cast<int64_t>(weights.size()) == per_layer * form.num_layers * form.num_directions(),
              "got an incorrect number of RNN parameters");
  size_t k = 0;
  for (int64_t layer = 0; layer < form.num_layers; ++layer) {
    const std::vector<c10::DimVector> wanted = SizesOfLayer(form, layer, per_layer);
    TORCH_CHECK(static_cast<int64_t>(wanted.size()) == per_layer, "got an incorrect number of RNN parameters");
    for (int64_t direction = 0; direction < form.num_directions(); ++direction) {
      for (const c10::DimVector& sizes : wanted) {
        TORCH_CHECK(weights[k].sizes() == sizes, "RNN parameter ", k, " has sizes ", weights[k].sizes(), ", expected ",
                    at::IntArrayRef(sizes));
        ++k;
      }
    }
  }
}

// cuDNN moves weights like these, and tells where they are now.
WeightsLayout AskCudnn(const RnnForm& form, at::TensorList weights, int64_t per_layer) {
  // Not seen by the program's modes, nor by autograd.
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::vector<at::Tensor> moved;
  for (const at::Tensor& weight : weights) {
    moved.push_back(at::empty(weight.sizes(), at::device(lazy::EagerDevice()).dtype(weight.scalar_type())));
  }
  const at::Tensor buffer = at::_cudnn_rnn_flatten_weight(
      moved, per_layer, form.input_size, static_cast<int64_t>(form.mode), form.hidden_size, form.proj_size,
      form.num_layers, /*batch_first=*/false, form.bidirectional);
  WeightsLayout layout = {buffer.numel(), {}};
  for (const at::Tensor& weight : moved) {
    TORCH_INTERNAL_ASSERT(weight.storage().is_alias_of(buffer.storage()) && weight.is_contiguous());
    layout.offsets.push_back(weight.storage_offset());
  }
  return layout;
}

// On the host, where nothing but a test asks: one after the other.
WeightsLayout InOrder(at::TensorList weights) {
  WeightsLayout layout;
  for (const at::Tensor& weight : weights) {
    layout.offsets.push_back(layout.count);
    layout.count += weight.numel();
  }
  return layout;
}

}  // namespace

WeightsLayout LayoutOf(const RnnForm& form, at::TensorList weights, int64_t per_layer) {
  CheckSizes(form, weights, per_layer);
  if (lazy::IsOnHost()) return InOrder(weights);
  static std::mutex* const mutex = new std::mutex;
  static auto* const known = new std::map<std::array<int64_t, 9>, WeightsLayout>;
  const std::array<int64_t, 9> key = {static_cast<int64_t>(form.mode),
                                      form.input_size,
                                      form.hidden_size,
                                      form.proj_size,
                                      form.num_layers,
                                      form.bidirectional,
                                      per_layer,
                                      static_cast<int64_t>(weights[0].scalar_type()),
                                      lazy::CurrentDevice()};
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto found = known->find(key);
  if (found != known->end()) return found->second;
  return known->emplace(key, AskCudnn(form, weights, per_layer)).first->second;
}

at::Tensor PackWeights(at::TensorList weights, const WeightsLayout& layout) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; });
  std::vector<at::Tensor> parts;
  int64_t end = 0;
  const auto fill_up_to = [&](int64_t offset) {
    TORCH_INTERNAL_ASSERT(offset >= end, "lazy: weights of cuDNN's that overlap");
    if (offset > end) parts.push_back(at::zeros({offset - end}, weights[0].options()));
    end = offset;
  };
  for (const size_t k : order) {
    fill_up_to(layout.offsets[k]);
    parts.push_back(weights[k].reshape(-1));
    end += weights[k].numel();
  }
  fill_up_to(layout.count);
  return at::cat(parts);
}

std::vector<at::Tensor> UnpackWeights(const at::Tensor& buffer, at::TensorList weights, const WeightsLayout& layout) {
  std::vector<at::Tensor> unpacked;
  for (size_t k = 0; k < weights.size(); ++k) {
    unpacked.push_back(buffer.narrow(0, layout.offsets[k], weights[k].numel()).view(weights[k].sizes()).clone());
  }
  return unpacked;
}

}  // namespace torch_lazy::device
