// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/column_sums.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kRowsInFloat = 64;  // before they are added up in double

// The share's row of the result; what the groups add up in shared memory; what a thread adds up.
std::string SumsOf(const Store& store) { return absl::StrCat("sums", store.expression); }
std::string SharedSumsOf(const Store& store) { return absl::StrCat("q", store.expression); }
std::string SumOf(const Store& store) { return absl::StrCat("x", store.expression, "[item][k]"); }

}  // namespace

template <typename Function>
void ColumnSums::ForEach(Function function) {
  for (const Store& store : body_.stores) {
    if (IsShareSum(body_, store)) function(store);
  }
}

// A thread's own columns.
template <typename StatementOf>
void ColumnSums::ForEachOwned(const std::vector<Store>& stores, StatementOf statement_of) {
  if (threads_.is_kept) {
    text_.Line("#pragma unroll");
    text_.Open("for (int item = 0; item < kItems; ++item) {");
    text_.Line("#pragma unroll");
    text_.Open("for (int k = 0; k < V; ++k) {");
    text_.Line(absl::StrCat("const int j = (item * ", threads_.per_row, " + t) * V + k;"));
    text_.Line("if (j >= length) continue;");
  } else {
    text_.Open(absl::StrCat("for (long j = t; j < length; j += ", threads_.per_row, ") {"));
  }
  for (const Store& store : stores) {
    if (IsShareSum(body_, store)) text_.Line(statement_of(store));
  }
  text_.Close("}");
  if (threads_.is_kept) text_.Close("}");
}

// All columns, by all threads of the block.
template <typename StatementOf>
void ColumnSums::ForEachColumn(const std::string& columns, StatementOf statement_of) {
  text_.Open(absl::StrCat("for (int j = thread; j < ", columns, "; j += ", threads_.per_block, ") {"));
  ForEach([&](const Store& store) { text_.Line(statement_of(store)); });
  text_.Close("}");
}

void ColumnSums::Begin() {
  Monomial rows;
  for (const Loop& loop : loops_.outer) rows = rows * loop.extent;
  const bool has_groups = threads_.groups() > 1;
  const std::string columns = absl::StrCat("kItems * V * ", threads_.per_row);
  text_.Line(absl::StrCat("const long rows = ", text_.Number(rows), ";"));
  text_.Line(absl::StrCat("const long first = rows * share / ", body_.shares, ", last = rows * (share + 1) / ",
                          body_.shares, ";"));
  text_.Line(absl::StrCat("const int t = thread % ", threads_.per_row, ";"));
  ForEach([&](const Store& store) {
    text_.Line(absl::StrCat("double* const ", SumsOf(store), " = ",
                            text_.PointerTo(body_.addresses[store.address].slot), " + share * length;"));
    if (threads_.is_kept) text_.Line(absl::StrCat("float x", store.expression, "[kItems][V] = {};"));
    if (has_groups) text_.Line(absl::StrCat("__shared__ double ", SharedSumsOf(store), "[", columns, "];"));
  });
  if (has_groups) {
    ForEachColumn(columns, [](const Store& store) { return SharedSumsOf(store) + "[j] = 0;"; });
  } else {
    if (threads_.is_kept) text_.Open("if (first == last) {");
    ForEachOwned(body_.stores, [](const Store& store) { return SumsOf(store) + "[j] = 0;"; });
    if (threads_.is_kept) text_.Close("}");
  }
  if (has_groups) text_.Line(absl::StrCat("__shared__ float parts[", parts(), "][", columns, "];"));
}

void ColumnSums::Open() {
  const bool has_groups = threads_.groups() > 1;
  const int rows_in_float = kRowsInFloat * threads_.groups(), rows_of_step = threads_.groups() * threads_.rows;
  text_.Open(absl::StrCat("for (long block = first; block < last; block += ", rows_in_float, ") {"));
  text_.Line(absl::StrCat("const long end = last - block < ", rows_in_float, " ? last : block + ", rows_in_float, ";"));
  text_.Open(absl::StrCat("for (long step = block; step < end; step += ", rows_of_step, ") {"));
  if (threads_.rows > 1) return;
  text_.Line(absl::StrCat("const long r = ", RowText("step"), ";"));
  if (has_groups) text_.Open("if (r < last) {");
}

std::string ColumnSums::RowText(const std::string& first) const {
  return threads_.groups() > 1 ? absl::StrCat(first, " + thread / ", threads_.per_row) : first;
}

