// SPDX-License-Identifier: Apache-2.0
// The rows that are known, and what they say of an overload.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "lazy/ops/row.h"

namespace torch_lazy::lazy {

// Called by device/ before the first call. A row replaces one of the same name.
void RegisterRow(const Row& row);

// Which form of its row's overload an overload is.
enum class RowForm : uint8_t { kNamed, kInPlace, kOut };

struct Facts {
  const Row* row = nullptr;  // its own, or its functional form's
  RowForm form = RowForm::kNamed;
  uint32_t flags = 0;  // of that row, of the operator's other rows as far as they hold for all, of rows with a `*`

  bool Has(RowFlags flag) const { return (flags & flag) != 0; }
  ShapeRule shape_rule() const;
  Runner runner() const { return row != nullptr && form == RowForm::kNamed ? row->runner : nullptr; }
  bool is_whole() const;
};

Facts FactsOf(const c10::OperatorHandle& handle);

// With its overload, as rows name it.
std::string NameOf(const c10::OperatorName& name);

}  // namespace torch_lazy::lazy
