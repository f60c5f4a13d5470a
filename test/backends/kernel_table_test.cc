// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "backends/cpu/compiler.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/launch.h"
#include "backends/disk/places.h"
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
  static void SetFolder(const std::string& path) { SetOptionAnew("cache_dir", path); }
  static void SetCompiler(const std::string& program) { SetOptionAnew("compiler", program); }
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

  // In the file's place, as the file itself may be loaded here.
  static void Truncate(const std::string& path) {
    const std::string bytes = ReadFile(path).substr(0, 100);
    ASSERT_TRUE(WriteFile(path + ".part", bytes).ok());
    ASSERT_EQ(rename((path + ".part").c_str(), path.c_str()), 0);
  }

  std::string folder_;
};

TEST_F(Compile, InTheBackground) {
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(1);
  const std::shared_ptr<Module> module = table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
  EXPECT_EQ(Compiled(), 1);  // counted when asked for
  module->Wait();
  CheckRuns(*module, 1);
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
}

TEST_F(Compile, OnceForAllWhoAsk) {
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(2);
  const std::shared_ptr<Module> first = table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
  const std::shared_ptr<Module> second = table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
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

// So that a program's end costs few.
TEST_F(Compile, InTheBackgroundFewAtATime) {
  KernelTable* const table = NewTable();
  std::vector<codegen::Kernel> kernels;
  for (int k = 200; k < 217; ++k) kernels.push_back(CountFrom(k));
  const std::shared_ptr<Module> module = table->Compile(kernels, /*wait=*/false);
  module->Wait();
  ASSERT_TRUE(module->status().ok()) << module->status();
  EXPECT_EQ(Files(".so").size(), 3u);
}

// To start a compiler takes longer than most kernels do.
TEST_F(Compile, InTheBackgroundWhatWaitsForACompilerSharesTheNext) {
  const std::string slow = NewFolder() + "/slow_compiler";
  ASSERT_TRUE(WriteFile(slow, "#!/bin/sh\nsleep 1\nexec c++ \"$@\"\n").ok());
  ASSERT_EQ(chmod(slow.c_str(), 0700), 0);
  SetCompiler(slow);
  KernelTable* const table = NewTable();
  std::vector<std::shared_ptr<Module>> modules;
  for (int k = 220; k < 230; ++k) {
    const codegen::Kernel kernel = CountFrom(k);
    modules.push_back(table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false));
    if (k == 220) absl::SleepFor(absl::Milliseconds(300));  // its compiler has begun
  }
  for (int k = 0; k < 10; ++k) {
    modules[k]->Wait();
    CheckRuns(*modules[k], 220 + k);
  }
  EXPECT_EQ(Files(".so").size(), 3u);  // of one kernel, of eight, and of one
}

