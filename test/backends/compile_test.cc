// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/launch.h"
#include "base/flags.h"
#include "base/metrics.h"
#include "test/backends/kernel.h"

namespace torch_lazy::backends {
namespace {

// A fresh table is what a new process has: nothing in memory, the disk as it is.
class Compile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = NewFolder();
    SetFolder(folder_);
    SetCompiler("");
    base::ResetMetrics();
  }
  static void SetFolder(const std::string& path) {
    ASSERT_TRUE(base::SetOption("cache_dir", path).ok());
  }
  static void SetCompiler(const std::string& program) {
    ASSERT_TRUE(base::SetOption("compiler", program).ok());
  }
  static int64_t Compiled() { return base::Get(base::Counter::kKernelsCompiled); }
  static int64_t FromDisk() { return base::Get(base::Counter::kKernelsFromDisk); }

  // Tables live as long as the process: they may have a thread.
  static KernelTable* NewTable() {
    static auto& tables = *new std::vector<KernelTable*>;
    tables.push_back(new KernelTable);
    return tables.back();
  }

  // Compiles on a new table and runs; the kernel must be right.
  static void CheckWorks(int value) {
    KernelTable* const table = NewTable();
    const codegen::Kernel kernel = CountFrom(value);
    CheckRuns(*table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true), value);
  }
  static void CheckRuns(const Module& module, int value) {
    ASSERT_TRUE(module.ready());
    ASSERT_TRUE(module.status().ok()) << module.status();
    std::vector<int64_t> numbers(100);
    void* pointer = numbers.data();
    const BoundInstance instance = Bind(module.Function(0), &pointer, 100);
    EXPECT_TRUE(LaunchOnCpu(absl::MakeConstSpan(&instance, 1)).ok());
    EXPECT_EQ(numbers, Counted(value, 100));
  }
  std::vector<std::string> Files(const std::string& ending) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == ending) files.push_back(entry.path());
    }
    return files;
  }

  std::string folder_;
};

TEST_F(Compile, InTheBackground) {
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(1);
  const std::shared_ptr<Module> module =
      table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
  EXPECT_EQ(Compiled(), 1);  // counted when asked for
  module->Wait();
  CheckRuns(*module, 1);
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
}

TEST_F(Compile, OnceForAllWhoAsk) {
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(2);
  const std::shared_ptr<Module> first =
      table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
  const std::shared_ptr<Module> second =
      table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  first->Wait();
  EXPECT_EQ(Compiled(), 1);
  EXPECT_EQ(first->Function(0), second->Function(0));
}

TEST_F(Compile, ManyKernelsInOneModule) {
  KernelTable* const table = NewTable();
  std::vector<codegen::Kernel> kernels;
  for (int k = 100; k < 130; ++k) kernels.push_back(CountFrom(k));
  const std::shared_ptr<Module> module = table->Compile(kernels, /*wait=*/true);
  ASSERT_TRUE(module->status().ok()) << module->status();
  for (int k = 0; k < 30; ++k) EXPECT_NE(module->Function(k), nullptr);
  EXPECT_LE(Files(".so").size(), 2u);
}

TEST_F(Compile, ANewProcessFindsKernelsOnDisk) {
  CheckWorks(3);
  EXPECT_EQ(FromDisk(), 0);
  CheckWorks(3);
  EXPECT_EQ(Compiled(), 1);
  EXPECT_EQ(FromDisk(), 1);
}

TEST_F(Compile, KeptFilesAreOursAlone) {
  CheckWorks(4);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    struct stat info = {};
    ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0u) << entry.path();
  }
  ASSERT_EQ(Files(".so").size(), 1u);
  ASSERT_EQ(Files(".index").size(), 1u);
}

TEST_F(Compile, ABrokenLibraryIsRebuilt) {
  CheckWorks(5);
  std::filesystem::resize_file(Files(".so")[0], 100);
  CheckWorks(5);
  EXPECT_EQ(FromDisk(), 0);
  EXPECT_EQ(Compiled(), 2);
  CheckWorks(5);
  EXPECT_EQ(FromDisk(), 1);
}

