// SPDX-License-Identifier: Apache-2.0
// One replay of a function's recorded call.
#pragma once

#include <optional>
#include <vector>

#include "lazy/replay/recording.h"

namespace torch_lazy::lazy {

// Records what that call would have recorded, with these tensors for its inputs and `numbers` for its numbers.
// Returns what the call would return, then what it would leave behind. nullopt, and nothing has happened: a captured
// storage is gone or resized, or its tensor has another one. `draws`: what its recorded calls were given to draw.
std::optional<std::vector<at::Tensor>> PlayRecording(ReplayRecording* recording, at::TensorList inputs,
                                                     std::vector<c10::IValue> numbers, std::vector<PhiloxDraw>* draws);

}  // namespace torch_lazy::lazy
