// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "base/check.h"
#include "base/flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

// A process chooses once, so each choice has a process of its own, which exits with 0 if `right`.
void CheckChoice(const char* option, bool (*right)(const absl::StatusOr<Backend*>&)) {
  EXPECT_EXIT(
      {
        if (!base::SetOption("backend", option).ok()) exit(2);
        exit(right(TryGet()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "")
      << option;
}

bool IsCpu(const absl::StatusOr<Backend*>& backend) {
  return backend.ok() && (*backend)->target() == codegen::Target::kCpu && (*backend)->computes() &&
         (*backend)->on_host();
}

TEST(Registry, TakesWhatTheOptionSays) {
  CheckChoice("cpu", IsCpu);
  CheckChoice("null", [](const auto& backend) { return backend.ok() && !(*backend)->computes(); });
  CheckChoice("null_cuda", [](const auto& backend) {
    return backend.ok() && !(*backend)->computes() && (*backend)->target() == codegen::Target::kCuda;
  });
  CheckChoice("stand_in", [](const auto& backend) {
    return backend.ok() && (*backend)->target() == codegen::Target::kCuda && (*backend)->on_host();
  });
}

TEST(Registry, TakesTheCpuWhereNobodyKnowsOfCuda) { CheckChoice("auto", IsCpu); }

TEST(Registry, TakesTheCpuWhereThereIsNoCuda) {
  SetCudaFinder([]() -> const CudaHost* { return nullptr; });
  CheckChoice("auto", IsCpu);
  SetCudaFinder(nullptr);
}

TEST(Registry, CudaWithoutADeviceIsAnErrorThatSaysSo) {
  CheckChoice("cuda", [](const absl::StatusOr<Backend*>& backend) {
    return !backend.ok() && backend.status().message().find("backend=cuda: PyTorch finds no CUDA") == 0;
  });
}

TEST(Registry, GetRaisesThatError) {
  EXPECT_EXIT(
      {
        if (!base::SetOption("backend", "cuda").ok()) exit(2);
        try {
          Get();
        } catch (const base::CheckError& error) {
          exit(std::string(error.what()).find("backend=cuda: PyTorch finds no CUDA") != std::string::npos ? 0 : 3);
        }
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace torch_lazy::backends
