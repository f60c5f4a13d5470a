// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/share_row_loads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {

ShareRowLoads::ShareRowLoads(const Body& body, const Loops& loops, const RowThreads& threads, ColumnSums* shares,
                             std::vector<std::vector<int>> reads, bool fetches, KernelText* text)
    : body_(body),
      loops_(loops),
      threads_(threads),
      shares_(*shares),
      reads_(std::move(reads)),
      fetches_(fetches),
      text_(*text) {}

std::string ShareRowLoads::TypeOf(int number) const {
  return MemoryType(text_.TypeAt(body_.expressions[number].address));
}

std::string ShareRowLoads::Vector(int number) const {
  return absl::StrCat("all", body_.expressions[number].address, "[row][item]");
}

std::string ShareRowLoads::PlaceInRow(int number) const {
  return absl::StrCat("ahead", body_.expressions[number].address, "[slot][row] + (item * ", threads_.per_row,
                      " + t) * V");
}

template <typename Function>
void ShareRowLoads::ForEachRead(Function write) {
  for (const std::vector<int>& reads : reads_) {
    for (const int number : reads) write(number);
  }
}

template <typename Function>
void ShareRowLoads::ForEachPlacedRow(Function write) {
  ForEachRow(threads_.rows, &text_, [&] {
    shares_.PlaceRow();
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
    EmitKeptWalk(threads_, &text_, [&] { write(PlaceLoops(loops_.inner, 'j', "j", &text_)); });
  });
}

void ShareRowLoads::Begin() {
  if (!fetches_) return;
  ForEachRead([&](int number) {
    text_.Line(absl::StrCat("__shared__ __align__(16) ", TypeOf(number), " ahead", body_.expressions[number].address,
                            "[2][", threads_.rows, "][kItems * V * ", threads_.per_row, "];"));
  });
  text_.Open("const auto fetch = [&](const long step, const int slot) {");
  ForEachPlacedRow([&](const std::vector<KernelText::Along>& along) {
    ForEachRead([&](int number) {
      text_.Line(absl::StrCat("lazy_fetch<V>(", PlaceInRow(number), ", ",
                              PointerText(body_.expressions[number].address, along, &text_), ");"));
    });
  });
  text_.Close("};");
  text_.Line("if (first < last) fetch(first, 0);");
}

void ShareRowLoads::BeginStep() {
  if (!fetches_) return;
  text_.Line(absl::StrCat("const int slot = (int)((step - first) / ", threads_.rows, " % 2);"));
  text_.Line("lazy_fetched();");
  text_.Line(absl::StrCat("if (step + ", threads_.rows, " < last) fetch(step + ", threads_.rows, ", 1 - slot);"));
}

void ShareRowLoads::Read(int stage) {
  const std::vector<int>& reads = reads_[static_cast<size_t>(stage)];
  if (reads.empty()) return;
  for (const int number : reads)
    text_.Line(
        absl::StrCat(TypeOf(number), " all", body_.expressions[number].address, "[", threads_.rows, "][kItems][V];"));
  if (fetches_) {
    return ForEachRow(threads_.rows, &text_, [&] {
      text_.Line("#pragma unroll");
      text_.Open("for (int item = 0; item < kItems; ++item) {");
      for (const int number : reads)
        text_.Line(
            absl::StrCat("lazy_read(", Vector(number), ", (const ", TypeOf(number), "*)(", PlaceInRow(number), "));"));
      text_.Close("}");
    });
  }
  ForEachPlacedRow([&](const std::vector<KernelText::Along>& along) {
    for (const int number : reads)
      text_.Line(absl::StrCat("lazy_read(", Vector(number), ", ",
                              PointerText(body_.expressions[number].address, along, &text_), ");"));
  });
}

}  // namespace torch_lazy::codegen::cuda
