// SPDX-License-Identifier: Apache-2.0
// How the threads of a row kernel's function share its rows.
#pragma once

#include "absl/strings/str_cat.h"
#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

struct RowThreads {
  bool is_kept = false;  // in registers: kItems vectors of V elements a thread
  int per_row = 32;      // of a group, which does a row; of a warp, if fewer, a power of two
  int per_block = 32;
  int rows = 1;               // that a group does at once: `row` of them
  bool may_be_exact = false;  // kExact: no thread has a vector beyond the row's end
  int groups() const { return per_block / per_row; }
  bool is_warp() const { return per_row <= 32; }
};

// All of a row at once: each thread has kItems vectors of V. Those beyond the end compute what the
// first does, so that loads need no branches, and neither fold nor store it.
template <typename Function>
void EmitKeptWalk(const RowThreads& threads, KernelText* text, Function write) {
  text->Line("#pragma unroll");
  text->Open("for (int item = 0; item < kItems; ++item) {");
  text->Line(absl::StrCat("const int own_j = (item * ", threads.per_row, " + t) * V;"));
  if (threads.rows > 1) {
    text->Line("const bool in = is_row && own_j < length;");
    text->Line("const int j = own_j < length ? own_j : 0;");
  } else {
    text->Line(threads.may_be_exact ? "const bool in = kExact || own_j < length;" : "const bool in = own_j < length;");
    text->Line("const int j = in ? own_j : 0;");
  }
  write();
  text->Close("}");
}

}  // namespace torch_lazy::codegen::cuda
