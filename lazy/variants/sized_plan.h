// SPDX-License-Identifier: Apache-2.0
// The plan of an entry whose sizes are far from those that its graph was planned for.
//
// Note [Plans for other sizes]
// A program's sizes seen first decide how much of a row a GPU's threads keep in registers, so that sizes far from those
// are slow (codegen::IsMadeFor). A graph with much to do is planned again for such sizes, up to four times, beside the
// program as ever. The plan that is there runs meanwhile.
#pragma once

#include <memory>
#include <utility>

#include "lazy/host/ledger.h"
#include "lazy/variants/plain_plan.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

class SizedPlan final : public Variant {
 public:
  // Null if the plain plan is made for the entry's sizes.
  static std::unique_ptr<Variant> For(const PlainPlan& plain, const Trace& trace, Account* account);

  // An entry's sizes are all its traces'.
  bool Guard(const Trace& /*trace*/) override { return planned_ != nullptr; }
  std::shared_ptr<Runnable> Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) override;
  void Release() override { bound_ = nullptr; }

 private:
  SizedPlan(const PlainPlan& plain, std::shared_ptr<PlannedGraph> planned, Account* account)
      : plain_(plain), account_(*account), planned_(std::move(planned)) {}
  void Bind();

  const PlainPlan& plain_;
  Account& account_;                       // of plans that are bound, and their runs
  std::shared_ptr<PlannedGraph> planned_;  // null: there is none, or its kernels have failed
  std::shared_ptr<ReadyPlan> bound_;
};

}  // namespace torch_lazy::lazy
