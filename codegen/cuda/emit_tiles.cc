// SPDX-License-Identifier: Apache-2.0
// A map that reads or writes across memory: a block does tiles of 32 times 32 elements.
//
// Neighbours of the innermost loop are neighbours in memory for most addresses; for those that are
// turned, neighbours of another loop are. What is read there goes through shared memory, and what
// is written, so that a warp's accesses are side by side on both sides.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kSide = 32;
constexpr int kTileThreads = 256;
constexpr int kRows = kTileThreads / kSide;  // of a tile at once

// The loops of a tile, and which addresses are turned.
struct Turn {
  size_t loop = 0;  // of Loops::outer; the other is the last
  std::vector<bool> addresses;
};

bool IsTurned(const Body& body, const Address& address, const Loop& loop, const Loop& innermost) {
  const Polynomial along = address.index.CoefficientOf(innermost.variable);
  return address.slot >= 0 && !DependsOnData(body, address) && !along.is_zero() && !along.is_one() &&
         address.index.CoefficientOf(loop.variable).is_one();
}

// Loads and stores of one address are two, so that each needs a tile of its own.
std::optional<Turn> FindTurn(const ir::Graph& graph, const Body& body, const Loops& loops,
                             const CompileOptions& options) {
  const auto is_long = [&](const Loop& loop) { return SeenSize(loop.extent, options.seen_extents) >= kSide; };
  if (loops.outer.size() < 2 || !is_long(loops.outer.back())) return std::nullopt;
  for (size_t k = 0; k + 1 < loops.outer.size(); ++k) {
    if (!is_long(loops.outer[k])) continue;
    Turn turn{k, std::vector<bool>(body.addresses.size())};
    int64_t bytes = 0;
    for (size_t a = 0; a < body.addresses.size(); ++a) {
      const Address& address = body.addresses[a];
      if (!IsTurned(body, address, loops.outer[k], loops.outer.back())) continue;
      bytes += kSide * (kSide + 1) * ir::SizeBytes(graph.type(body.slots[address.slot].value).dtype);
      turn.addresses[a] = bytes <= kSharedBytes;  // others are done as they are
    }
    if (bytes > 0) return turn;
  }
  return std::nullopt;
}

class TileEmitter {
 public:
  TileEmitter(const ir::Graph& graph, const Body& body, Loops loops, Turn turn)
      : body_(body),
        loops_(std::move(loops)),
        turn_(std::move(turn)),
        row_loop_(loops_.outer[turn_.loop]),
        column_loop_(loops_.outer.back()),
        text_(graph, body, Target::kCuda) {
    for (size_t k = 0; k + 1 < loops_.outer.size(); ++k) {
      if (k != turn_.loop) other_loops_.push_back(loops_.outer[k]);
    }
  }

