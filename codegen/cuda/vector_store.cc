// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/vector_store.h"

#include "absl/strings/str_cat.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

ir::DType TypeOf(const Store& store, const KernelText& text) { return text.TypeAt(store.address); }

// A number that is rounded to be stored is rounded with its neighbour.
int Unrounded(const Store& store, const KernelText& text) {
  const Expression& e = text.body().expressions[store.expression];
  const bool is_cast = e.kind == Expression::Kind::kOp && text.graph().node(e.node).op == ir::Op::kCast;
  if (!is_cast) return store.expression;
  const int operand = e.arguments[0];
  const bool is_known = !text.name(operand).empty();
  return is_known && ComputeType(text.body().expressions[operand].dtype) == "float" ? operand : store.expression;
}

}  // namespace

void DeclareStored(const Store& store, KernelText* text) {
  const ir::DType dtype = TypeOf(store, *text);
  text->Line(absl::StrCat(ir::IsHalf(dtype) ? "float" : MemoryType(dtype), " m", store.address, "[V];"));
}

void PutStored(const Store& store, KernelText* text) {
  const ir::DType dtype = TypeOf(store, *text);
  const std::string value =
      ir::IsHalf(dtype) ? text->name(Unrounded(store, *text)) : StoreText(dtype, text->name(store.expression));
  text->Line(absl::StrCat("m", store.address, "[k] = ", value, ";"));
}

void WriteStored(const Store& store, const std::string& condition, const std::string& pointer, KernelText* text) {
  const ir::DType dtype = TypeOf(store, *text);
  const char* write = dtype == ir::DType::kBF16  ? "lazy_write_bf16("
                      : dtype == ir::DType::kF16 ? "lazy_write_f16("
                                                 : "lazy_write(";
  text->Line(absl::StrCat(condition, write, pointer, ", m", store.address, ");"));
}

std::string StoredElement(const Store& store, const KernelText& text) {
  const ir::DType dtype = TypeOf(store, text);
  const std::string element = absl::StrCat("m", store.address, "[k]");
  return ir::IsHalf(dtype) ? StoreText(dtype, element) : element;
}

}  // namespace torch_lazy::codegen::cuda