TEST_F(Compile, ABrokenIndexIsRebuilt) {
  CheckWorks(6);
  std::ofstream(Files(".index")[0]) << "nonsense\n";
  CheckWorks(6);
  EXPECT_EQ(FromDisk(), 0);
  EXPECT_EQ(Compiled(), 2);
}

TEST_F(Compile, WhatAKilledProcessHasLeftIsRemovedLater) {
  CheckWorks(16);
  const std::filesystem::path folder = std::filesystem::path(Files(".so")[0]).parent_path();
  const std::filesystem::path old_file = folder / "old.1.0.tmp", new_file = folder / "new.1.0.tmp";
  std::ofstream(old_file) << "half";
  std::ofstream(new_file) << "half";
  std::filesystem::last_write_time(
      old_file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  CheckWorks(17);
  EXPECT_FALSE(std::filesystem::exists(old_file));
  EXPECT_TRUE(std::filesystem::exists(new_file));  // its process may be at work
}

TEST_F(Compile, AnotherSourceOfTheSameNameIsNotTakenFromDisk) {
  CheckWorks(7);
  KernelTable* const table = NewTable();
  codegen::Kernel other = CountFrom(8);
  other.source = absl::StrCat("#define count_from_8 count_from_7\n", other.source);
  other.name = "count_from_7";
  CheckRuns(*table->Compile(absl::MakeConstSpan(&other, 1), /*wait=*/true), 8);
  EXPECT_EQ(FromDisk(), 0);
}

TEST_F(Compile, AFolderOpenToOthersIsNotUsed) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  testing::internal::CaptureStderr();
  CheckWorks(9);
  CheckWorks(9);
  EXPECT_EQ(Compiled(), 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  testing::internal::GetCapturedStderr();
}

TEST_F(Compile, ALinkInsteadOfAFolderIsNotUsed) {
  const std::string link = absl::StrCat(folder_, "/link"),
                    target = absl::StrCat(folder_, "/target");
  ASSERT_EQ(mkdir(target.c_str(), 0700), 0);
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  SetFolder(link);
  CheckWorks(10);
  EXPECT_TRUE(std::filesystem::is_empty(target));
}

TEST_F(Compile, AFileInsteadOfAFolderCostsNoResult) {
  SetFolder("/proc/version/cache");
  CheckWorks(11);
}

TEST_F(Compile, AnErrorInTheSourceIsAStatus) {
  KernelTable* const table = NewTable();
  const codegen::Kernel broken = {"broken", "this is no C++\n"};
  const std::shared_ptr<Module> module =
      table->Compile(absl::MakeConstSpan(&broken, 1), /*wait=*/true);
  EXPECT_TRUE(module->ready());
  EXPECT_THAT(std::string(module->status().message()),
              testing::HasSubstr("the C++ compiler failed"));
  const codegen::Kernel good = CountFrom(12);  // others are not touched by it
  CheckRuns(*table->Compile(absl::MakeConstSpan(&good, 1), /*wait=*/true), 12);
}

TEST_F(Compile, WithoutACompilerTheStatusSaysSo) {
  SetCompiler("/no/such/compiler");
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(13);
  const std::shared_ptr<Module> module =
      table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  EXPECT_TRUE(module->ready());
  EXPECT_THAT(std::string(module->status().message()), testing::HasSubstr("/no/such/compiler"));
  SetCompiler("");  // one is installed: the next to ask gets the kernel
  CheckRuns(*table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true), 13);
}

TEST_F(Compile, ACompilerThatGivesNoLibraryIsAStatus) {
  SetCompiler("/bin/true");
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(14);
  const std::shared_ptr<Module> module =
      table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
  module->Wait();
  EXPECT_FALSE(module->status().ok());
}

TEST_F(Compile, LeavesNoFilesBehind) {
  const std::string temporary = NewFolder();
  const std::string before = base::Environment("TMPDIR");
  ASSERT_EQ(setenv("TMPDIR", temporary.c_str(), 1), 0);
  CheckWorks(15);
  if (before.empty()) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", before.c_str(), 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

}  // namespace
}  // namespace torch_lazy::backends