TEST_F(Compile, KernelsAreKnownByTheirNames) {
  EXPECT_FALSE(NewTable()->HasKernels({"count_from_31"}));
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(31);
  table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  EXPECT_TRUE(table->HasKernels({"count_from_31"}));       // in memory
  EXPECT_TRUE(NewTable()->HasKernels({"count_from_31"}));  // on disk
  EXPECT_FALSE(NewTable()->HasKernels({"count_from_31", "count_from_32"}));
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
  Truncate(Files(".so")[0]);
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
  std::filesystem::last_write_time(old_file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
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
  const std::string link = absl::StrCat(folder_, "/link"), target = absl::StrCat(folder_, "/target");
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

// What another user has put, or may put, in the place of an entry is made anew.
TEST_F(Compile, EntriesThatOthersCanWriteAreNotLoaded) {
  const auto spoil = [&](int value, auto spoiled) {
    CheckWorks(value);
    for (const std::string& file : Files(".so")) spoiled(file);
    base::ResetMetrics();
    CheckWorks(value);
    EXPECT_EQ(FromDisk(), 0);
    EXPECT_EQ(Compiled(), 1);
  };
  spoil(20, [](const std::string& file) { ASSERT_EQ(chmod(file.c_str(), 0666), 0); });
  spoil(21, [&](const std::string& file) {
    const std::string elsewhere = absl::StrCat(NewFolder(), "/code.so");
    ASSERT_EQ(rename(file.c_str(), elsewhere.c_str()), 0);
    ASSERT_EQ(symlink(elsewhere.c_str(), file.c_str()), 0);
  });
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  spoil(22, [](const std::string& file) { ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0); });
}

TEST_F(Compile, AFolderInTheCacheThatIsAnothersIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  CheckWorks(31);
  const std::filesystem::path folder = std::filesystem::path(Files(".so")[0]).parent_path();
  for (const std::filesystem::path& given : {folder, folder / "locks"}) {
    ASSERT_EQ(chown(given.c_str(), 65534, 65534), 0);
    base::ResetMetrics();
    CheckWorks(31);
    EXPECT_EQ(FromDisk(), 0);
    EXPECT_EQ(Compiled(), 1);
    ASSERT_EQ(chown(given.c_str(), 0, 0), 0);
  }
}

// Whoever owns a folder above the cache can put another one in its place at any time.
TEST_F(Compile, AFolderBelowOneThatOthersWriteIsNotUsed) {
  const std::string open = absl::StrCat(folder_, "/open"), cache = absl::StrCat(open, "/cache");
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  SetFolder(cache);
  CheckWorks(23);
  EXPECT_TRUE(std::filesystem::is_empty(cache));
}

TEST_F(Compile, AFolderThatIsPutInTheCachesPlaceIsNotLookedInto) {
  CheckWorks(24);
  KernelTable* const table = NewTable();
  const codegen::Kernel before = CountFrom(24);
  CheckRuns(*table->Compile(absl::MakeConstSpan(&before, 1), /*wait=*/true), 24);
  EXPECT_EQ(FromDisk(), 1);
  CheckWorks(25);  // for the other folder
  std::filesystem::copy(folder_, folder_ + "-copy", std::filesystem::copy_options::recursive);
  const std::string moved = folder_ + "-moved";
  ASSERT_EQ(rename(folder_.c_str(), moved.c_str()), 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(moved)) {
    if (entry.path().extension() == ".index") std::filesystem::remove(entry.path());
  }
  ASSERT_EQ(rename((folder_ + "-copy").c_str(), folder_.c_str()), 0);
  base::ResetMetrics();
  const codegen::Kernel after = CountFrom(25);
  CheckRuns(*table->Compile(absl::MakeConstSpan(&after, 1), /*wait=*/true), 25);
  EXPECT_EQ(FromDisk(), 0);
}

TEST_F(Compile, ACacheThatIsClosedToWritingIsRead) {
  CheckWorks(26);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    ASSERT_EQ(chmod(entry.path().c_str(), entry.is_directory() ? 0555 : 0444), 0);
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  // What the first compiler had on the way may go while the test looks; nothing may come.
  const auto entries = [&] {
    std::set<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) paths.insert(entry.path());
    return paths;
  };
  const std::set<std::string> before = entries();
  testing::internal::CaptureStderr();
  CheckWorks(26);
  EXPECT_EQ(FromDisk(), 1);
  CheckWorks(27);
  EXPECT_EQ(Compiled(), 2);
  EXPECT_THAT(entries(), testing::IsSubsetOf(before));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Compile, ACacheThatOthersMayReadIsReadOnly) {
  CheckWorks(28);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  CheckWorks(28);
  EXPECT_EQ(FromDisk(), 1);
  CheckWorks(29);
  EXPECT_EQ(Files(".so").size(), 1u);
}

