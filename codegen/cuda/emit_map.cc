// SPDX-License-Identifier: Apache-2.0
// A thread does V neighbours of the innermost loop, with wide accesses where memory allows it.
// Else, and in the last block, it does elements that lie a block's threads apart, one after the
// other.
#include "absl/strings/str_cat.h"
#include "codegen/cuda/draws.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/places.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/op_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kThreads = 256;

class MapEmitter {
 public:
  MapEmitter(const ir::Graph& graph, const Body& body)
      : body_(body),
        loops_(MakeLoops(body)),
        innermost_(loops_.outer.empty() ? nullptr : &loops_.outer.back()),
        text_(graph, body, Target::kCuda),
        access_(body, innermost_, innermost_ == nullptr ? 0 : innermost_->bits, &text_) {}

  WrittenKernel Emit() {
    EmitElements();
    EmitBlock();
    return Finish(text_, "map", RangeOf(loops_), kThreads, kThreads * access_.width());
  }

 private:
  // V elements from `at` on.
  void EmitElements() {
    OpenFunction("template <int V> ", "KERNEL_at", "const long at", &text_);
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "at", &text_), "at", &text_);
    const uint64_t inner = innermost_ == nullptr ? 0 : innermost_->bits;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if ((body_.expressions[e].uses & inner) == 0) Define(static_cast<int>(e), {});
    }
    Read();
    text_.Line("#pragma unroll");
    text_.Open("for (int k = 0; k < V; ++k) {");
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (!text_.defined(static_cast<int>(e))) Define(static_cast<int>(e), Along("k"));
    }
    for (const Store& store : body_.stores) {
      const ir::DType dtype = text_.SlotType(body_.addresses[store.address].slot);
      text_.Line(absl::StrCat("m", store.address,
                              "[k] = ", StoreText(dtype, text_.name(store.expression)), ";"));
    }
    text_.Close("}");
    Write();
    CloseFunction(&text_);
  }

  std::vector<KernelText::Along> Along(const std::string& index) const {
    if (innermost_ == nullptr) return {};
    return {{innermost_, index}};
  }

  void Define(int e, const std::vector<KernelText::Along>& along) {
    if (!along.empty() && DrawsForNeighbours(text_, e, innermost_)) return DefineDraw(e, &text_);
    const int address = body_.expressions[e].address;
    const bool is_read = body_.expressions[e].kind == Expression::Kind::kLoad && !along.empty() &&
                         access_.IsContiguous(address);
    text_.Define(e, is_read        ? absl::StrCat("m", address, "[k]")
                    : address >= 0 ? PlaceText(address, along, &text_)
                                   : "");
  }

  // Memory's elements, in registers.
  void Declare(int address) {
    text_.Line(absl::StrCat(MemoryType(text_.SlotType(body_.addresses[address].slot)), " m",
                            address, "[V];"));
  }

  void Read() {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      const int address = body_.expressions[e].address;
      if (body_.expressions[e].kind != Expression::Kind::kLoad || text_.defined(e) ||
          !access_.IsContiguous(address))
        continue;
      Declare(address);
      text_.Line(
          absl::StrCat("lazy_read(m", address, ", ", PointerText(address, {}, &text_), ");"));
    }
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (DrawsForNeighbours(text_, static_cast<int>(e), innermost_))
        DeclareDraws(static_cast<int>(e), {}, &text_);
    }
    for (const Store& store : body_.stores) Declare(store.address);
  }

  void Write() {
    for (const Store& store : body_.stores) {
      if (access_.IsContiguous(store.address)) {
        text_.Line(absl::StrCat("lazy_write(", PointerText(store.address, {}, &text_), ", m",
                                store.address, ");"));
        continue;
      }
      text_.Line("#pragma unroll");
      text_.Line(absl::StrCat("for (int k = 0; k < V; ++k) ",
                              PlaceText(store.address, Along("k"), &text_), " = m", store.address,
                              "[k];"));
    }
  }

  void EmitBlock() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    const int elements = kThreads * access_.width();
    text_.Line(absl::StrCat("const long first = block * ", elements, ";"));
    if (innermost_ != nullptr) {
      text_.Line(
          absl::StrCat("const bool wide = ", access_.Condition(loops_.outer.size() == 1), ";"));
      text_.Line(absl::StrCat("if (wide && first + ", elements,
                              " <= arguments.iterations) return KERNEL_at<", access_.width(),
                              ">(arguments, first + threadIdx.x * ", access_.width(), ");"));
    }
    text_.Line("#pragma unroll 1");
    text_.Open(absl::StrCat("for (long at = first + threadIdx.x; at < first + ", elements,
                            "; at += ", kThreads, ") {"));
    text_.Line("if (at < arguments.iterations) KERNEL_at<1>(arguments, at);");
    text_.Close("}");
    CloseFunction(&text_);
  }

  const Body& body_;
  const Loops loops_;
  const Loop* const innermost_;
  KernelText text_;
  VectorAccess access_;
};

}  // namespace

WrittenKernel EmitMap(const ir::Graph& graph, const Body& body) {
  return MapEmitter(graph, body).Emit();
}

}  // namespace torch_lazy::codegen::cuda
