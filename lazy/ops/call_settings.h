// SPDX-License-Identifier: Apache-2.0
// Settings of PyTorch that decide what a call does.
//
// The default dtype decides that of 1 / 2, determinism what a kernel does or refuses, TF32 and cuDNN's flags what a GPU
// does. They belong to the operator in a call's first word, so that other settings walk another path. A trace is
// recorded and run under the same: a change cuts it. So does the device, which is one of them: a trace is one device's,
// and so are its plan, its graph and what they hold.
#pragma once

#include <cstdint>

#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

// Those in force, as one number.
uint32_t CurrentSettings();

// The same, but a GPU's are those that this thread has seen last, since PyTorch keeps TF32's in a table.
uint32_t LatestSettings();

// The first word of a call that is made now. What a GPU does in a pointwise call does not depend on its settings, so it
// joins any trace.
inline int64_t FirstWord(const Op& op) {
  return static_cast<int64_t>(op.id) | static_cast<int64_t>(op.pointwise ? LatestSettings() : CurrentSettings()) << 32;
}
inline uint32_t SettingsOf(int64_t first_word) { return static_cast<uint32_t>(first_word >> 32); }

inline constexpr int kDeviceShift = 20;  // the device is above the others
inline int DeviceOfSettings(uint32_t settings) { return static_cast<int>(settings >> kDeviceShift); }

// Of these, what PyTorch's libraries ask for when they are called.
uint32_t SettingsOfLibraries(uint32_t settings);

// Why a call cannot join a trace of other settings; null: they are the same.
inline const char* UnlikeSettings(uint32_t of_trace, uint32_t of_call) {
  if (of_trace == of_call) return nullptr;
  return DeviceOfSettings(of_trace) != DeviceOfSettings(of_call) ? "another device" : "settings";
}

// In force for a scope, for all threads, as PyTorch's own are; the device for this one.
class UseSettings {
 public:
  explicit UseSettings(uint32_t settings);
  ~UseSettings();
  UseSettings(const UseSettings&) = delete;
  UseSettings& operator=(const UseSettings&) = delete;

 private:
  const uint32_t before_;
};

}  // namespace torch_lazy::lazy
