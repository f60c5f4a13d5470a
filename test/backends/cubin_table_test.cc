// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cubin_table.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/flags.h"
#include "base/metrics.h"
#include "test/backends/block_kernels.h"
#include "test/backends/kernel.h"
#include "test/backends/nvrtc.h"

namespace torch_lazy::backends {
namespace {

std::atomic<int> loads{0};

// Stands for the driver: looks for the entries' names.
absl::Status FakeLoad(const std::string& cubin, absl::Span<BlockKernel* const> kernels) {
  ++loads;
  static int entry = 0;
  for (BlockKernel* const kernel : kernels) {
    if (cubin.find(kernel->name + "_many") == std::string::npos) return absl::InternalError("no " + kernel->name);
    kernel->one = kernel->many = &entry;
  }
  return absl::OkStatus();
}

// A fresh table is what a new process has: nothing in memory, the disk as it is.
class CubinTableTest : public testing::Test {
 protected:
  void SetUp() override {
    LAZY_ASSERT_NVRTC();
    folder_ = NewFolder();
    SetOptionAnew("cache_dir", folder_);
    base::ResetMetrics();
    loads = 0;
  }
  static int64_t Compiled() { return base::Get(base::Counter::kKernelsCompiled); }
  static int64_t FromDisk() { return base::Get(base::Counter::kKernelsFromDisk); }
  // Tables live as long as the process: they may have threads.
  static CubinTable* NewTable(const std::string& arch = "sm_90", CubinTable::Load load = FakeLoad) {
    static auto& tables = *new std::vector<CubinTable*>;
    tables.push_back(new CubinTable(arch, std::move(load)));
    return tables.back();
  }
  static void CheckLoads(CubinTable* table, const std::vector<codegen::Kernel>& kernels) {
    const std::shared_ptr<Module> module = table->Compile(kernels, /*wait=*/true);
    ASSERT_TRUE(module->ready());
    ASSERT_TRUE(module->status().ok()) << module->status();
    for (size_t k = 0; k < kernels.size(); ++k) {
      const auto& kernel = *static_cast<const BlockKernel*>(module->Function(k));
      EXPECT_EQ(kernel.name, kernels[k].name);
      EXPECT_EQ(kernel.threads, kernels[k].threads);
      EXPECT_EQ(kernel.iterations_per_block, kernels[k].iterations_per_block);
      EXPECT_NE(kernel.one, nullptr);
      EXPECT_NE(kernel.many, nullptr);
    }
  }
  std::vector<std::filesystem::path> Files(const std::string& ending) const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == ending) files.push_back(entry.path());
    }
    return files;
  }

  std::string folder_;
};

std::vector<codegen::Kernel> Kernels(int number) {
  std::vector<codegen::Kernel> kernels;
  for (int k = 0; k < number; ++k) {
    kernels.push_back(BlockKernelText("write_" + std::to_string(k), 32, 32, "void* buffers[1];",
                                      "((int*)a.buffers[0])[threadIdx.x] = " + std::to_string(k) + ";"));
  }
  return kernels;
}

TEST_F(CubinTableTest, CompilesInTheBackground) {
  CubinTable* const table = NewTable();
  const auto module = table->Compile(Kernels(1), /*wait=*/false);
  EXPECT_EQ(Compiled(), 1);  // counted when asked for
  module->Wait();
  EXPECT_TRUE(module->ready());
  EXPECT_TRUE(module->status().ok()) << module->status();
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
}

TEST_F(CubinTableTest, ABackgroundThreadNeedsNoWaiter) {
  const auto module = NewTable()->Compile(Kernels(2), /*wait=*/false);
  while (!module->ready()) std::this_thread::yield();
  EXPECT_TRUE(module->status().ok()) << module->status();
}

TEST_F(CubinTableTest, CompilesOnceForAllWhoAsk) {
  CubinTable* const table = NewTable();
  const auto first = table->Compile(Kernels(2), /*wait=*/false);
  const auto second = table->Compile(Kernels(2), /*wait=*/true);
  EXPECT_TRUE(first->ready());
  EXPECT_EQ(Compiled(), 2);
  EXPECT_EQ(first->Function(1), second->Function(1));
}

