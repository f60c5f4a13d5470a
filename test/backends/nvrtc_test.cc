// SPDX-License-Identifier: Apache-2.0
#include "test/backends/nvrtc.h"

#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "backends/blocks/block_kernel.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/library.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/backends/block_kernels.h"

namespace torch_lazy::backends {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(Nvrtc, CompilesForEachArchitectureWithoutAGpu) {
  LAZY_ASSERT_NVRTC();
  const cuda::Nvrtc& nvrtc = **cuda::Nvrtc::Find();
  for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
    for (const codegen::Kernel& kernel : {ScaleKernel(), RowSumKernel(), WarpKernel(), WordsKernel()}) {
      const absl::StatusOr<std::string> cubin = nvrtc.Compile(InNamespace(kernel), arch);
      ASSERT_TRUE(cubin.ok()) << arch << ": " << cubin.status();
      EXPECT_EQ(cubin->substr(0, 4),
                "\x7f"
                "ELF");
      EXPECT_THAT(*cubin, HasSubstr(kernel.name + "_many"));
    }
  }
}

TEST(Nvrtc, SaysWhatIsWrongWithAText) {
  LAZY_ASSERT_NVRTC();
  const absl::Status status = (*cuda::Nvrtc::Find())->Compile("int f() { return misspelt; }", "sm_90").status();
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("NVRTC"), HasSubstr("kernels.cu(1)"), HasSubstr("\"misspelt\" is undefined")));
}

TEST(Nvrtc, SaysThatItDoesNotKnowAnArchitecture) {
  LAZY_ASSERT_NVRTC();
  const absl::Status status = (*cuda::Nvrtc::Find())->Compile("", "sm_12345").status();
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("sm_12345"), HasSubstr("architecture")));
}

TEST(Nvrtc, CompilesOnSeveralThreads) {
  LAZY_ASSERT_NVRTC();
  std::vector<absl::StatusOr<std::string>> cubins(4);
  std::vector<std::thread> threads;
  for (absl::StatusOr<std::string>& cubin : cubins) {
    threads.emplace_back([&cubin] { cubin = (*cuda::Nvrtc::Find())->Compile(InNamespace(RowSumKernel()), "sm_90"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& cubin : cubins) {
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_EQ(*cubin, *cubins[0]);
  }
}

TEST(Nvrtc, IsTheOneThatTheUserNamesOrNone) {
  ASSERT_EQ(setenv("LAZY_NVRTC_PATH", "/no/such/libnvrtc.so", 1), 0);
  const absl::Status status = cuda::Nvrtc::FindLibrary().status();
  unsetenv("LAZY_NVRTC_PATH");
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("NVRTC"), HasSubstr("LAZY_NVRTC_PATH"), HasSubstr("/no/such/libnvrtc.so")));
}

TEST(Library, AMissingOneIsNamedWithWhatWasTried) {
  const absl::Status status = OpenLibrary({"libno_such.so.1", "libnone.so"}, "CUDA's driver").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("CUDA's driver was not found"),
                                       HasSubstr("libno_such.so.1, libnone.so"), HasSubstr("LD_LIBRARY_PATH=")));
}

TEST(Library, AnOpenOneTellsItsFolder) {
  EXPECT_EQ(FolderOfOpenLibrary("libno_such.so.1"), "");
  EXPECT_EQ(FindOpenLibrary("libno_such.so.1"), nullptr);
  const std::string folder = FolderOfOpenLibrary("libc.so.6");
  EXPECT_TRUE(std::filesystem::exists(folder + "/libc.so.6")) << folder;
  EXPECT_NE(FindOpenLibrary("libc.so.6"), nullptr);
}

TEST(Driver, IsThereOrTheErrorNamesIt) {
  const absl::StatusOr<const cuda::Driver*> driver = cuda::FindDriver();
  if (driver.ok()) {
    EXPECT_NE((*driver)->LaunchKernel, nullptr);
  } else {
    EXPECT_THAT(MessageOf(driver.status()), testing::AnyOf(HasSubstr("libcuda.so.1"), HasSubstr("cuInit")));
  }
}

}  // namespace
}  // namespace torch_lazy::backends
