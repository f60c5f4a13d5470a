// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/column_operands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {

bool ColumnOperands::Keeps(int number) const { return std::find(loads_.begin(), loads_.end(), number) != loads_.end(); }

std::string ColumnOperands::Vector(int number) const {
  return absl::StrCat("all", body_.expressions[number].address, "[item]");
}

void ColumnOperands::Read(const std::string& row) {
  if (loads_.empty()) return;
  for (const int number : loads_) {
    const int address = body_.expressions[number].address;
    text_.Line(absl::StrCat(MemoryType(text_.TypeAt(address)), " all", address, "[kItems][V];"));
  }
  text_.Open("{");
  if (threads_.rows > 1) text_.Line("const bool is_row = true;");
  PlaceAddresses(PlaceLoops(loops_.outer, 'i', row, &text_), row, &text_);
  EmitKeptWalk(threads_, &text_, [&] {
    const std::vector<KernelText::Along> along = PlaceLoops(loops_.inner, 'j', "j", &text_);
    for (const int number : loads_)
      text_.Line(absl::StrCat("lazy_read(", Vector(number), ", ",
                              PointerText(body_.expressions[number].address, along, &text_), ");"));
  });
  text_.Close("}");
}

}  // namespace torch_lazy::codegen::cuda