TEST_F(CubinTableTest, CompilesManyKernelsInFewPrograms) {
  CheckLoads(NewTable(), Kernels(20));
  EXPECT_EQ(Compiled(), 20);
  EXPECT_LE(loads, 4);
  EXPECT_EQ(Files(".cubin").size(), static_cast<size_t>(loads));
}

TEST_F(CubinTableTest, DearKernelsAreSpreadOverPrograms) {
  std::vector<codegen::Kernel> kernels = Kernels(4);
  for (int k = 0; k < 2; ++k) kernels[k].source += "\n//" + std::string(1000, 'x');
  std::mutex mutex;
  std::vector<std::set<std::string>> programs;
  const CubinTable::Load load = [&](const std::string& cubin, absl::Span<BlockKernel* const> loaded) {
    const std::lock_guard<std::mutex> lock(mutex);
    programs.emplace_back();
    for (const BlockKernel* const kernel : loaded) programs.back().insert(kernel->name);
    return FakeLoad(cubin, loaded);
  };
  CheckLoads(NewTable("sm_90", load), kernels);
  for (const std::set<std::string>& program : programs)
    EXPECT_FALSE(program.contains(kernels[0].name) && program.contains(kernels[1].name));
  EXPECT_EQ(programs.size(), std::min(4u, std::max(std::thread::hardware_concurrency(), 1u)));
}

TEST_F(CubinTableTest, ALongTextDoesNotWaitForItsTurn) {
  std::mutex mutex;
  std::vector<std::string> order;
  const CubinTable::Load load = [&](const std::string& cubin, absl::Span<BlockKernel* const> loaded) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const BlockKernel* const kernel : loaded) order.push_back(kernel->name);
    return FakeLoad(cubin, loaded);
  };
  CubinTable* const table = NewTable("sm_90", load);
  std::vector<codegen::Kernel> kernels = Kernels(400);
  codegen::Kernel text = kernels.back();
  kernels.pop_back();
  text.source += "\n//" + std::string(100'000, 'x');
  const auto others = table->Compile(kernels, /*wait=*/false);
  const auto module = table->Compile({text}, /*wait=*/false);
  while (!others->ready() || !module->ready()) std::this_thread::yield();  // nobody hurries any
  const auto place = std::ranges::find(order, text.name) - order.begin();
  EXPECT_LT(place, 200);  // the last but for this rule
}

TEST_F(CubinTableTest, ANewProcessFindsKernelsOnDisk) {
  CheckLoads(NewTable(), Kernels(3));
  const int64_t nanoseconds = base::Get(base::Counter::kCompileSeconds);
  EXPECT_GT(nanoseconds, 0);
  EXPECT_EQ(FromDisk(), 0);
  CheckLoads(NewTable(), Kernels(3));
  EXPECT_EQ(Compiled(), 3);
  EXPECT_EQ(FromDisk(), 3);
  EXPECT_EQ(base::Get(base::Counter::kCompileSeconds), nanoseconds);
}

TEST_F(CubinTableTest, ABrokenCubinIsRebuilt) {
  CheckLoads(NewTable(), Kernels(1));
  ASSERT_EQ(Files(".cubin").size(), 1u);
  std::filesystem::resize_file(Files(".cubin")[0], 100);
  CheckLoads(NewTable(), Kernels(1));
  EXPECT_EQ(FromDisk(), 0);
  EXPECT_EQ(Compiled(), 2);
}

TEST_F(CubinTableTest, AnotherArchitecturesCubinIsNotTaken) {
  CheckLoads(NewTable("sm_90"), Kernels(1));
  CheckLoads(NewTable("sm_80"), Kernels(1));
  EXPECT_EQ(FromDisk(), 0);
  EXPECT_EQ(Compiled(), 2);
}

