// SPDX-License-Identifier: Apache-2.0
// A thread does V neighbours of the innermost loop, with wide accesses where memory allows it.
// Else, and in the last block of one loop, it does elements that lie a block's threads apart, one
// after the other.
//
// Where all rows of the innermost loop read the same (the numbers of channels that lie side by
// side, say), a thread does V neighbours of some rows: what is the same is read once, and the other
// reads are under way together.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/draws.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/iota_equals.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/cuda/vector_store.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kMapThreads = 256;

class MapEmitter {
 public:
  MapEmitter(const ir::Graph& graph, const Body& body, const CompileOptions& options)
      : body_(body),
        loops_(MakeLoops(body)),
        innermost_(loops_.outer.empty() ? nullptr : &loops_.outer.back()),
        text_(graph, body, Target::kCuda),
        access_(body, innermost_, innermost_ == nullptr ? 0 : innermost_->bits, &text_),
        rows_(RowsOfThread(options)) {}

  WrittenKernel Emit() {
    EmitElements();
    if (rows_ > 1) EmitRows();
    EmitBlock();
    return Finish(text_, "map", RangeOf(loops_), kMapThreads, elements(), rows_ > 1 ? 2 : 0);
  }

 private:
  int elements() const { return kMapThreads * access_.width() * rows_; }  // of a block

  int RowsOfThread(const CompileOptions& options) const {
    constexpr int kMostRows = 4;
    constexpr double kManyThreads = 132 * 1024;  // that keep a large GPU busy
    constexpr double kMostRegisters = 100;
    double of_all = 0, of_row = 0;  // registers
    for (const int address : Reads()) {
      const auto bytes = static_cast<double>(ir::SizeBytes(text_.TypeAt(address)));
      (access_.IsOfAllRows(address) ? of_all : of_row) += access_.width() * bytes / 4;
    }
    if (loops_.outer.size() != 2 || of_all == 0) return 1;
    double threads = 1.0 / access_.width();
    for (const Loop& loop : loops_.outer) threads *= SeenSize(loop.extent, options.seen_extents);
    int rows = kMostRows;
    while (rows > 1 && (threads / rows < kManyThreads || of_all + rows * of_row > kMostRegisters)) rows /= 2;
    return rows;
  }

  // V elements from `at` on.
  void EmitElements() {
    OpenFunction("template <int V> ", "KERNEL_at", "const long at", &text_);
    PlaceAddresses(PlaceLoops(loops_.outer, 'i', "at", &text_), "at", &text_);
    DefineNumbers();
    for (const int address : Reads()) ReadOnce(address);
    EmitVector("");
    Write("");
    CloseFunction(&text_);
  }