TEST_F(Compile, ATemporaryFolderThatIsNotThereIsPassedOver) {
  const std::string before = base::Environment("TMPDIR");
  for (const std::string& place : {folder_ + "/missing", std::string("relative")}) {
    ASSERT_EQ(setenv("TMPDIR", place.c_str(), 1), 0);
    EXPECT_EQ(*TemporaryPlace(), "/tmp");
  }
  ASSERT_EQ(setenv("TMPDIR", (folder_ + "/missing").c_str(), 1), 0);
  CheckWorks(30);
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

TEST_F(Compile, AFolderOrARelativePathIsNoCompiler) {
  const std::string folder = absl::StrCat(folder_, "/g++");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  for (const char* program : {folder.c_str(), "./g++", "bin/g++"}) {
    SetCompiler(program);
    EXPECT_TRUE(absl::IsNotFound(FindCompiler().status())) << program;
  }
}

TEST_F(Compile, AnErrorInTheSourceIsAStatus) {
  KernelTable* const table = NewTable();
  const codegen::Kernel broken = {"broken", "this is no C++\n"};
  const std::shared_ptr<Module> module = table->Compile(absl::MakeConstSpan(&broken, 1), /*wait=*/true);
  EXPECT_TRUE(module->ready());
  EXPECT_THAT(std::string(module->status().message()), testing::HasSubstr("the C++ compiler failed"));
  const codegen::Kernel good = CountFrom(12);  // others are not touched by it
  CheckRuns(*table->Compile(absl::MakeConstSpan(&good, 1), /*wait=*/true), 12);
}

TEST_F(Compile, WhatCannotBeLoadedIsAStatusAndNotKept) {
  const codegen::Kernel misnamed = {"misnamed", "extern \"C\" void other() {}\n"};
  const auto module = NewTable()->Compile(absl::MakeConstSpan(&misnamed, 1), /*wait=*/true);
  EXPECT_THAT(std::string(module->status().message()), testing::HasSubstr("no symbol misnamed"));
  EXPECT_TRUE(Files(".so").empty());
}

// As text, or when it is loaded.
TEST_F(Compile, AKernelAtFaultCostsNoOther) {
  KernelTable* const table = NewTable();
  std::vector<codegen::Kernel> kernels;
  for (int k = 200; k < 220; ++k) kernels.push_back(CountFrom(k));
  kernels[5] = {"wrong", "int unused() { int i; return 0; }\n#error no such luck\n"};
  kernels[17] = {"alone", "extern \"C\" void nobody_has_this();\nextern \"C\" void alone() { nobody_has_this(); }\n"};
  for (const bool again : {false, true}) {  // they stay at fault
    const std::shared_ptr<Module> module = table->Compile(kernels, /*wait=*/!again);
    ASSERT_TRUE(module->ready());
    EXPECT_TRUE(absl::IsInvalidArgument(module->status()));
    for (int k = 0; k < 20; ++k) {
      const bool is_good = k != 5 && k != 17;
      EXPECT_EQ(module->StatusOf(k).ok(), is_good) << module->StatusOf(k);
      EXPECT_EQ(module->Function(k) != nullptr, is_good);
    }
    EXPECT_THAT(std::string(module->StatusOf(5).message()), testing::HasSubstr("no such luck"));
    EXPECT_THAT(std::string(module->StatusOf(17).message()), testing::HasSubstr("nobody_has_this"));
  }
  EXPECT_EQ(base::Get(base::Counter::kKernelsFailed), 2);
  EXPECT_EQ(Compiled(), 18);
  EXPECT_EQ(base::Get(base::Counter::kCompilesPending), 0);
}

TEST_F(Compile, InTheBackgroundAKernelAtFaultCostsNoOther) {
  const std::vector<codegen::Kernel> kernels = {CountFrom(220), {"wrong", "#error no such luck\n"}, CountFrom(222)};
  const std::shared_ptr<Module> module = NewTable()->Compile(kernels, /*wait=*/false);
  module->Wait();
  EXPECT_FALSE(module->StatusOf(1).ok());
  EXPECT_TRUE(module->StatusOf(0).ok() && module->StatusOf(2).ok());
  CheckRuns(*NewTable()->Compile(absl::MakeConstSpan(kernels.data() + 2, 1), /*wait=*/true), 222);
  EXPECT_EQ(FromDisk(), 1);
}

TEST_F(Compile, ACompilerThatFailsAlwaysIsNoKernelsFault) {
  SetCompiler("/bin/false");
  const std::vector<codegen::Kernel> kernels = {CountFrom(230), CountFrom(231)};
  const std::shared_ptr<Module> module = NewTable()->Compile(kernels, /*wait=*/true);
  EXPECT_FALSE(module->status().ok());
  EXPECT_FALSE(absl::IsInvalidArgument(module->status()));
  EXPECT_EQ(base::Get(base::Counter::kKernelsFailed), 2);
  EXPECT_EQ(Compiled(), 0);
}

TEST_F(Compile, WithoutACompilerTheStatusSaysSo) {
  SetCompiler("/no/such/compiler");
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(13);
  const std::shared_ptr<Module> module = table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  EXPECT_TRUE(module->ready());
  EXPECT_THAT(std::string(module->status().message()), testing::HasSubstr("/no/such/compiler"));
  SetCompiler("");  // one is installed: the next to ask gets the kernel
  CheckRuns(*table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true), 13);
}

TEST_F(Compile, ACompilerThatGivesNoLibraryIsAStatus) {
  SetCompiler("/bin/true");
  KernelTable* const table = NewTable();
  const codegen::Kernel kernel = CountFrom(14);
  const std::shared_ptr<Module> module = table->Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/false);
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
