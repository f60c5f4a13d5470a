// SPDX-License-Identifier: Apache-2.0
#include "device/replay_node.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "absl/container/flat_hash_map.h"
#include "lazy/eager/current_device.h"
#include "lazy/trace/storage.h"
#include "torch_compat/node.h"

namespace torch_lazy::device {
namespace {

using torch::autograd::variable_list;

// The inputs of the backward pass are those of the forward pass, what this leaves behind, its outputs, and the
// gradients of some outputs. Of the others, what no call uses is kept without its memory.
class ReplayBackward final : public torch::autograd::Node {
 public:
  ReplayBackward(std::shared_ptr<lazy::Replay> replay, const std::vector<at::Tensor>& inputs,
                 std::vector<double> numbers, std::vector<lazy::PhiloxDraw> draws)
      : replay_(std::move(replay)), numbers_(std::move(numbers)), draws_(std::move(draws)) {
    set_next_edges(torch::autograd::collect_next_edges(inputs));
  }

  void Return(const at::Tensor& output) { forms_.emplace_back(output); }

  void Save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& made,
            const std::vector<at::Tensor>& outputs) {
    const size_t first_output = inputs.size() + made.size();
    std::vector<at::Tensor> all = inputs;
    all.insert(all.end(), made.begin(), made.end());
    all.insert(all.end(), outputs.begin(), outputs.end());
    const std::vector<bool> is_used = replay_->UsedInputs(all.size());
    absl::flat_hash_map<c10::StorageImpl*, c10::Storage> kept;
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_used[i]) kept[all[i].storage().unsafeGetStorageImpl()] = all[i].storage();
    }
    for (size_t i = 0; i < all.size(); ++i) {
      others_.emplace_back();
      if (is_used[i]) {
        used_.emplace_back(all[i], /*is_output=*/i >= first_output && all[i].grad_fn().get() == this);
        continue;
      }
      const lazy::OnDevice on(all[i].device().index());
      c10::Storage& storage = kept[all[i].storage().unsafeGetStorageImpl()];
      if (!storage) storage = lazy::MakeStorage(all[i].storage().nbytes());
      others_.back() =
          lazy::MakeTensor(storage, all[i].scalar_type(), all[i].sizes(), all[i].strides(), all[i].storage_offset());
      others_.back()._set_conj(all[i].is_conj());
      others_.back()._set_neg(all[i].is_neg());
    }
  }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!is_released_, torch::autograd::ERR_BACKWARD_TWICE);
    const bool is_differentiated = c10::GradMode::is_enabled();
    variable_list results;
    {
      const c10::AutoGradMode no_grad(false);
      std::vector<at::Tensor> inputs;
      auto used = used_.begin();
      for (const at::Tensor& other : others_) inputs.push_back(other.defined() ? other : (used++)->unpack(getptr()));
      std::vector<at::Tensor> in_form = InForm(forms_, std::move(gradients), inputs);
      inputs.insert(inputs.end(), std::make_move_iterator(in_form.begin()), std::make_move_iterator(in_form.end()));
      std::optional<std::vector<at::Tensor>> found = replay_->Run(inputs, numbers_, draws_);
      TORCH_CHECK(found, "lazy: the backward pass of a replayed function cannot be replayed: ", replay_->refusal());
      const size_t wanted = static_cast<size_t>(std::ranges::count_if(next_edges(), &torch::autograd::Edge::is_valid));
      TORCH_CHECK_VALUE(found->size() >= wanted, "lazy: the backward pass gives ", found->size(), " gradients of ",
                        wanted);
      auto next = found->begin();
      for (size_t i = 0; i < num_outputs(); ++i)
        results.push_back(next_edge(i).is_valid() ? std::move(*next++) : at::Tensor());
    }
    if (!is_differentiated) return results;
    const auto error = torch_compat::MakeNode<torch::autograd::DelayedError>(
        "lazy: replayed functions have no second derivatives", static_cast<int64_t>(results.size()));
    for (at::Tensor& result : results) {
      if (result.defined()) result.requires_grad_();
    }
    return (*error)(std::move(results));
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_released_ = true;
    for (torch::autograd::SavedVariable& tensor : used_) tensor.reset_data();
    others_.clear();
  }

  std::string name() const override { return "ReplayBackward"; }

 private:
  const std::shared_ptr<lazy::Replay> replay_;
  const std::vector<double> numbers_;                 // that the function was given
  const std::vector<lazy::PhiloxDraw> draws_;         // of the forward pass
  std::vector<torch::autograd::SavedVariable> used_;  // by the calls
  std::vector<at::Tensor> others_;                    // per input but gradients; undefined: the next that is used
  std::vector<GradientForm> forms_;
  bool is_released_ = false;
  std::mutex mutex_;
};

}  // namespace