  // V columns of some rows; rows beyond the last read what the first does.
  void EmitRows() {
    for (size_t e = 0; e < body_.expressions.size(); ++e) text_.Forget(static_cast<int>(e));
    OpenFunction("template <int V> ", "KERNEL_rows", "const long item", &text_);
    text_.Line("long rest = item;");
    text_.Line(absl::StrCat("const long c = lazy_index(rest, ", Columns(), " / V) * V;"));
    text_.Line(absl::StrCat("const long first = rest * ", rows_, ";"));
    PlaceAddresses({{innermost_, "c"}}, "c", &text_);
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (body_.expressions[e].uses == 0) Define(static_cast<int>(e), {});
    }
    for (const int address : Reads()) {
      if (access_.IsOfAllRows(address))
        ReadOnce(address);
      else if (IsKnownAtOnce(address))
        DeclareRows(address);
    }
    ForEachPlacedRow([&] {
      for (const int address : Reads()) {
        if (IsKnownAtOnce(address)) Read(address, absl::StrCat("all", address, "[row]"));
      }
    });
    ForEachPlacedRow([&] {
      DefineNumbers();
      for (const int address : Reads()) {
        if (IsKnownAtOnce(address)) {
          text_.Line(absl::StrCat("auto& m", address, " = all", address, "[row];"));
        } else if (!access_.IsOfAllRows(address)) {
          ReadOnce(address);
        }
      }
      EmitVector("if (in) ");
      Write("if (in) ");
    });
    CloseFunction(&text_);
  }

  template <typename Function>
  void ForEachPlacedRow(Function write) {
    ForEachRow(rows_, &text_, [&] {
      text_.Line(absl::StrCat("const bool in = first + row < ", Rows(), ";"));
      text_.Line("const long r = in ? first + row : first;");
      text_.Line(absl::StrCat("const long at = r * ", Columns(), " + c;"));
      PlaceAddresses({{&loops_.outer.front(), "r"}, {innermost_, "c"}}, "at", &text_);
      write();
    });
  }

  std::string Columns() { return text_.Number(innermost_->extent); }
  std::string Rows() { return text_.Number(loops_.outer.front().extent); }

  // What is the same for neighbours.
  void DefineNumbers() {
    const uint64_t inner = innermost_ == nullptr ? 0 : innermost_->bits;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if ((body_.expressions[e].uses & inner) == 0 && !text_.defined(static_cast<int>(e)))
        Define(static_cast<int>(e), {});
    }
  }

  // Each at a place that data names.
  bool IsWrittenApart(const Store& store) const {
    return !access_.IsContiguous(store.address) && DependsOnData(body_, body_.addresses[store.address]);
  }

  // V elements, into registers; what lies apart from its neighbours, into memory.
  void EmitVector(const char* condition) {
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (DrawsForNeighbours(text_, static_cast<int>(e), innermost_)) DeclareDraws(static_cast<int>(e), {}, &text_);
      if (IsIotaEquals(text_, static_cast<int>(e), innermost_))
        DeclareIotaEquals(static_cast<int>(e), *innermost_, {}, &text_);
    }
    for (const Store& store : body_.stores) {
      if (!IsWrittenApart(store)) DeclareStored(store, &text_);
    }
    text_.Line("#pragma unroll");
    text_.Open("for (int k = 0; k < V; ++k) {");
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (!text_.defined(static_cast<int>(e))) Define(static_cast<int>(e), Along("k"));
    }
    for (const Store& store : body_.stores) {
      if (IsWrittenApart(store)) {
        text_.Line(absl::StrCat(condition, PlaceText(store.address, Along("k"), &text_), " = ",
                                StoreText(text_.TypeAt(store.address), text_.name(store.expression)), ";"));
      } else {
        PutStored(store, &text_);
      }
    }
    text_.Close("}");
  }

  std::vector<KernelText::Along> Along(const std::string& index) const {
    if (innermost_ == nullptr) return {};
    return {{innermost_, index}};
  }

  void Define(int e, const std::vector<KernelText::Along>& along) {
    if (!along.empty() && DrawsForNeighbours(text_, e, innermost_)) return DefineDraw(e, &text_);
    if (!along.empty() && IsIotaEquals(text_, e, innermost_)) return DefineIotaEquals(e, &text_);
    const int address = body_.expressions[e].address;
    const bool is_read =
        body_.expressions[e].kind == Expression::Kind::kLoad && !along.empty() && access_.IsContiguous(address);
    text_.Define(e, is_read        ? absl::StrCat("m", address, "[k]")
                    : address >= 0 ? PlaceText(address, along, &text_)
                                   : "");
  }

  // What neighbours read side by side.
  std::vector<int> Reads() const {
    std::vector<int> addresses;
    for (const Expression& e : body_.expressions) {
      if (e.kind == Expression::Kind::kLoad && access_.IsContiguous(e.address)) addresses.push_back(e.address);
    }
    return addresses;
  }

  // Memory's elements, in registers: `all` of some rows, `m` of one.
  void Declare(int address) { text_.Line(absl::StrCat(TypeOf(address), " m", address, "[V];")); }
  void DeclareRows(int address) { text_.Line(absl::StrCat(TypeOf(address), " all", address, "[", rows_, "][V];")); }
  std::string TypeOf(int address) const { return MemoryType(text_.TypeAt(address)); }

  // Not where the row is one that data names.
  bool IsKnownAtOnce(int address) const {
    return !access_.IsOfAllRows(address) && !DependsOnData(body_, body_.addresses[address]);
  }

  void ReadOnce(int address) {
    Declare(address);
    Read(address, absl::StrCat("m", address));
  }

  void Read(int address, const std::string& to) {
    text_.Line(absl::StrCat("lazy_read(", to, ", ", PointerText(address, {}, &text_), ");"));
  }

  void Write(const char* condition) {
    for (const Store& store : body_.stores) {
      if (IsWrittenApart(store)) continue;
      if (access_.IsContiguous(store.address)) {
        WriteStored(store, condition, PointerText(store.address, {}, &text_), &text_);
        continue;
      }
      text_.Line("#pragma unroll");
      text_.Line(absl::StrCat("for (int k = 0; k < V; ++k) ", condition, PlaceText(store.address, Along("k"), &text_),
                              " = ", StoredElement(store, text_), ";"));
    }
  }

  void EmitBlock() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    text_.Line(absl::StrCat("const long first = block * ", elements(), ";"));
    if (innermost_ != nullptr) {
      text_.Line(absl::StrCat("const bool wide = ", access_.Condition(loops_.outer.size() == 1), ";"));
      rows_ > 1 ? CallRows() : CallWide();
    }
    text_.Line("#pragma unroll 1");
    text_.Open(
        absl::StrCat("for (long at = first + threadIdx.x; at < first + ", elements(), "; at += ", kMapThreads, ") {"));
    text_.Line("if (at < arguments.iterations) KERNEL_at<1>(arguments, at);");
    text_.Close("}");
    CloseFunction(&text_);
  }

  // Rows of whole vectors are whole vectors together, in the last block as well: a map of few elements is that alone.
  void CallWide() {
    if (loops_.outer.size() > 1) {
      text_.Open("if (wide) {");
      text_.Line(absl::StrCat("const long at = first + threadIdx.x * ", access_.width(), ";"));
      text_.Line(absl::StrCat("if (at < arguments.iterations) KERNEL_at<", access_.width(), ">(arguments, at);"));
      text_.Line("return;");
      text_.Close("}");
      return;
    }
    text_.Line(absl::StrCat("if (wide && first + ", elements(), " <= arguments.iterations) return KERNEL_at<",
                            access_.width(), ">(arguments, first + threadIdx.x * ", access_.width(), ");"));
  }

  // Where the last rows are fewer, some threads do two items.
  void CallRows() {
    text_.Open("if (wide) {");
    text_.Line(absl::StrCat("const long items = (", Rows(), " + ", rows_ - 1, ") / ", rows_, " * (", Columns(), " / ",
                            access_.width(), ");"));
    text_.Line(absl::StrCat("const long threads = (arguments.iterations + ", elements() - 1, ") / ", elements(), " * ",
                            kMapThreads, ";"));
    text_.Line("#pragma unroll 1");
    text_.Open(
        absl::StrCat("for (long item = block * ", kMapThreads, " + threadIdx.x; item < items; item += threads) {"));
    text_.Line(absl::StrCat("KERNEL_rows<", access_.width(), ">(arguments, item);"));
    text_.Close("}");
    text_.Line("return;");
    text_.Close("}");
  }

  const Body& body_;
  const Loops loops_;
  const Loop* const innermost_;
  KernelText text_;
  VectorAccess access_;
  const int rows_;  // of a thread
};

}  // namespace

WrittenKernel EmitMap(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return MapEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
