// SPDX-License-Identifier: Apache-2.0
#include "backends/blocks/block_launches.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kWord = 8;  // all of struct Arguments' members have this size

size_t ArgumentsBytes(const BoundInstance& instance) {
  return kWord * (2 + instance.buffers.size() + instance.extents.size());
}

int64_t BlocksOf(const BoundInstance& instance, const BlockKernel& kernel) {
  return (instance.iterations - 1) / kernel.iterations_per_block + 1;
}

// Writes parts one after the other.
class Writer {
 public:
  explicit Writer(char* to) : to_(to) {}
  void Put(const void* from, size_t size_bytes) {
    if (size_bytes != 0) std::memcpy(to_, from, size_bytes);
    to_ += size_bytes;
  }
  void PutWord(uint64_t word) { Put(&word, kWord); }

 private:
  char* to_;
};

// As struct Arguments in codegen/plan/plan.h says.
void WriteArguments(const BoundInstance& instance, uint64_t scalars, Writer* writer) {
  writer->PutWord(scalars);
  writer->PutWord(static_cast<uint64_t>(instance.iterations));
  writer->Put(instance.buffers.data(), instance.buffers.size() * kWord);
  writer->Put(instance.extents.data(), instance.extents.size() * kWord);
}

void WriteFirstBlocks(const BlockLaunch& launch, char* to) {
  Writer writer(to);
  int32_t first = 0;
  for (const BoundInstance* instance : launch.instances) {
    writer.Put(&first, sizeof(first));
    first += static_cast<int32_t>(BlocksOf(*instance, *launch.kernel));
  }
  writer.Put(&first, sizeof(first));
}

// With rows enough for a GPU: fewer share a launch with any other instances.
bool FitsExactly(const BoundInstance& instance, const BlockKernel& kernel) {
  constexpr int64_t kFewestBlocks = 64;
  const codegen::Kernel::Exact& exact = kernel.exact_rows;
  const auto is_aligned = [](const void* buffer) { return reinterpret_cast<uintptr_t>(buffer) % 16 == 0; };
  return exact.extent >= 0 && instance.extents[exact.extent] == exact.length &&
         BlocksOf(instance, kernel) >= kFewestBlocks &&
         std::all_of(instance.buffers.begin(), instance.buffers.end(), is_aligned);
}

// How many instances' arguments the entry takes by value.
size_t RoomByValue(const BlockLaunch& launch) {
  if (launch.is_exact()) return codegen::Kernel::Exact::kMost;
  return launch.entry == BlockLaunch::Entry::kFew ? codegen::Kernel::kFew : 1;
}

BlockLaunch::Entry EntryOfOne(const codegen::Kernel::Entries& has) {
  if (has.one) return BlockLaunch::Entry::kOne;
  return has.few ? BlockLaunch::Entry::kFew : BlockLaunch::Entry::kMany;
}

// Where the next launch's scalars begin: behind the table, if there is one.
size_t AfterScalars(const BlockLaunch& launch, size_t end) {
  return launch.is_many() ? launch.first_block_at + (launch.instances.size() + 2) / 2 * kWord : end;
}

}  // namespace

BlockLaunches::BlockLaunches(absl::Span<const BoundInstance> instances) {
  for (const BoundInstance& instance : instances) {
    if (instance.iterations <= 0) continue;
    const auto* const kernel = static_cast<const BlockKernel*>(instance.function);
    LAZY_CHECK(kernel != nullptr && kernel->threads > 0 && kernel->iterations_per_block > 0,
               "a kernel without threads is launched");
    const int64_t blocks = BlocksOf(instance, *kernel);
    BlockLaunch& launch = LaunchOf(kernel, blocks, FitsExactly(instance, *kernel));
    launch.blocks = launch.is_exact() ? blocks : launch.blocks + blocks;
    launch.instances.push_back(&instance);
    LAZY_CHECK(launch.blocks <= std::numeric_limits<int32_t>::max(), launch.kernel->name, ": ", launch.blocks,
               " blocks in one launch");
  }
  ChooseEntries();
  PlaceParts();
}

