// SPDX-License-Identifier: Apache-2.0
#include "lazy/ops/rows.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {
namespace {

constexpr uint32_t kOfAllOverloads =
    kRefusesZero | kRefusesNegative | kRefusesTruth | kTakesAllNumbers | kTakesAllValues | kMayFail | kTrapsOnGpu;

struct Tables {
  std::mutex lock;
  absl::flat_hash_map<std::string, std::vector<const Row*>> by_operator;  // without overload and trailing `_`
  std::vector<const Row*> families;                                       // with a `*`
};

Tables& AllTables() {
  static Tables* const tables = new Tables;
  return *tables;
}

std::string_view WithoutOverload(std::string_view name) { return name.substr(0, name.find('.')); }

std::string_view WithoutUnderscore(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// Of all overloads and forms.
std::string OperatorOf(std::string_view name) { return std::string(WithoutUnderscore(WithoutOverload(name))); }

std::string_view OverloadOf(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? "" : name.substr(dot + 1);
}

void Put(const Row& row, std::vector<const Row*>* rows) {
  const std::string_view name = row.name;
  const auto same = std::find_if(rows->begin(), rows->end(), [&](const Row* known) { return known->name == name; });
  if (same == rows->end()) {
    rows->push_back(&row);
  } else {
    *same = &row;
  }
}

bool IsInFamily(std::string_view name, const Row& family) {
  std::string_view beginning = family.name;
  beginning.remove_suffix(1);
  return name.starts_with(beginning);
}

bool TakesTheSame(const c10::FunctionSchema& functional, const std::vector<c10::Argument>& args, size_t count) {
  if (functional.arguments().size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (*functional.arguments()[i].real_type() != *args[i].real_type()) return false;
  }
  return true;
}

// Finds the row of an overload among its operator's: its own, or that of its functional form, which has the same name
// but for a trailing `_`, and takes the same arguments but for written ones at the end. Overload names do not tell:
// `pow_.Scalar` is in-place `pow.Tensor_Scalar`.
void FindRow(const std::vector<const Row*>& rows, const c10::OperatorHandle& handle, Facts* facts) {
  const c10::OperatorName& operator_name = handle.operator_name();
  const std::string name = NameOf(operator_name);
  const auto own = std::find_if(rows.begin(), rows.end(), [&](const Row* row) { return name == row->name; });
  if (own != rows.end()) {
    facts->row = *own;
    facts->form = RowForm::kNamed;
    return;
  }
  if (facts->form == RowForm::kNamed) return;
  const std::vector<c10::Argument>& args = handle.schema().arguments();
  const size_t inputs =
      std::count_if(args.begin(), args.end(), [](const c10::Argument& argument) { return !argument.is_out(); });
  std::string_view base = operator_name.name;
  if (facts->form == RowForm::kInPlace) base = WithoutUnderscore(base);
  for (const Row* row : rows) {
    if (WithoutOverload(row->name) != base) continue;
    const auto functional =
        c10::Dispatcher::singleton().findSchema({std::string(base), std::string(OverloadOf(row->name))});
    if (!functional || !TakesTheSame(functional->schema(), args, inputs)) continue;
    facts->row = row;
    return;
  }
}

RowForm FormOf(const c10::OperatorHandle& handle) {
  const std::vector<c10::Argument>& args = handle.schema().arguments();
  if (!args.empty() && args.back().is_out()) return RowForm::kOut;
  return handle.operator_name().name.ends_with('_') ? RowForm::kInPlace : RowForm::kNamed;
}

}  // namespace

std::string NameOf(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void RegisterRow(const Row& row) {
  const std::string_view name = row.name;
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  Put(row, name.ends_with('*') ? &tables.families : &tables.by_operator[OperatorOf(name)]);
}

ShapeRule Facts::shape_rule() const {
  if (row == nullptr || form == RowForm::kOut) return nullptr;
  return form == RowForm::kNamed ? row->shape : row->shape_in_place;
}

bool Facts::is_whole() const {
  return (Has(kWhole) && form == RowForm::kNamed) || (Has(kWholeInPlace) && form == RowForm::kInPlace);
}

Facts FactsOf(const c10::OperatorHandle& handle) {
  const std::string& name = handle.operator_name().name;
  Facts facts;
  facts.form = FormOf(handle);
  Tables& tables = AllTables();
  std::lock_guard<std::mutex> lock(tables.lock);
  for (const Row* family : tables.families) {
    if (IsInFamily(name, *family)) facts.flags |= family->flags;
  }
  const auto rows = tables.by_operator.find(OperatorOf(name));
  if (rows == tables.by_operator.end()) return facts;
  FindRow(rows->second, handle, &facts);
  if (facts.row != nullptr) facts.flags |= facts.row->flags;
  for (const Row* row : rows->second) facts.flags |= row->flags & kOfAllOverloads;
  return facts;
}

}  // namespace torch_lazy::lazy
