// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_tiling.h"

#include <algorithm>
#include <cmath>

#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/emit.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kWarpsPerBlock = 4, kThreadsOfShare = 256, kFewestLanes = 4;
constexpr double kShortRow = 256, kMostOfWarp = 1024;
constexpr double kLayer = 128;      // what layers' widths are multiples of
constexpr double kManyRows = 4096;  // enough warps for the machine
constexpr int kMostThreads = 1024;
constexpr int kNumbersOfThread = 16;       // before a row gets more threads
constexpr int kMostNumbers = 32;           // of a thread, for each array
constexpr double kMostFetched = 46 << 10;  // of a block's shared memory, beside folds
constexpr double kArrivedBytes = 16;       // beside what is fetched by bulk copies
// The machine waits for each of so few rows; how many threads one has, and what a thread reads first, in registers.
constexpr double kFewRows = 128, kMostReadFirst = 64;
constexpr int kThreadsOfFew = 512;
constexpr int kRegisters = 72, kRegistersOf1024 = 40, kRegistersOfWarp = 128;  // for all arrays

double SeenProduct(const std::vector<Loop>& loops, const CompileOptions& options) {
  double product = 1;
  for (const Loop& loop : loops) product *= SeenSize(loop.extent, options.seen_extents);
  return product;
}

bool Contains(const std::vector<int>& list, int e) { return std::find(list.begin(), list.end(), e) != list.end(); }

// Arrays that are in registers at once.
int LiveArrays(const Body& body, const RowStages& rows) {
  std::vector<int> live(rows.stages.size());
  for (const int e : rows.scratch) {
    bool is_kept = false;
    int last = 0;
    for (size_t s = 0; s < rows.stages.size(); ++s) {
      if (Contains(rows.stages[s].numbers, e)) last = static_cast<int>(s);
    }
    for (int s = 0; s <= last; ++s) {
      is_kept = is_kept || Contains(rows.stages[s].kept, e);
      if (is_kept) ++live[s];
    }
  }
  int arrays = *std::max_element(live.begin(), live.end());
  for (const Store& store : body.stores) arrays += IsShareSum(body, store) ? 1 : 0;
  return std::max(arrays, 1);
}

bool FoldsRows(const RowStages& rows) {
  return std::any_of(rows.stages.begin(), rows.stages.end(),
                     [](const RowStage& stage) { return !stage.reductions.empty(); });
}

// A block that does a share's rows one by one has a thread for each of the columns, as far as that
// leaves few threads without any: then it is theirs to add up. Threads that fold rows are a power
// of two.
int ThreadsOfShare(double length, int width, const RowStages& rows) {
  if (!FoldsRows(rows)) return static_cast<int>(std::min<double>(kMostThreads, std::ceil(length / width / 32) * 32));
  int best = 256;
  const auto lanes = [&](int threads) { return std::ceil(length / (width * threads)) * width * threads; };
  for (const int threads : {512, kMostThreads}) {
    if (lanes(threads) <= lanes(best)) best = threads;
  }
  return best;
}

// Threads that do not wait for each other take turns at the rows, and meet in shared memory.
int GroupsOfShare(int threads, double length, const Body& body, const RowStages& rows) {
  constexpr int kThreads = kThreadsOfShare;
  constexpr double kMostSharedBytes = 32 << 10;
  if (FoldsRows(rows)) return 1;
  double bytes = 0;
  for (const Store& store : body.stores) bytes += IsShareSum(body, store) ? length * sizeof(double) : 0;
  return bytes <= kMostSharedBytes ? std::max(1, kThreads / threads) : 1;
}

// What a kernel reads and keeps for each element of a row: a row's own, and what all rows share.
struct PerElement {
  double registers = 0, bytes = 0;
  double columns = 0, column_registers = 0;
  int streams = 0;  // of vectors of a row's own
  bool depends_on_data = false;
};

PerElement PerElementOf(const Body& body, const VectorAccess& access, int arrays) {
  PerElement found;
  found.registers = arrays;
  for (const Store& store : body.stores) found.registers -= IsShareSum(body, store) ? 1 : 0;
  for (size_t e = 0; e < body.expressions.size(); ++e) {
    const Expression& load = body.expressions[e];
    if (load.kind != Expression::Kind::kLoad || !body.uses_inner(static_cast<int>(e))) continue;
    const double bytes = static_cast<double>(ir::SizeBytes(load.dtype));
    // Of a row that is several loops, a vector that all rows read may lie elsewhere for each step of the outer ones.
    const bool is_column =
        access.LoadsVector(static_cast<int>(e)) ? access.IsOfAllRows(load.address) : (load.uses & ~body.inner) == 0;
    if (is_column) {
      found.columns += 1;
      found.column_registers += bytes / 4;
      continue;
    }
    found.registers += bytes / 4;
    found.bytes += bytes;
    ++found.streams;
    found.depends_on_data = found.depends_on_data || DependsOnData(body, body.addresses[load.address]);
  }
  found.registers = std::max(found.registers, 1.0);
  return found;
}

