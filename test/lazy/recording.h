// SPDX-License-Identifier: Apache-2.0
// Recording calls without a device.
//
// Tensors are over storages of lazy/, and operators are called as the device's boxed kernel would. Rows are the test's
// own: `add` and `mul` of tensors are lowered, nothing else is.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>

#include "lazy/ops/op.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

const Op& OpNamed(const char* name, const char* overload = "");

// Writes the call down. Returns what it returns.
at::Tensor Record(const Op& op, std::vector<c10::IValue> arguments);

// A tensor that holds this already, as a parameter does.
at::Tensor Holding(const std::vector<float>& values);
at::Tensor Holding(const std::vector<int64_t>& values);

at::Tensor Add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha = 1);
at::Tensor Mul(const at::Tensor& x, const at::Tensor& y);
void AddInPlace(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha = 1);
// Not lowered, and may fail: an index may be out of range.
at::Tensor Gather(const at::Tensor& x, const at::Tensor& index);

// What the tensor holds, once all that writes it has run.
std::vector<float> ValuesOf(const at::Tensor& tensor);

// The thread's trace, with the lock that it wants.
std::shared_ptr<Trace> PendingTrace();

// "add.Tensor mul.Tensor": the calls of the trace.
std::string CallsOf(const Trace& trace);

// Compiled graphs are forgotten, too.
void ForgetPlans();

// Returns when the thread for work in the background has done all that it was given before.
void AwaitBackground();

// Each test begins without known traces and plans, on a fake backend that has been asked for nothing; compile=off,
// overlap=0.
class RecordingTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  static void SetOption(const char* name, const char* text);
};

}  // namespace torch_lazy::lazy