GradientForm::GradientForm(const at::Tensor& output)
    : dtype(output.scalar_type()), device(output.device()), sizes(output.sizes()) {
  if (output.is_non_overlapping_and_dense()) {
    strides = output.strides();
    return;
  }
  strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= std::max<int64_t>(sizes[d], 1)) strides[d] = stride;
}

std::vector<at::Tensor> InForm(const std::vector<GradientForm>& forms, std::vector<at::Tensor> gradients,
                               const std::vector<at::Tensor>& others) {
  TORCH_CHECK(forms.size() == gradients.size(), "lazy: expected ", forms.size(), " gradients, got ", gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor& gradient = gradients[i];
    const GradientForm& form = forms[i];
    const auto shares = [&](const at::Tensor& other) {
      return other.defined() && other.has_storage() && other.is_alias_of(gradient);
    };
    const bool lies_so = gradient.defined() && lazy::LazyStorageImpl::Of(gradient) != nullptr &&
                         gradient.scalar_type() == form.dtype && !gradient.is_conj() && !gradient.is_neg() &&
                         gradient.sizes() == form.sizes && gradient.strides() == form.strides &&
                         gradient.storage_offset() == 0 &&
                         gradient.storage().nbytes() == static_cast<size_t>(gradient.numel()) * gradient.itemsize();
    if (lies_so && std::none_of(others.begin(), others.end(), shares) &&
        std::none_of(gradients.begin(), gradients.begin() + static_cast<ptrdiff_t>(i), shares)) {
      continue;
    }
    at::Tensor in_form = at::empty_strided(form.sizes, form.strides, at::device(form.device).dtype(form.dtype));
    if (gradient.defined()) {
      in_form.copy_(gradient);
    } else {
      in_form.zero_();
    }
    gradient = std::move(in_form);
  }
  return gradients;
}

std::optional<std::vector<at::Tensor>> ReplayWithGradients(lazy::Replay* forward,
                                                           std::shared_ptr<lazy::Replay> backward,
                                                           const std::vector<at::Tensor>& inputs,
                                                           const std::vector<double>& numbers) {
  std::optional<std::vector<at::Tensor>> results = forward->Run(inputs, numbers);
  if (!results) return std::nullopt;
  const std::vector<bool>& differentiable = forward->differentiable();
  TORCH_CHECK_VALUE(differentiable.size() <= results->size(), "lazy: ", results->size(), " results, of which ",
                    differentiable.size(), " are said to have gradients or not");
  const auto node = torch_compat::MakeNode<ReplayBackward>(std::move(backward), inputs, numbers, forward->last_draws());
  for (size_t i = 0; i < differentiable.size(); ++i) {
    if (!differentiable[i]) continue;
    node->Return((*results)[i]);
    torch::autograd::set_history((*results)[i], node);
  }
  const std::vector<at::Tensor> made(results->begin() + static_cast<ptrdiff_t>(differentiable.size()), results->end());
  results->resize(differentiable.size());
  node->Save(inputs, made, *results);
  return results;
}

}  // namespace torch_lazy::device
