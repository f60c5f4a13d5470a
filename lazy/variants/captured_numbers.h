// SPDX-License-Identifier: Apache-2.0
// Numbers among the arguments of ATen's calls, which become part of a CUDA graph that they are captured in.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>

#include "lazy/cuda/philox.h"
#include "lazy/run/bound_plan.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// Of a run's calls, those for random numbers aside.
std::vector<c10::IValue> NumbersOfCalls(const BoundPlan& plan, const Trace& trace);

// False also for what is no number.
bool IsSame(const c10::IValue& a, const c10::IValue& b);

// The random numbers that a run's calls draw.
std::vector<PhiloxDraw> DrawsOf(const BoundPlan& plan, const Trace& trace);

// Where a CUDA graph's draws begin; nothing if they have several seeds.
std::optional<PhiloxDraw> FirstOf(const std::vector<PhiloxDraw>& draws);

// True if a CUDA graph that was captured with the one will draw the other.
bool LieAlike(const std::vector<PhiloxDraw>& a, const std::vector<PhiloxDraw>& b);

}  // namespace torch_lazy::lazy
