// SPDX-License-Identifier: Apache-2.0
// test/golden/passes, partition, kernels and cuda: RUN is what lazy_opt takes after --run= (codegen/stages.h).
#include "test/ir/golden.h"
#include "codegen/stages.h"
#include "gtest/gtest.h"

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const char* folder : {"test/golden/passes", "test/golden/partition", "test/golden/kernels", "test/golden/cuda"})
    torch_lazy::ir::RegisterGoldens(folder, torch_lazy::codegen::RunStages);
  return RUN_ALL_TESTS();
}
