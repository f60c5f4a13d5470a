// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_dispatch.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "codegen/cuda/frame.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

void CallKept(const RowDispatch& rows, KernelText* text) {
  const int width = rows.is_wide ? rows.width : 1;
  const int items = rows.width / width * rows.size.items;
  text->Line(absl::StrCat("const bool fits = 0 < ", rows.length, " && ", rows.length,
                          " <= ", rows.size.threads * width * items, ";"));
  if (rows.is_wide) text->Line(absl::StrCat("const bool wide = ", rows.condition, ";"));
  text->Line(absl::StrCat("if (fits", rows.is_wide ? " && wide" : "", ") return KERNEL_kept<", width, ", ", items,
                          rows.exact.extent >= 0 ? ", false" : "", ">(arguments, r, t);"));
}

}  // namespace

void EmitRowDispatch(const RowDispatch& rows, KernelText* text) {
  OpenFunction("", "KERNEL_block", "const long block", text);
  if (!rows.has_shares && rows.size.rows_per_block > 1) {
    text->Line(absl::StrCat("const long r = block * ", rows.size.rows_per_block, " + threadIdx.x / 32;"));
    text->Line("if (r >= arguments.iterations) return;");
    text->Line("const int t = threadIdx.x % 32;");
  } else {
    text->Line("const long r = block;");
    text->Line("const int t = threadIdx.x;");
  }
  if (rows.size.items > 0) CallKept(rows, text);
  text->Line("KERNEL_walked(arguments, r, t);");
  CloseFunction(text);
  if (rows.exact.extent < 0) return;
  OpenFunction("", "KERNEL_exact_block", "const long block", text);
  text->Line(
      absl::StrCat("KERNEL_kept<", rows.width, ", ", rows.size.items, ", true>(arguments, block, threadIdx.x);"));
  CloseFunction(text);
}

Kernel::Exact ExactRows(const RowTiling& size, const Loops& loops, const VectorAccess* access,
                        const std::string& length, const CompileOptions& options) {
  if (!size.takes_turns() || size.items == 0 || access == nullptr || loops.inner.size() != 1 ||
      !access->FollowsFromExtent())
    return {};
  const int exact = size.threads * access->width() * size.items;
  int extent = -1;
  const bool is_extent = absl::SimpleAtoi(absl::StripPrefix(length, "n"), &extent);
  return is_extent && SeenSize(loops.inner[0].extent, options.seen_extents) == exact ? Kernel::Exact{extent, exact}
                                                                                     : Kernel::Exact{};
}

}  // namespace torch_lazy::codegen::cuda