// Of shared memory, in which a block's warps meet: to do `rows` at once, and one for which registers do not suffice.
double FoldBytes(const ir::Graph& graph, const Body& body, const RowStages& stages, int threads, int rows) {
  if (threads <= 32) return 0;
  double numbers = 0;
  for (const RowStage& stage : stages.stages) {
    for (const int reduction : stage.reductions)
      numbers += HasIndex(graph.node(body.expressions[reduction].node)) ? 2 : 1;
  }
  return numbers * sizeof(double) * threads / 32 * (rows + 1);
}

// As many as registers hold, so that the group waits for memory, and for its threads, once; fewer
// where shared memory then holds as many again, so that it waits but for the first.
template <typename FoldBytesOf>
void ChooseRowsAtOnce(const PerElement& each, int width, FoldBytesOf fold_bytes_of, RowTiling* size) {
  constexpr int kMostRows = 4;
  constexpr double kMostRegisters = 96 * 256;  // of all rows that a block's threads keep
  const double elements = size->items * width * size->threads;
  const auto fits = [&](int rows) {
    return (rows * each.registers + each.column_registers) * elements * size->rows_per_block <= kMostRegisters &&
           fold_bytes_of(size->threads, rows) <= kSharedBytes;
  };
  const auto fits_twice = [&](int rows) {
    const double fetched = 2 * rows * each.bytes * elements, folds = fold_bytes_of(size->threads, rows);
    return fetched <= (folds > 0 ? kMostFetched : kSharedBytes) && fetched + folds <= kSharedBytes;
  };
  int rows = kMostRows;
  while (rows > 1 && !fits(rows)) rows /= 2;
  size->rows_at_once = rows;
  if (size->rows_per_block > 1 || size->threads <= 32 || each.depends_on_data || each.bytes == 0) return;
  while (rows > 1 && !fits_twice(rows)) rows /= 2;
  size->fetches = rows > 1;
  if (size->fetches) size->rows_at_once = rows;
}

// Lengths vary (of sequences, say), but hardly those of layers, or of rows that are summed up.
double ItemsOf(double length, int elements, bool has_shares) {
  const double exact = std::ceil(length / elements);
  const bool is_layer = has_shares || std::fmod(length, kLayer) == 0;
  return is_layer ? exact : std::exp2(std::ceil(std::log2(exact)));
}

// Long rows that a block does one by one, the next being on its way while one waits for the block's threads: few, so
// that rows are read and written nearly in their order, which memory likes. Threads have what registers hold; where
// that suffices for what all rows share, they keep it, unless it is converted: that would be kept, too.
template <typename FoldBytesOf>
RowTiling SizeInTurns(const PerElement& each, double length, double count, int arrays, int width,
                      FoldBytesOf fold_bytes_of) {
  constexpr int kFewestThreads = 256, kThreadsAtOnce = 512;  // the latter of a multiprocessor, with 128 registers
  constexpr double kMultiprocessors = 128, kMostTurns = 4, kMostKept = 96;
  RowTiling size;
  size.threads = kFewestThreads;
  while (size.threads < kThreadsAtOnce && length > size.threads * kMostNumbers) size.threads *= 2;
  size.items = static_cast<int>(ItemsOf(length, width * size.threads, /*has_shares=*/false));
  const double numbers = size.items * width;
  const double fetched = each.bytes * numbers * size.threads;
  const bool fits = numbers <= kMostNumbers && arrays * numbers <= 2 * kMostNumbers && fetched <= kMostFetched &&
                    fetched + kArrivedBytes + fold_bytes_of(size.threads, 1) <= kSharedBytes;
  const bool is_long = length > kFewestThreads / 2 * kNumbersOfThread;
  if (!is_long || !fits || each.bytes == 0 || each.depends_on_data) return size;
  size.turns = static_cast<int>(
      std::clamp(std::floor(count * size.threads / (kMultiprocessors * kThreadsAtOnce)), 1.0, kMostTurns));
  size.keeps_columns = each.column_registers == each.columns && (arrays + each.column_registers) * numbers <= kMostKept;
  size.blocks_at_once = kThreadsAtOnce / size.threads;
  return size;
}

