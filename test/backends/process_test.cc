// SPDX-License-Identifier: Apache-2.0
// The process that compiles: its limits, what it leaves, and that it outlives the program.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/compile/job.h"
#include "backends/compile/left_work.h"
#include "backends/cpu/compiler.h"
#include "backends/cpu/kernel_table.h"
#include "backends/disk/disk_cache.h"
#include "backends/disk/files.h"
#include "backends/disk/temporary_folder.h"
#include "base/flags.h"
#include "codegen/plan/kernel_note.h"
#include "test/backends/kernel.h"

namespace torch_lazy::backends {
namespace {

using testing::HasSubstr;

class CompilerProcess : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir(temporary_.c_str(), 0700), 0);
    ASSERT_EQ(setenv("TMPDIR", temporary_.c_str(), 1), 0);
  }
  void TearDown() override {
    SetOptionAnew("compiler", "");
    unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }

  // A shell script in the compiler's place.
  void UseScript(const std::string& lines) {
    const std::string path = absl::StrCat(folder_, "/compiler");
    ASSERT_TRUE(WriteFile(path, absl::StrCat("#!/bin/sh\n", lines, "\n")).ok());
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
    SetOptionAnew("compiler", path);
  }
  Order NewOrder() const {
    Order order;
    const absl::StatusOr<Compiler> compiler = FindCompiler();
    EXPECT_TRUE(compiler.ok()) << compiler.status();
    order.command = compiler->command;
    order.cache_root = absl::StrCat(folder_, "/cache");
    order.cache_key = compiler->key;
    return order;
  }
  absl::StatusOr<std::string> Compile() const {
    CompileJob job({CountFrom(1)});
    job.Start(NewOrder(), /*idle=*/false);
    return job.Finish();
  }
  // A program that starts to compile and is killed.
  void StartAndDie() const {
    const pid_t program = fork();
    if (program == 0) {
      CompileJob job({CountFrom(1)});
      job.Start(NewOrder(), /*idle=*/true);
      while (!std::filesystem::exists(folder_ + "/begun")) absl::SleepFor(absl::Milliseconds(1));
      kill(getpid(), SIGKILL);
    }
    EndsWithin(program, absl::InfiniteDuration());
    EndChild(program).IgnoreError();
  }
  bool IsKept() const {
    return DiskCache(folder_ + "/cache", kLibraries, NewOrder().cache_key).Find(CountFrom(1)).ok();
  }
  template <typename Condition>
  static bool Comes(Condition condition) {
    for (int tries = 0; tries < 3000 && !condition(); ++tries) absl::SleepFor(absl::Milliseconds(10));
    return condition();
  }
  bool IsClean() const { return std::filesystem::is_empty(temporary_); }

  const std::string folder_ = NewFolder();
  const std::string temporary_ = folder_ + "/tmp";
};

TEST_F(CompilerProcess, GivesTheCodeAndKeepsIt) {
  const absl::StatusOr<std::string> code = Compile();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->substr(1, 3), "ELF");
  EXPECT_TRUE(IsKept());
  EXPECT_TRUE(IsClean());
}

TEST_F(CompilerProcess, IsLimited) {
  UseScript(absl::StrCat("ulimit -v >", folder_, "/limits; ulimit -t >>", folder_, "/limits; ulimit -c >>", folder_,
                         "/limits; exit 1"));
  EXPECT_FALSE(Compile().ok());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(ReadFile(folder_ + "/limits"), "4194304\n300\n0\n");
#endif
}

TEST_F(CompilerProcess, SaysWhatTheCompilerSaid) {
  UseScript("echo what is wrong; exit 5");
  const absl::Status status = Compile().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("exit status 5"), HasSubstr("what is wrong")));
}

TEST_F(CompilerProcess, RemovesWhatTheCompilerLeaves) {
  UseScript("touch $TMPDIR/left; kill -9 $$");
  EXPECT_THAT(std::string(Compile().status().message()), HasSubstr("ended by signal 9"));
  EXPECT_TRUE(IsClean());
}

