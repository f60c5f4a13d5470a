// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_turns.h"

#include "absl/strings/str_cat.h"
#include "codegen/cuda/places.h"
#include "codegen/op_text.h"

namespace torch_lazy::codegen::cuda {

std::string RowTurns::TypeOf(int number) const {
  return MemoryType(text_.TypeAt(body_.expressions[number].address));
}

std::string RowTurns::Place(int number) const {
  return absl::StrCat("ahead", body_.expressions[number].address, " + (item * ", way_.threads, " + t) * V");
}

void RowTurns::Open() {
  text_.Line("const long end_r = arguments.iterations;");  // once: of many instances, it is in memory
  text_.Line(absl::StrCat("const long blocks = (end_r + ", turns_ - 1, ") / ", turns_, ";"));
  if (!loads_.empty()) {
    for (const int number : loads_)
      text_.Line(absl::StrCat("__shared__ __align__(16) ", TypeOf(number), " ahead", body_.expressions[number].address,
                              "[kItems * V * ", way_.threads, "];"));
    text_.Open("const auto fetch = [&](const long r) {");
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
    EmitKeptWalk(way_, &text_, [&] {
      const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
      for (const int number : loads_)
        text_.Line(absl::StrCat("lazy_fetch<V>(", Place(number), ", ",
                                PointerText(body_.expressions[number].address, along, &text_), ");"));
    });
    text_.Close("};");
    text_.Line("fetch(first_r);");
  }
  text_.Line("#pragma unroll 1");
  text_.Open("for (long r = first_r; r < end_r; r += blocks) {");
  if (!loads_.empty()) text_.Line("lazy_fetched();");
}

void RowTurns::FetchNext() {
  if (!loads_.empty()) text_.Line("if (r + blocks < end_r) fetch(r + blocks);");
}

// What the block's threads have told each other is read before the next row's is written: where
// they meet twice in a row, they have met in between.
void RowTurns::Close(int num_folds) {
  if (num_folds < 2) text_.Line("__syncthreads();");
  text_.Close("}");
}

}  // namespace torch_lazy::codegen::cuda
