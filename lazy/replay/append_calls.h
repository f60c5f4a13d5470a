// SPDX-License-Identifier: Apache-2.0
// Appending the calls of a recording to the thread's trace, on other storages.
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include "lazy/replay/recording.h"

namespace torch_lazy::lazy {

// All at once behind calls that they have followed before, else one by one. `storages`: of each of the recording's that
// has one; they are the same afterwards.
void AppendCalls(ReplayRecording* recording, std::vector<c10::IValue> numbers, std::vector<c10::Storage>* storages);

}  // namespace torch_lazy::lazy
