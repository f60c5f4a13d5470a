// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/row_scratch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kNever = 1 << 30;
constexpr int64_t kPadding = 192;  // bytes, three cache lines

bool Contains(const std::vector<int>& list, int e) { return std::find(list.begin(), list.end(), e) != list.end(); }

int FirstStageThatKeeps(const RowStages& rows, int e) {
  int stage = 0;
  while (!Contains(rows.stages[stage].kept, e)) ++stage;
  return stage;
}

int LastStageWith(const RowStages& rows, int e) {
  int stage = static_cast<int>(rows.stages.size()) - 1;
  while (!Contains(rows.stages[stage].numbers, e)) --stage;
  return stage;
}

int64_t BytesToCompute(ir::DType dtype) { return ir::IsHalf(dtype) ? 4 : ir::SizeBytes(dtype); }

}  // namespace

RowScratch::RowScratch(const Body& body, const RowStages& rows, const Loops& loops, KernelText* text) {
  std::vector<std::pair<int, int>> kept;  // first stage, expression
  for (const int e : rows.scratch) kept.push_back({FirstStageThatKeeps(rows, e), e});
  std::sort(kept.begin(), kept.end());
  for (const auto& [stage, e] : kept) {
    const ir::DType dtype = body.expressions[e].dtype;
    array_of_[e] = Take(ComputeType(dtype), BytesToCompute(dtype), stage, LastStageWith(rows, e));
  }
  for (const Store& store : body.stores) {
    const ir::DType dtype = text->SlotType(body.addresses[store.address].slot);
    const int stage = body.expressions[store.expression].depth;
    if (IsShareSum(body, store)) array_of_[store.expression] = Take("float", sizeof(float), -1, kNever);
    if (store.is_non_temporal) row_of_[store.address] = Take(MemoryType(dtype), ir::SizeBytes(dtype), stage, kNever);
  }
  Declare(loops, text);
}

int RowScratch::Take(const std::string& type, int64_t bytes, int from, int free_from) {
  const auto found = std::find_if(arrays_.begin(), arrays_.end(),
                                  [&](const Array& array) { return array.type == type && array.free_from <= from; });
  const int index = static_cast<int>(found - arrays_.begin());
  if (found == arrays_.end()) arrays_.push_back({type, bytes, free_from});
  arrays_[index].free_from = free_from;
  return index;
}

// The widest first, so that each is aligned. Rows of a power of two would all share a few sets of
// the cache: padding tells them apart.
void RowScratch::Declare(const Loops& loops, KernelText* text) {
  std::vector<Array*> order;
  for (Array& array : arrays_) order.push_back(&array);
  std::stable_sort(order.begin(), order.end(), [](const Array* a, const Array* b) { return a->bytes > b->bytes; });
  for (Array* array : order) {
    Monomial begin{element_bytes_, {}};
    for (const Loop& loop : loops.inner) begin = begin * loop.extent;
    array->name = text->NewName('w');
    const std::string padding = padding_bytes_ == 0 ? "" : absl::StrCat(" + ", padding_bytes_);
    text->Line(absl::StrCat(array->type, "* const ", array->name, " = (", array->type, "*)((char*)scratch + ",
                            text->Number(begin), padding, ");"));
    element_bytes_ += array->bytes;
    padding_bytes_ += kPadding;
  }
}

void RowScratch::Note(const Loops& loops, Instance* instance) const {
  instance->scratch_element_bytes = element_bytes_;
  instance->scratch_padding_bytes = padding_bytes_;
  for (const Loop& loop : loops.inner) {
    instance->scratch.insert(instance->scratch.end(), loop.extent.factors.begin(), loop.extent.factors.end());
  }
}

}  // namespace torch_lazy::codegen