// Rows that are folded in one walk, and needed for nothing else: a product with a vector, a sum, a largest number.
bool AreReadOnce(const Body& body, const RowStages& rows) {
  const auto works = [](const RowStage& stage) { return !stage.reductions.empty() || !stage.stores.empty(); };
  return !body.has_shares() && std::count_if(rows.stages.begin(), rows.stages.end(), works) == 1 && FoldsRows(rows) &&
         std::all_of(rows.stages.begin(), rows.stages.end(),
                     [](const RowStage& stage) { return stage.stores.empty(); });
}

// A warp for each row, which waits for no other. Each thread has a block's vectors on their way at once, and keeps
// nothing. A row that is longer has more threads where rows are too few to keep memory busy, and one of few rows has
// two vectors a thread.
RowTiling SizeReadOnce(const PerElement& each, double length, double count, int width) {
  constexpr double kEnoughThreads = 1 << 15;  // with 128 bytes each, what memory sends within a microsecond
  RowTiling size;
  while (size.threads < kMostThreads && count * size.threads < kEnoughThreads &&
         length > (count <= kFewRows ? 2 * width : kBlockSteps) * size.threads)
    size.threads *= 2;
  size.rows_per_block = size.threads > 32 ? 1 : kWarpsPerBlock;
  size.unroll = std::clamp(kBlockSteps / width / std::max(each.streams, 1), 1, kBlockSteps / width);
  return size;
}

}  // namespace

RowTiling RowTilingOf(const ir::Graph& graph, const Body& body, const Loops& loops, const RowStages& rows,
                      const VectorAccess& access, const CompileOptions& options) {
  const int width = access.width();
  const double length = std::max(1.0, SeenProduct(loops.inner, options));
  const double count = SeenProduct(loops.outer, options);
  const int arrays = LiveArrays(body, rows);
  const PerElement each = PerElementOf(body, access, arrays);
  const auto fold_bytes_of = [&](int threads, int rows_at_once) {
    return FoldBytes(graph, body, rows, threads, rows_at_once);
  };
  const auto most = [&](int threads) {
    const int registers = threads >= kMostThreads ? kRegistersOf1024 : threads <= 32 ? kRegistersOfWarp : kRegisters;
    return std::clamp(registers / arrays, width, kMostNumbers);
  };
  const bool has_shares = body.has_shares(), is_few = count <= kFewRows;
  const bool is_short = length <= kShortRow || (length <= kMostOfWarp && !has_shares && count >= kManyRows);
  if (!is_short && !has_shares) {
    if (loops.inner.size() == 1 && access.HasVectorsInRow() && AreReadOnce(body, rows))
      return SizeReadOnce(each, length, count, width);
    const RowTiling in_turns = SizeInTurns(each, length, count, arrays, width, fold_bytes_of);
    if (in_turns.takes_turns()) return in_turns;
  }
  RowTiling size;
  size.unroll = std::max(1, 16 / width);
  if (is_short && length <= size.threads * most(size.threads)) {
    while (has_shares && size.threads > kFewestLanes && length <= size.threads / 2 * width) size.threads /= 2;
    size.rows_per_block = has_shares ? kThreadsOfShare / size.threads : kWarpsPerBlock;
  } else if (has_shares) {
    size.threads = ThreadsOfShare(length, width, rows);
    size.rows_per_block = GroupsOfShare(size.threads, length, body, rows);
  } else {
    size.threads = 128;
    const auto numbers = [&](int threads) { return is_few && threads < kThreadsOfFew ? width : kNumbersOfThread; };
    while (size.threads < kMostThreads && length > size.threads * std::min(numbers(size.threads), most(size.threads)))
      size.threads *= 2;
  }
  while (size.threads > 32 && fold_bytes_of(size.threads, 1) > kSharedBytes) size.threads /= 2;
  const double items = ItemsOf(length, width * size.threads, has_shares);
  if (items * width <= most(size.threads)) size.items = static_cast<int>(items);
  size.keeps_columns = is_few && !has_shares && size.items > 0 &&
                       (arrays + each.column_registers) * size.items * width <= kMostReadFirst;
  if (has_shares && size.items > 0) ChooseRowsAtOnce(each, width, fold_bytes_of, &size);
  // What waits for other threads, or for memory, leaves the multiprocessor to other rows.
  if (size.threads == 512 && size.items > 0 && arrays == 1) size.blocks_at_once = 3;
  if (has_shares && size.threads <= 512 && size.items > 0) size.blocks_at_once = 2;
  if (size.threads == kMostThreads && size.items == 0 && !has_shares) size.blocks_at_once = 2;
  return size;
}

}  // namespace torch_lazy::codegen::cuda
