// SPDX-License-Identifier: Apache-2.0
// The functions that the library exports, for C++ (torch_lazy/torch_lazy.h) and for Python's ctypes.
//
// A model file (TorchScript, .pt2) may call any operator of PyTorch's dispatcher, so what chooses programs, folders and
// files, or is of use to nobody but a program, is no operator.
#include "device/include/torch_lazy/torch_lazy.h"

#include <exception>
#include <string>
#include <vector>

#include "base/flags.h"
#include "device/self_check.h"
#include "lazy/cuda/philox.h"
#include "lazy/host/python_line.h"
#include "lazy/trace/replay_recorder.h"

namespace {

// What a function returns: null, or what was wrong, until the thread calls the next one.
const char* Message(std::string text) {
  thread_local std::string message;
  message = std::move(text);
  return message.c_str();
}

}  // namespace

extern "C" {

const char* torch_lazy_set_option(const char* name, const char* value) {
  const absl::Status status = torch_lazy::base::SetOption(name, value);
  return status.ok() ? nullptr : Message(std::string(status.message()));
}

const char* torch_lazy_take_draw(int64_t per_thread, int64_t* seed, int64_t* offset) {
  try {
    const torch_lazy::lazy::PhiloxDraw draw = torch_lazy::lazy::TakeRecordedDraw(static_cast<uint64_t>(per_thread));
    *seed = draw.seed;
    *offset = draw.offset;
    return nullptr;
  } catch (const std::exception& error) {
    return Message(error.what());
  }
}

const char* torch_lazy_why_unfit() {
  const std::string& why = torch_lazy::device::WhyUnfit();
  return why.empty() ? nullptr : why.c_str();
}

void torch_lazy_name_python_lines(const char* const* others, size_t count) {
  torch_lazy::lazy::NamePythonLines(std::vector<std::string>(others, others + count));
}

}  // extern "C"
