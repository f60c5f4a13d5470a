// SPDX-License-Identifier: Apache-2.0
// The plan of an entry for as long as its parameters stay.
//
// Note [Frozen parameters]
// A model in evaluation multiplies by the same weights each time. Once the slots that hold them have had the same
// content in three runs, the entry is lowered anew with these taken for constants (lazy/variants/freeze), and compiled
// beside the program as ever. Each run asks again whether the contents are those: a storage's stamp tells, and is 0
// where somebody else has the address. If they are not, the constants go, the plan that knows of none runs, and it
// takes twice as many equal runs to come back. Nothing else is taken for constant: an image that is given again and
// again is not. The constants of eight entries are kept, so that a program which sees many sizes does not hold its
// weights once for each. On a GPU, entries of equal constants share them (lazy/variants/shared_constants).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lazy/host/ledger.h"
#include "lazy/host/patience.h"
#include "lazy/libraries/cudnn_convolution.h"
#include "lazy/variants/freeze.h"
#include "lazy/variants/plain_plan.h"
#include "lazy/variants/shared_constants.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

class FrozenPlan final : public Variant {
 public:
  // Null if there is nothing to freeze.
  static std::unique_ptr<Variant> For(const PlainPlan& plain, const Trace& trace, Account* account);
  ~FrozenPlan() override;

  // True if the trace's parameters are, and have been, those of former runs.
  bool Guard(const Trace& trace) override;
  std::shared_ptr<Runnable> Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) override;
  // The constants, which the next run makes anew if its parameters are the same.
  void Release() override;

 private:
  struct Constants;
  class Newest;

  FrozenPlan(const CallSequence& calls, ConstantSlots slots, Account* account)
      : calls_(calls), slots_(std::move(slots)), account_(*account) {}
  void FreezeAndPlan(const Trace& trace);
  bool AreTimed(const Trace& trace);
  bool IsCompiled(const Trace& trace);
  ConstantContents MakeConstants(const Trace& trace);
  std::vector<PackedConvolution> Pack(const ConstantContents& contents) const;
  std::shared_ptr<Constants> FindConstants(const Trace& trace);
  std::shared_ptr<Constants> TryFindConstants(const Trace& trace);
  void Thaw();

  const CallSequence& calls_;
  const ConstantSlots slots_;
  Account& account_;                             // of constants that are made, and runs with them
  std::vector<uint64_t> stamps_;                 // of these parameters, in the last run
  Patience patience_;                            // for equal runs
  std::optional<std::vector<FusedForm>> forms_;  // still to be timed; nothing: not asked for
  bool tried_ = false;
  double freezing_seconds_ = 0;          // that the account does not know of
  std::unique_ptr<FrozenTrace> frozen_;  // null: not tried, or not worth it
  std::shared_ptr<PlannedGraph> planned_constants_, planned_rest_;
  std::vector<double> numbers_;  // that the constants follow from, too
  bool has_constants_ = false;
  std::weak_ptr<Constants> constants_;  // null once others were newer
};

}  // namespace torch_lazy::lazy
