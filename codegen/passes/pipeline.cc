// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/pipeline.h"

#include "codegen/passes/add_copies.h"
#include "codegen/passes/halves.h"
#include "codegen/passes/merge_matmuls.h"
#include "codegen/passes/pad_matmuls.h"
#include "codegen/passes/prepare_reductions.h"
#include "codegen/passes/relu_epilogues.h"
#include "codegen/passes/vector_products.h"
#include "ir/passes/pipeline.h"

namespace torch_lazy::codegen {
namespace {

// Products are merged before their length is padded, and have their ReLU by then. Reductions are prepared when no
// product makes new ones. Copies come last: a later pass would take them for casts that change nothing.
constexpr ir::Pass kPasses[] = {
    {"halves", ChooseHalves, ir::Pass::Where::kGpu},
    {"merge_matmuls", MergeMatmuls},
    {"vector_products", ir::OfGraphAlone<SumVectorProducts>, ir::Pass::Where::kGpu},
    {"relu_epilogues", ir::OfGraphAlone<TakeReluIntoMatmuls>},
    {"pad_matmuls", PadMatmuls, ir::Pass::Where::kGpu},
    {"prepare_reductions", PrepareReductions},
    {"copies", AddCopies, ir::Pass::Where::kAnywhere, /*is_needed=*/true},
};

}  // namespace

absl::Span<const ir::Pass> Passes() { return kPasses; }

ir::PassOptions OptionsOfPasses(bool verify, const std::string& dump_folder) {
  return {verify, dump_folder, /*first_number=*/81, ir::Header::kAnywhere};
}

const ir::Pass* FindPass(absl::string_view name) {
  const ir::Pass* pass = ir::FindPass(ir::Passes(), name);
  return pass != nullptr ? pass : ir::FindPass(kPasses, name);
}

}  // namespace torch_lazy::codegen