// Rows beyond the end read what the step's first does.
void ColumnSums::PlaceRow() {
  const std::string distance = threads_.groups() > 1 ? absl::StrCat(" * ", threads_.groups()) : "";
  text_.Line(absl::StrCat("const long own_r = ", RowText(absl::StrCat("step + row", distance)), ";"));
  text_.Line("const bool is_row = own_r < last;");
  text_.Line("const long r = is_row ? own_r : step;");
}

void ColumnSums::Step(const Store& store) {
  const std::string sum = threads_.is_kept ? SumOf(store) : SumsOf(store) + "[j]";
  text_.Line(absl::StrCat(threads_.rows > 1 ? "if (is_row) " : "", sum, " = ", sum, " + ",
                          text_.name(body_.expressions[store.expression].arguments[0]), ";"));
}

void ColumnSums::Close(bool folds_rows) {
  const bool has_groups = threads_.groups() > 1;
  if (has_groups && threads_.rows == 1) text_.Close("}");
  // A row's numbers in shared memory are read before the next row's are written.
  if (!threads_.is_warp() && (folds_rows || !threads_.is_kept)) text_.Line("__syncthreads();");
  text_.Close("}");
  if (threads_.is_kept) AddUp();
  text_.Close("}");
  if (!has_groups) return;
  text_.Line("__syncthreads();");
  ForEachColumn("length",
                [](const Store& store) { return absl::StrCat(SumsOf(store), "[j] = ", SharedSumsOf(store), "[j];"); });
}

// Now and then, and in the end. Groups put theirs side by side, and threads add up columns.
void ColumnSums::AddUp() {
  if (threads_.groups() == 1) return AddUpOwned();
  if (threads_.per_row < 32) AddUpWarp();
  const int part_threads = std::max(threads_.per_row, 32);
  ForEach([&](const Store& store) {
    text_.Line("__syncthreads();");
    if (threads_.per_row < 32) text_.Open(absl::StrCat("if (thread % 32 < ", threads_.per_row, ") {"));
    ForEachOwned({store}, [&](const Store& own) {
      return absl::StrCat("parts[thread / ", part_threads, "][j] = ", SumOf(own), ", ", SumOf(own), " = 0;");
    });
    if (threads_.per_row < 32) text_.Close("}");
    text_.Line("__syncthreads();");
    text_.Open(absl::StrCat("for (int j = thread; j < length; j += ", threads_.per_block, ") {"));
    text_.Line("#pragma unroll");
    text_.Line(absl::StrCat("for (int part = 0; part < ", parts(), "; ++part) ", SharedSumsOf(store),
                            "[j] += parts[part][j];"));
    text_.Close("}");
  });
  if (threads_.per_row < 32) ForEachSum([](const std::string& sum) { return absl::StrCat(sum, " = 0;"); });
}

// The first rows' sums need not be added to anything.
void ColumnSums::AddUpOwned() {
  text_.Line("#pragma unroll");
  text_.Open("for (int item = 0; item < kItems; ++item) {");
  text_.Line(absl::StrCat("const int j = (item * ", threads_.per_row, " + t) * V;"));
  text_.Line("if (j >= length) continue;");
  ForEach([&](const Store& store) {
    const std::string x = absl::StrCat("x", store.expression, "[item]");
    text_.Line(absl::StrCat("lazy_add_up(", SumsOf(store), " + j, ", x, ", block == first);"));
  });
  text_.Close("}");
}

// A warp's groups, into its first.
void ColumnSums::AddUpWarp() {
  text_.Line("#pragma unroll");
  text_.Open(absl::StrCat("for (int d = 16; d >= ", threads_.per_row, "; d /= 2) {"));
  ForEachSum(
      [](const std::string& sum) { return absl::StrCat(sum, " += __shfl_down_sync(0xffffffffu, ", sum, ", d);"); });
  text_.Close("}");
}

// What a thread adds up, whether it is a column's or beyond the end.
template <typename StatementOf>
void ColumnSums::ForEachSum(StatementOf statement_of) {
  text_.Line("#pragma unroll");
  text_.Open("for (int item = 0; item < kItems; ++item) {");
  text_.Line("#pragma unroll");
  text_.Open("for (int k = 0; k < V; ++k) {");
  ForEach([&](const Store& store) { text_.Line(statement_of(SumOf(store))); });
  text_.Close("}");
  text_.Close("}");
}

}  // namespace torch_lazy::codegen::cuda
