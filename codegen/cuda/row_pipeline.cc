// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_pipeline.h"

#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {

std::string RowPipeline::TypeOf(int number) const {
  return MemoryType(text_.TypeAt(body_.expressions[number].address));
}

std::string RowPipeline::Place(int number) const {
  return absl::StrCat(Ahead(number), " + (item * ", threads_.per_row, " + t) * V");
}

// Bulk copies are of multiples of 16 bytes, at such places, and the row's lie side by side.
bool RowPipeline::MayBeBulk() const {
  const auto is_whole = [&](int number) {
    return width_ * ir::SizeBytes(text_.TypeAt(body_.expressions[number].address)) % 16 == 0;
  };
  return !loads_.empty() && loops_.inner.size() == 1 && std::all_of(loads_.begin(), loads_.end(), is_whole);
}

void RowPipeline::Begin() {
  text_.Line("const long end_r = arguments.iterations;");  // once: of many instances, it is in memory
  text_.Line(absl::StrCat("const long blocks = (end_r + ", turns_ - 1, ") / ", turns_, ";"));
  if (loads_.empty()) return;
  for (const int number : loads_)
    text_.Line(absl::StrCat("__shared__ __align__(16) ", TypeOf(number), " ", Ahead(number), "[kItems * V * ",
                            threads_.per_row, "];"));
  if (MayBeBulk()) {
    text_.Line(absl::StrCat("constexpr bool kBulk = lazy_has_bulk() && V == ", width_, ";"));
    text_.Line("__shared__ unsigned long arrived;");
    text_.Line("if (kBulk && t == 0) lazy_bulk_init(&arrived);");
    text_.Line("if (kBulk) __syncthreads();");
    text_.Line("int phase = 0;");
  }
  text_.Open("const auto fetch = [&](const long r) {");
  PlaceAddresses(PlaceLoops(loops_.outer, 'i', "r", &text_), "r", &text_);
  if (MayBeBulk()) FetchInBulk();
  EmitKeptWalk(threads_, &text_, [&] {
    const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (const int number : loads_)
      text_.Line(absl::StrCat("lazy_fetch<V>(", Place(number), ", ",
                              PointerText(body_.expressions[number].address, along, &text_), ");"));
  });
  text_.Close("};");
  text_.Line("fetch(first_r);");
}

void RowPipeline::FetchInBulk() {
  text_.Open("if constexpr (kBulk) {");
  text_.Line("if (t != 0) return;");
  std::string bytes;
  for (const int number : loads_)
    absl::StrAppend(&bytes, bytes.empty() ? "" : " + ", "length * sizeof(", TypeOf(number), ")");
  text_.Line(absl::StrCat("lazy_bulk_expect(&arrived, ", bytes, ");"));
  const std::vector<KernelText::Along> start = PlaceLoops(loops_.inner, 'j', "0", &text_);
  for (const int number : loads_)
    text_.Line(absl::StrCat("lazy_bulk_fetch(", Ahead(number), ", ",
                            PointerText(body_.expressions[number].address, start, &text_), ", length, &arrived);"));
  text_.Line("return;");
  text_.Close("}");
}

void RowPipeline::Open() {
  text_.Line("#pragma unroll 1");
  text_.Open("for (long r = first_r; r < end_r; r += blocks) {");
  if (loads_.empty()) return;
  if (!MayBeBulk()) return text_.Line("lazy_fetched();");
  text_.Line("if (kBulk) lazy_bulk_wait(&arrived, phase);");
  text_.Line("else lazy_fetched();");
  text_.Line("phase ^= 1;");
}

void RowPipeline::FetchNext(bool have_met) {
  if (loads_.empty()) return;
  if (MayBeBulk() && !have_met) text_.Line("if (kBulk) __syncthreads();");
  text_.Line("if (r + blocks < end_r) fetch(r + blocks);");
}

// What the block's threads have told each other is read before the next row's is written: where
// they meet twice in a row, they have met in between.
void RowPipeline::Close(int num_folds) {
  if (num_folds < 2) text_.Line("__syncthreads();");
  text_.Close("}");
}

}  // namespace torch_lazy::codegen::cuda