  WrittenKernel Emit() {
    OpenFunction("", "KERNEL_block", "const long block", &text_);
    const std::string rows = text_.Number(row_loop_.extent);
    const std::string columns = text_.Number(column_loop_.extent);
    text_.Line(absl::StrCat("const int x = threadIdx.x % ", kSide, ", y = threadIdx.x / ", kSide, ";"));
    for (size_t a = 0; a < body_.addresses.size(); ++a) {
      if (turn_.addresses[a])
        text_.Line(absl::StrCat("__shared__ ", TypeOf(a), " tile", a, "[", kSide, "][", kSide + 1, "];"));
    }
    text_.Line(absl::StrCat("const long high = (", rows, " + ", kSide - 1, ") / ", kSide, ", wide = (", columns, " + ",
                            kSide - 1, ") / ", kSide, ";"));
    Monomial others;
    for (const Loop& loop : other_loops_) others = others * loop.extent;
    text_.Line(absl::StrCat("const long tiles = ", text_.Number(others), " * high * wide;"));
    // Tiles at the edge are not full: there may be more of them than blocks.
    text_.Line(
        absl::StrCat("const long blocks = (arguments.iterations + ", kSide * kSide - 1, ") / ", kSide * kSide, ";"));
    text_.Open("for (long tile = block; tile < tiles; tile += blocks) {");
    text_.Line("long rest = tile;");
    text_.Line(absl::StrCat("const long first_j = lazy_index(rest, wide) * ", kSide, ";"));
    text_.Line(absl::StrCat("const long first_i = lazy_index(rest, high) * ", kSide, ";"));
    text_.Line("const long other = rest;");
    PlaceAddresses(PlaceLoops(other_loops_, 'o', "other", &text_), "other", &text_);
    const uint64_t bits = row_loop_.bits | column_loop_.bits;
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if ((body_.expressions[e].uses & bits) == 0) Define(static_cast<int>(e), {});
    }
    EmitReads();
    EmitElements();
    EmitWrites();
    text_.Line("__syncthreads();");  // before the next tile's are written
    text_.Close("}");
    CloseFunction(&text_);
    return Finish(text_, "tiles", RangeOf(loops_), kTileThreads, kSide * kSide);
  }

 private:
  std::string TypeOf(size_t address) const { return MemoryType(text_.TypeAt(address)); }

  template <typename Function>
  void ForEachTurnedLoad(Function function) {
    for (const Expression& e : body_.expressions) {
      if (e.kind == Expression::Kind::kLoad && turn_.addresses[e.address]) function(e.address);
    }
  }

  // Over the thread's elements; a warp's lie along the rows of memory if `turned`.
  void OpenElements(bool turned, bool checked) {
    text_.Line("#pragma unroll");
    text_.Open(absl::StrCat("for (int k = 0; k < ", kSide, "; k += ", kRows, ") {"));
    text_.Line(turned ? "const long i = first_i + x, j = first_j + y + k;"
                      : "const long i = first_i + y + k, j = first_j + x;");
    const std::string in =
        absl::StrCat("i < ", text_.Number(row_loop_.extent), " && j < ", text_.Number(column_loop_.extent));
    if (checked)
      text_.Line(absl::StrCat("if (!(", in, ")) continue;"));
    else
      text_.Line(absl::StrCat("const bool in = ", in, ";"));
  }

  std::vector<KernelText::Along> Along() const { return {{&row_loop_, "i"}, {&column_loop_, "j"}}; }

  // All loads of a thread come before it waits for the first.
  void EmitReads() {
    bool has_loads = false;
    ForEachTurnedLoad([&](int address) {
      text_.Line(absl::StrCat(TypeOf(address), " m", address, "[", kSide / kRows, "];"));
      has_loads = true;
    });
    if (!has_loads) return;
    OpenElements(/*turned=*/true, /*checked=*/false);
    ForEachTurnedLoad([&](int address) {
      text_.Line(absl::StrCat("m", address, "[k / ", kRows, "] = in ? ", PlaceText(address, Along(), &text_), " : (",
                              TypeOf(address), ")0;"));
    });
    text_.Close("}");
    text_.Line("#pragma unroll");
    text_.Open(absl::StrCat("for (int k = 0; k < ", kSide, "; k += ", kRows, ") {"));
    ForEachTurnedLoad([&](int address) {
      text_.Line(absl::StrCat("tile", address, "[y + k][x] = m", address, "[k / ", kRows, "];"));
    });
    text_.Close("}");
    text_.Line("__syncthreads();");
  }

  void EmitElements() {
    OpenElements(/*turned=*/false, /*checked=*/true);
    for (size_t e = 0; e < body_.expressions.size(); ++e) {
      if (!text_.defined(static_cast<int>(e))) Define(static_cast<int>(e), Along());
    }
    for (const Store& store : body_.stores) {
      const std::string place = turn_.addresses[store.address] ? absl::StrCat("tile", store.address, "[y + k][x]")
                                                               : PlaceText(store.address, Along(), &text_);
      const ir::DType dtype = text_.TypeAt(store.address);
      text_.Line(absl::StrCat(place, " = ", StoreText(dtype, text_.name(store.expression)), ";"));
    }
    text_.Close("}");
  }

  void EmitWrites() {
    const auto is_turned = [&](const Store& store) { return turn_.addresses[store.address]; };
    if (std::none_of(body_.stores.begin(), body_.stores.end(), is_turned)) return;
    text_.Line("__syncthreads();");
    OpenElements(/*turned=*/true, /*checked=*/true);
    for (const Store& store : body_.stores) {
      if (is_turned(store))
        text_.Line(absl::StrCat(PlaceText(store.address, Along(), &text_), " = tile", store.address, "[x][y + k];"));
    }
    text_.Close("}");
  }

  void Define(int e, const std::vector<KernelText::Along>& along) {
    const Expression& expression = body_.expressions[e];
    const int address = expression.address;
    const bool is_turned = expression.kind == Expression::Kind::kLoad && turn_.addresses[address];
    text_.Define(e, is_turned      ? absl::StrCat("tile", address, "[x][y + k]")
                    : address >= 0 ? PlaceText(address, along, &text_)
                                   : "");
  }

  const Body& body_;
  const Loops loops_;
  const Turn turn_;
  const Loop &row_loop_, &column_loop_;
  std::vector<Loop> other_loops_;
  KernelText text_;
};

}  // namespace

std::optional<WrittenKernel> EmitTiles(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  Loops loops = MakeLoops(body);
  std::optional<Turn> turn = FindTurn(graph, body, loops, options);
  if (!turn.has_value()) return std::nullopt;
  return TileEmitter(graph, body, std::move(loops), *std::move(turn)).Emit();
}

}  // namespace torch_lazy::codegen::cuda
