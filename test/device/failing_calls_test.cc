// SPDX-License-Identifier: Apache-2.0
// A call that refuses values fails when the trace runs, and leaves what a program that stops there leaves.
#include <functional>
#include <optional>

#include <ATen/ops/_assert_async.h>
#include <ATen/ops/div.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/nll_loss.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

void SetCompile(const char* value) { SetOption("compile", value); }

// `numbers`: of dtype i64, four of them; `x`: four floats.
struct FailingCall {
  const char* name;
  std::function<void(at::Tensor& x, const at::Tensor& numbers)> call;
  int64_t good = 1, bad = 7;
};

const FailingCall kCalls[] = {
    {"gather", [](at::Tensor& x, const at::Tensor& n) { x.gather(0, n); }},
    {"index_select", [](at::Tensor& x, const at::Tensor& n) { x.index_select(0, n); }},
    {"embedding",
     [](at::Tensor& x, const at::Tensor& n) {
       at::embedding(x.view({4, 1}), n);
     }},
    {"nll_loss",
     [](at::Tensor& x, const at::Tensor& n) {
       at::nll_loss(x.view({4, 1}).expand({4, 3}).contiguous(), n);
     }},
    {"index_copy_ in place",
     [](at::Tensor& x, const at::Tensor& n) { x.index_copy_(0, n.narrow(0, 3, 1), x.narrow(0, 0, 1).clone()); }},
    {"index_add_ in place", [](at::Tensor& x, const at::Tensor& n) { x.index_add_(0, n, x.clone()); }},
    {"scatter_add_ in place", [](at::Tensor& x, const at::Tensor& n) { x.scatter_add_(0, n, x.clone()); }},
    {"division by zero", [](at::Tensor&, const at::Tensor& n) { at::div(n.add(1), n, "floor"); }, 1, 0},
    {"an assertion", [](at::Tensor&, const at::Tensor& n) { at::_assert_async(n.sum() > 0, "none"); }, 1, 0},
    {"samples of nothing", [](at::Tensor& x, const at::Tensor& n) { at::multinomial(x.mul(n), 1); }, 1, 0},
    {"samples of less than nothing", [](at::Tensor& x, const at::Tensor& n) { at::multinomial(x.mul(n), 2); }, 1, -1},
    {"remainder by zero", [](at::Tensor&, const at::Tensor& n) { n.add(1).remainder(n); }, 1, 0},
};

// A program around the call: what it holds where it stops.
struct Program {
  at::Tensor older, untouched, before, after;
  std::string error;  // type

  Program(const FailingCall& failing, at::Device device, int64_t number) {
    older = Iota({4}).to(device);
    untouched = Iota({4}).to(device);
    const at::Tensor numbers = at::full({4}, number, at::kLong).to(device);
    try {
      older.add_(1);
      before = older.mul(2);
      older.mul_(3);
      failing.call(older, numbers);
      older.sub_(5);
      before.add_(1);
      untouched.fill_(9);
      after = before.add(untouched);
      if (device != at::kCPU) CallOp<void>("sync");
    } catch (const std::exception& exception) {
      error = typeid(exception).name();
    }
  }
};

void ExpectStopsAsEager(const FailingCall& failing) {
  const Program eager(failing, at::kCPU, failing.bad);
  ASSERT_NE(eager.error, "") << failing.name;
  for (int i = 0; i < 3; ++i) {  // learned, recorded, compiled
    const Program good(failing, Lazy(), failing.good), twin(failing, at::kCPU, failing.good);
    ASSERT_EQ(good.error, "") << failing.name;
    ExpectSame(good.older, twin.older);
    ExpectSame(good.after, twin.after);
  }
  const Program lazy(failing, Lazy(), failing.bad);
  EXPECT_EQ(lazy.error, eager.error) << failing.name;
  ExpectSame(lazy.older, eager.older);
  ExpectSame(lazy.before, eager.before);
  ExpectSame(lazy.untouched, eager.untouched);
  ASSERT_TRUE(lazy.after.defined()) << failing.name << " failed at the call";
  EXPECT_THROW(lazy.after.cpu(), c10::Error) << failing.name;
  EXPECT_THROW(lazy.after.add(1), c10::Error) << failing.name;
  EXPECT_THROW(lazy.older.add(lazy.after), c10::Error) << failing.name;
  ExpectSame(lazy.older.add(1), eager.older.add(1));
}

TEST(FailingCalls, StopTheInterpretedProgram) {
  SetCompile("off");
  SetOption("disable", "at_once");
  for (const FailingCall& failing : kCalls) {
    SCOPED_TRACE(failing.name);
    ExpectStopsAsEager(failing);
  }
  SetOption("disable", "");
  SetCompile("async");
}

TEST(FailingCalls, StopTheCompiledProgram) {
  SetCompile("sync");
  for (const FailingCall& failing : kCalls) {
    SCOPED_TRACE(failing.name);
    ExpectStopsAsEager(failing);
  }
  SetCompile("async");
}

TEST(FailingCalls, StopALoopInTheStepThatFails) {
  for (const char* mode : {"off", "sync"}) {
    SetCompile(mode);
    const auto run = [](at::Device device, at::Tensor* weight) {
      *weight = Iota({4}).to(device);
      const at::Tensor good = at::full({4}, 1, at::kLong).to(device), bad = at::full({4}, 7, at::kLong).to(device);
      for (int i = 0; i < 9; ++i) {
        weight->add_(weight->gather(0, i == 7 ? bad : good));
        weight->mul_(0.5);
      }
      if (device != at::kCPU) CallOp<void>("sync");
    };
    at::Tensor lazy, eager;
    EXPECT_THROW(run(at::kCPU, &eager), c10::Error);
    EXPECT_THROW(run(Lazy(), &lazy), c10::Error) << mode;
    ExpectSame(lazy, eager);
  }
  SetCompile("async");
}

TEST(FailingCalls, WhatHasNoValueMayEnd) {
  SetCompile("off");
  const FailingCall& failing = kCalls[0];
  for (int i = 0; i < 3; ++i) {
    Program lazy(failing, Lazy(), failing.bad);
    lazy.after = at::Tensor();
    CallOp<void>("sync");
    ExpectSame(lazy.older, Program(failing, at::kCPU, failing.bad).older);
  }
  SetCompile("async");
}

}  // namespace
}  // namespace torch_lazy::device
