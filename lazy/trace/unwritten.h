// SPDX-License-Identifier: Apache-2.0
// Memory that nobody has written.
//
// x = torch.empty(3) holds anything, but under torch.use_deterministic_algorithms() NaN, or the largest number of its
// type, so that a program that reads it gives the same each time. Nearly all such memory is overwritten unread: a
// storage is filled when its content is first needed, if ever, and what calls of PyTorch allocate for themselves is not
// filled.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

// Whether the settings in force ask for memory that is filled.
bool FillsUnwritten();

// The content of a storage that is read, or written in part, before anything was stored there. Uninitialised for
// `Undefined`; else filled with NaN, or the largest number, of that type, which torch.use_deterministic_algorithms()
// asks for.
c10::Storage UnwrittenContent(size_t size_bytes, at::ScalarType dtype);

// The tensor is overwritten next, unread: if it is all of its storage, that need not be filled before.
void WillOverwrite(const at::Tensor& tensor);

// While one lives, PyTorch's calls leave what they allocate unwritten, since they overwrite all of it: filling it is a
// fifth of the launches of a GPT's step. For all threads, as PyTorch's setting is, but FillsUnwritten() goes on as
// before.
class LeaveUnwritten {
 public:
  LeaveUnwritten();
  ~LeaveUnwritten();
  LeaveUnwritten(const LeaveUnwritten&) = delete;
  LeaveUnwritten& operator=(const LeaveUnwritten&) = delete;

 private:
  const bool is_needed_;
};

}  // namespace torch_lazy::lazy