TEST_F(CubinTableTest, AnErrorInTheTextIsAStatus) {
  CubinTable* const table = NewTable();
  codegen::Kernel broken = Kernels(1)[0];
  broken.name = "broken";
  const auto module = table->Compile({broken, {"worse", "this is no C++", 32, 1}}, /*wait=*/false);
  module->Wait();
  EXPECT_TRUE(module->ready());
  EXPECT_FALSE(module->status().ok());
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
  CheckLoads(table, Kernels(1));  // others are not touched by it
}

TEST_F(CubinTableTest, AKernelAtFaultCostsNoOther) {
  CubinTable* const table = NewTable();
  std::vector<codegen::Kernel> kernels = Kernels(20);
  kernels[13].source = "static int unused;\n#error no such luck\n" + kernels[13].source;
  for (const bool again : {false, true}) {  // it stays at fault
    const auto module = table->Compile(kernels, /*wait=*/!again);
    ASSERT_TRUE(module->ready());
    EXPECT_TRUE(absl::IsInvalidArgument(module->status()));
    for (int k = 0; k < 20; ++k) {
      EXPECT_EQ(module->StatusOf(k).ok(), k != 13) << module->StatusOf(k);
      EXPECT_EQ(static_cast<const BlockKernel*>(module->Function(k))->one != nullptr, k != 13);
    }
    EXPECT_THAT(std::string(module->StatusOf(13).message()), testing::HasSubstr("no such luck"));
    EXPECT_THAT(std::string(module->StatusOf(13).message()), testing::Not(testing::HasSubstr("warning")));
  }
  EXPECT_EQ(base::Get(base::Counter::kKernelsFailed), 1);
  EXPECT_EQ(Compiled(), 19);
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
  base::ResetMetrics();
  EXPECT_FALSE(NewTable()->Compile(kernels, /*wait=*/true)->StatusOf(13).ok());
  EXPECT_EQ(FromDisk(), 19);
  EXPECT_EQ(Compiled(), 0);
}

TEST_F(CubinTableTest, AKernelThatCannotBeLoadedCostsNoOther) {
  const auto load = [](const std::string& cubin, absl::Span<BlockKernel* const> kernels) {
    for (const BlockKernel* kernel : kernels) {
      if (kernel->name == "write_3") return absl::InvalidArgumentError("too many registers");
    }
    return FakeLoad(cubin, kernels);
  };
  const auto module = NewTable("sm_90", load)->Compile(Kernels(8), /*wait=*/true);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(module->StatusOf(k).ok(), k != 3);
  EXPECT_EQ(base::Get(base::Counter::kKernelsFailed), 1);
}

TEST_F(CubinTableTest, WhatTheMachineLacksIsNoKernelsFault) {
  const auto module = NewTable("sm_1")->Compile(Kernels(2), /*wait=*/true);  // no such GPU
  EXPECT_FALSE(module->status().ok());
  EXPECT_FALSE(absl::IsInvalidArgument(module->status()));
  EXPECT_EQ(base::Get(base::Counter::kKernelsFailed), 2);
}

TEST_F(CubinTableTest, WhatCannotBeLoadedIsAStatusAndNotKept) {
  const auto refuse = [](const std::string&, absl::Span<BlockKernel* const>) {
    return absl::InternalError("no device for it");
  };
  const auto module = NewTable("sm_90", refuse)->Compile(Kernels(1), /*wait=*/true);
  EXPECT_THAT(std::string(module->status().message()), testing::HasSubstr("no device for it"));
  EXPECT_TRUE(Files(".cubin").empty());
}

TEST_F(CubinTableTest, WordsAreKept) {
  NewTable()->Keep("key", "word");
  EXPECT_EQ(NewTable()->Recall("key"), "word");
  EXPECT_EQ(NewTable("sm_80")->Recall("key"), "");
}

using CubinTableDeath = CubinTableTest;

TEST_F(CubinTableDeath, ExitsWhileKernelsAreCompiled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        NewTable()->Compile(Kernels(64), /*wait=*/false);  // eight programs
        while (base::Get(base::Counter::kCompilesPending) == 64) std::this_thread::yield();
        exit(base::Get(base::Counter::kCompilesPending) > 0 ? 3 : 4);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace torch_lazy::backends