// Launches that are split leave the others at the end.
void BlockLaunches::ChooseEntries() {
  absl::InlinedVector<int64_t, 4> blocks;
  for (size_t k = 0; k < launches_.size(); ++k) {
    if (launches_[k].is_exact()) continue;
    const codegen::Kernel::Entries& has = launches_[k].kernel->entries;
    blocks.clear();
    for (const BoundInstance* instance : launches_[k].instances)
      blocks.push_back(BlocksOf(*instance, *launches_[k].kernel));
    const bool is_few = has.few && codegen::EntryFor(blocks) == BlockLaunch::Entry::kFew;
    if (blocks.size() > 1 && !is_few && !has.many) {
      Split(k);
      blocks.resize(1);
    }
    BlockLaunch& launch = launches_[k];
    launch.entry = blocks.size() == 1 ? EntryOfOne(has) : is_few ? BlockLaunch::Entry::kFew : BlockLaunch::Entry::kMany;
    if (launch.entry == BlockLaunch::Entry::kFew) launch.blocks = *std::max_element(blocks.begin(), blocks.end());
  }
}

// Into one of its first instance, and one of each other.
void BlockLaunches::Split(size_t number) {
  const auto instances = std::exchange(launches_[number].instances, {});
  for (size_t k = 0; k < instances.size(); ++k) {
    BlockLaunch& launch = k == 0 ? launches_[number] : launches_.emplace_back();
    launch.kernel = launches_[number].kernel;
    launch.blocks = BlocksOf(*instances[k], *launch.kernel);
    launch.instances.push_back(instances[k]);
  }
}

// One with room for an instance of so many blocks. Most have one kernel or a few, so a search costs
// less than a table.
BlockLaunch& BlockLaunches::LaunchOf(const BlockKernel* kernel, int64_t blocks, bool is_exact) {
  const auto has_room = [&](const BlockLaunch& launch) {
    return !is_exact || (launch.blocks == blocks && launch.instances.size() < codegen::Kernel::Exact::kMost);
  };
  for (BlockLaunch& launch : launches_) {
    if (launch.kernel == kernel && launch.is_exact() == is_exact && has_room(launch)) return launch;
  }
  BlockLaunch& launch = launches_.emplace_back();
  launch.kernel = kernel;
  if (is_exact) launch.entry = BlockLaunch::Entry::kExact;
  return launch;
}

void BlockLaunches::PlaceParts() {
  for (BlockLaunch& launch : launches_) {
    for (const BoundInstance* instance : launch.instances) device_bytes_ += instance->scalars.size() * kWord;
    if (!launch.is_many()) continue;
    launch.arguments_at = device_bytes_;
    device_bytes_ += launch.instances.size() * ArgumentsBytes(*launch.instances[0]);
    launch.first_block_at = device_bytes_;
    const size_t numbers = launch.instances.size() + 1;
    device_bytes_ += (numbers + 1) / 2 * kWord;
  }
  size_bytes_ = device_bytes_;
  for (BlockLaunch& launch : launches_) {
    if (launch.is_many()) continue;
    launch.arguments_at = size_bytes_;
    size_bytes_ += RoomByValue(launch) * ArgumentsBytes(*launch.instances[0]);
  }
}

bool BlockLaunches::has_tables() const {
  return std::any_of(launches_.begin(), launches_.end(), [](const BlockLaunch& launch) { return launch.is_many(); });
}

std::vector<size_t> BlockLaunches::ScalarPlaces(absl::Span<const BoundInstance> instances) const {
  std::vector<size_t> places(instances.size());
  size_t at = 0;
  for (const BlockLaunch& launch : launches_) {
    for (const BoundInstance* instance : launch.instances) {
      places[instance - instances.data()] = at;
      at += instance->scalars.size() * kWord;
    }
    at = AfterScalars(launch, at);
  }
  return places;
}

void BlockLaunches::Write(char* image, uint64_t address) const {
  size_t scalars_at = 0;
  for (const BlockLaunch& launch : launches_) {
    Writer arguments(image + launch.arguments_at);
    Writer scalars(image + scalars_at);
    for (const BoundInstance* instance : launch.instances) {
      LAZY_DCHECK(ArgumentsBytes(*instance) == ArgumentsBytes(*launch.instances[0]), launch.kernel->name,
                  ": instances differ in their numbers of arguments");
      WriteArguments(*instance, address + scalars_at, &arguments);
      scalars.Put(instance->scalars.data(), instance->scalars.size() * kWord);
      scalars_at += instance->scalars.size() * kWord;
    }
    if (launch.is_many()) WriteFirstBlocks(launch, image + launch.first_block_at);
    scalars_at = AfterScalars(launch, scalars_at);
  }
}

}  // namespace torch_lazy::backends
