// SPDX-License-Identifier: Apache-2.0
#include "codegen/compile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status.h"
#include "codegen/partition/partition.h"
#include "codegen/passes/copies.h"
#include "codegen/passes/merge_matmuls.h"
#include "codegen/passes/pad_matmuls.h"
#include "codegen/passes/prepare_reductions.h"
#include "codegen/passes/relu_epilogues.h"
#include "codegen/steps/assemble.h"
#include "codegen/steps/non_temporal_stores.h"
#include "codegen/steps/storage_plan.h"
#include "ir/passes/pipeline.h"

namespace torch_lazy::codegen {
namespace {

absl::Status CheckTypes(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const ir::Kind kind = ir::Info(node.op).kind;
    if (kind == ir::Kind::kCall || node.op == ir::Op::kParam || !ir::IsComplex(node.type.dtype)) continue;
    return absl::UnimplementedError(
        absl::StrCat(ir::Info(node.op).text, ": no kernels of ", ir::Name(node.type.dtype)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Compile(const ir::Graph& graph, const CompileOptions& asked) {
  CompileOptions options = asked;
  ir::OptimizeOptions passes;
  passes.verify = options.verify;
  passes.dump_folder = options.dump_folder;
  LAZY_ASSIGN_OR_RETURN(ir::Graph optimized, ir::Optimize(graph, passes));
  LAZY_RETURN_IF_ERROR(CheckTypes(optimized));
  PaddedGraph padded = PadMatmuls(TakeReluIntoMatmuls(MergeMatmuls(optimized, options)), options);
  options.seen_extents = NumbersOf(padded.extents, options.seen_extents);
  optimized = PrepareReductions(padded.graph, options);
  const Factors factors(optimized);

  // Each round adds the copies that the last one found missing. A copy has one reader, so the
  // rounds come to an end.
  GraphWithCopies work = InsertCopies({optimized, {}}, SharedOutputs(optimized));
  for (;;) {
    const Concats concats = PlaceOperands(work.graph, factors);
    if (!concats.missing_copies.empty()) {
      work = InsertCopies(work, concats.missing_copies);
      continue;
    }
    const Partition partition = MakePartition(work, concats, factors, options);
    std::vector<Body> bodies = MakeBodies(work.graph, factors, partition);
    Tasks tasks = MakeTasks(work.graph, factors, partition, bodies);
    if (options.target == Target::kCuda) DelayFills(work.graph, &tasks);
    const StoragePlan storage = PlanStorage(work.graph, partition, bodies, &tasks);
    if (storage.missing_copies.empty()) {
      if (options.target == Target::kCpu) MarkNonTemporalStores(work.graph, partition, tasks, options, &bodies);
      Plan plan = Assemble(graph, work.graph, factors, partition, bodies, tasks, storage, options);
      plan.padded_extents = std::move(padded.extents);
      base::WriteDump(options.dump_folder, "80-plan.txt",
                      absl::StrCat(plan.ToString(), "\nsizes seen first: s0, s1, ... = ",
                                   absl::StrJoin(options.seen_extents, ", "), "\n"));
      for (size_t k = 0; k < plan.kernels.size(); ++k) {
        base::WriteDump(options.dump_folder, absl::StrCat("90-k", k, options.target == Target::kCpu ? ".cc" : ".cu"),
                        plan.kernels[k].source);
      }
      return plan;
    }
    work = InsertCopies(work, storage.missing_copies);
  }
}

}  // namespace torch_lazy::codegen
