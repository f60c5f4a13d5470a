// SPDX-License-Identifier: Apache-2.0
// Replays of functions with gradients, as autograd sees them: one node, whose backward pass is another replay.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include "lazy/replay/replay.h"

namespace torch_lazy::device {

// How the gradient of an output lies in memory when a backward pass is noted or replayed: as the output if that is
// dense, in storage of its own. So no gradient that comes otherwise is a case of its own.
struct GradientForm {
  explicit GradientForm(const at::Tensor& output);

  at::ScalarType dtype;
  at::Device device;
  c10::DimVector sizes, strides;
};

// The gradients, copied where they lie otherwise or share storage with each other or with `others`; zeros for undefined
// ones.
std::vector<at::Tensor> InForm(const std::vector<GradientForm>& forms, std::vector<at::Tensor> gradients,
                               const std::vector<at::Tensor>& others);

// What the function would return, with its way back to the inputs. nullopt: it must be called.
std::optional<std::vector<at::Tensor>> ReplayWithGradients(lazy::Replay* forward,
                                                           std::shared_ptr<lazy::Replay> backward,
                                                           const std::vector<at::Tensor>& inputs,
                                                           const std::vector<double>& numbers);

}  // namespace torch_lazy::device