TEST_F(CompilerProcess, KeepsWhatIsReadyAfterTheProgramsEnd) {
  UseScript(absl::StrCat("touch ", folder_, "/begun; sleep 0.5; exec g++ \"$@\""));
  StartAndDie();
  EXPECT_FALSE(IsKept());
  EXPECT_TRUE(Comes([&] { return IsKept() && IsClean(); }));
}

TEST_F(CompilerProcess, EndsSoonAfterTheProgramsEnd) {
  const std::string process = folder_ + "/process";
  UseScript(
      absl::StrCat("trap '' TERM; echo $$ >", process, "; touch ", folder_, "/begun; while true; do sleep 1000; done"));
  StartAndDie();
  const absl::Time killed_at = absl::Now();
  const pid_t compiler = std::atoi(ReadFile(process).c_str());
  ASSERT_GT(compiler, 1);
  EXPECT_TRUE(Comes([&] { return IsClean() && kill(compiler, 0) != 0; }));
  EXPECT_GT(absl::Now() - killed_at, absl::Seconds(5));  // it had its time
}

// A program that ends with a graph that is not planned, and a kernel that waits for a compiler.
TEST_F(CompilerProcess, DoesWhatAProgramHasLeft) {
  const pid_t program = fork();
  if (program == 0) {
    Order order = NewOrder();
    order.kernels = {CountFrom(1)};
    order.others = {CountFrom(1).name, "another"};
    LeaveBehind(std::move(order),
                {{"graph @g(%x: f32[s0]) {\n  %0 = exp %x : f32[s0]\n  return %0\n}", {1000}, "its kernels"}});
    _exit(0);
  }
  EndsWithin(program, absl::InfiniteDuration());
  EndChild(program).IgnoreError();
  const auto kernels = [&] {
    return codegen::KernelsNamed(DiskCache(folder_ + "/cache", kLibraries, NewOrder().cache_key).Recall("its kernels"));
  };
  ASSERT_TRUE(Comes([&] { return kernels().has_value(); }));
  ASSERT_EQ(kernels()->size(), 1u);
  const auto is_kept = [&](const std::string& kernel) {
    return DiskCache(folder_ + "/cache", kLibraries, NewOrder().cache_key).Names(kernel);
  };
  EXPECT_TRUE(Comes([&] { return is_kept(kernels()->front()) && IsKept() && IsClean(); }));
}

// More than one batch.
TEST_F(CompilerProcess, CompilesWhatWaitedForACompiler) {
  constexpr int kKernels = 20;
  std::vector<codegen::Kernel> kernels;
  std::vector<std::string> names;
  for (int k = 0; k < kKernels; ++k) names.push_back(kernels.emplace_back(CountFrom(k)).name);
  SetOptionAnew("cache_dir", folder_ + "/cache");
  const pid_t program = fork();
  if (program == 0) {
    auto* const table = new KernelTable;
    table->Compile(kernels, /*wait=*/false);
    table->LeaveBehind({});
    _exit(0);
  }
  EndsWithin(program, absl::InfiniteDuration());
  EndChild(program).IgnoreError();
  EXPECT_TRUE(Comes([&] { return (new KernelTable)->HasKernels(names) && IsClean(); }));
}

TEST_F(CompilerProcess, LeftFoldersAreSwept) {
  const auto make = [&](const std::string& name, bool is_old) {
    const std::string path = absl::StrCat(temporary_, "/", name);
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_TRUE(WriteFile(path + "/kernels.cc", "text").ok());
    const timespec times[] = {{1000, 0}, {1000, 0}};
    if (is_old) {
      EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    }
    return path;
  };
  const std::string left = make("torch_lazy-aB3dEf", true);
  const std::string held = make("torch_lazy-held12", true);
  make("torch_lazy-recent", false);
  make("torch_lazy-longer1", true);
  make("torch_other-aB3dE", true);
  std::filesystem::create_directory_symlink(make("elsewhere", true), temporary_ + "/torch_lazy-linked");
  const int lock = open(held.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  SweepTemporaryFolders();
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const char* const name : {"held12", "recent", "longer1", "linked"})
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(temporary_, "/torch_lazy-", name, "/kernels.cc"))) << name;
  EXPECT_TRUE(std::filesystem::exists(temporary_ + "/torch_other-aB3dE"));
  close(lock);
  SweepTemporaryFolders();
  EXPECT_FALSE(std::filesystem::exists(held));
}

// Others could move a folder of ours there.
TEST_F(CompilerProcess, AFolderThatOthersMayWriteIsNotSwept) {
  const std::string moved = temporary_ + "/torch_lazy-aB3dEf";
  ASSERT_EQ(mkdir(moved.c_str(), 0700), 0);
  const timespec times[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, moved.c_str(), times, 0), 0);
  ASSERT_EQ(chmod(temporary_.c_str(), 0777), 0);
  SweepTemporaryFolders();
  EXPECT_TRUE(std::filesystem::exists(moved));
  ASSERT_EQ(chmod(temporary_.c_str(), 0700), 0);
  SweepTemporaryFolders();
  EXPECT_FALSE(std::filesystem::exists(moved));
}

TEST_F(CompilerProcess, ALivingFolderIsNotSwept) {
  const TemporaryFolder folder = *TemporaryFolder::Make();
  const timespec times[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, folder.path().c_str(), times, 0), 0);
  SweepTemporaryFolders();
  EXPECT_TRUE(std::filesystem::exists(folder.path()));
}

TEST_F(CompilerProcess, AMissingTemporaryFolderCostsNoKernel) {
  ASSERT_EQ(setenv("TMPDIR", "/no/such/folder", 1), 0);
  EXPECT_TRUE(Compile().ok());
}

TEST(CompileOrder, IsTheSameAfterwards) {
  Order order;
  order.language = Order::Language::kCuda;
  order.command = {"a file", "", "sm_90"};
  order.cache_key = std::string("zero \0 and\nline", 15);
  order.process = 12;
  order.kernels = {CountFrom(1), {"empty", ""}};
  order.is_left = true;
  order.graphs = {{"graph", {7, -1}, "note"}, {}};
  order.others = {"a", ""};
  order.disabled = "cse";
  const absl::StatusOr<Order> read = OrderFrom(TextOf(order));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->language, order.language);
  EXPECT_EQ(read->command, order.command);
  EXPECT_EQ(read->cache_key, order.cache_key);
  EXPECT_EQ(read->process, 12);
  EXPECT_TRUE(read->is_left);
  ASSERT_EQ(read->graphs.size(), 2u);
  EXPECT_EQ(read->graphs[0].text, "graph");
  EXPECT_EQ(read->graphs[0].numbers, (std::vector<int64_t>{7, -1}));
  EXPECT_EQ(read->graphs[0].note, "note");
  EXPECT_EQ(read->others, order.others);
  EXPECT_EQ(read->disabled, "cse");
  ASSERT_EQ(read->kernels.size(), 2u);
  EXPECT_EQ(read->kernels[0].source, order.kernels[0].source);
  EXPECT_EQ(read->kernels[1].name, "empty");
}

TEST(CompileOrder, ADamagedOneIsRefused) {
  Order order;
  order.command = {"g++"};
  order.kernels = {CountFrom(1)};
  const std::string text = TextOf(order);
  for (size_t size = 0; size < text.size(); ++size) {
    const absl::StatusOr<Order> read = OrderFrom(text.substr(0, size));
    EXPECT_TRUE(!read.ok() || read->kernels.empty()) << size;
  }
  EXPECT_FALSE(OrderFrom("99999999999999999999 x").ok());
  EXPECT_FALSE(OrderFrom("-1 x").ok());
}

TEST(CompileOrder, ResultsAreTheSameAfterwards) {
  const Compiled good = CompiledFrom(TextOf({"code", absl::UnavailableError("full")}));
  ASSERT_TRUE(good.code.ok()) << good.code.status();
  EXPECT_EQ(*good.code, "code");
  EXPECT_EQ(good.kept.message(), "full");
  EXPECT_TRUE(CompiledFrom(TextOf({"code", absl::OkStatus()})).kept.ok());
  const absl::Status error = absl::InvalidArgumentError("why");
  EXPECT_EQ(CompiledFrom(TextOf({error, absl::OkStatus()})).code.status(), error);
  EXPECT_FALSE(CompiledFrom("").code.ok());
}

}  // namespace
}  // namespace torch_lazy::backends
