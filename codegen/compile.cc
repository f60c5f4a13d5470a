// SPDX-License-Identifier: Apache-2.0
#include "codegen/compile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status.h"
#include "codegen/partition/partition.h"
#include "codegen/passes/add_copies.h"
#include "codegen/passes/pipeline.h"
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

void Dump(const Plan& plan, const CompileOptions& options) {
  base::WriteDump(options.dump_folder, "89-plan.txt",
                  absl::StrCat(plan.ToString(),
                               "\nsizes seen first: s0, s1, ... = ", absl::StrJoin(options.seen_extents, ", "), "\n"));
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    base::WriteDump(options.dump_folder, absl::StrCat("90-k", k, options.target == Target::kCpu ? ".cc" : ".cu"),
                    plan.kernels[k].source);
  }
}

}  // namespace

PassedGraph Unpassed(const ir::Graph& graph, const CompileOptions& options) {
  PassedGraph passed{graph, {}};
  passed.context.for_gpu = options.target == Target::kCuda;
  passed.context.seen_extents = options.seen_extents;
  return passed;
}

CompileOptions OptionsAfter(const PassedGraph& passed, CompileOptions options) {
  options.seen_extents = passed.context.seen_extents;
  return options;
}

absl::StatusOr<PassedGraph> RunAllPasses(const ir::Graph& graph, const CompileOptions& options) {
  PassedGraph passed = Unpassed(graph, options);
  const ir::PassOptions first = {options.verify, options.dump_folder};
  LAZY_ASSIGN_OR_RETURN(passed.graph, ir::RunPasses(ir::Passes(), graph, first, &passed.context));
  LAZY_RETURN_IF_ERROR(CheckTypes(passed.graph));
  const ir::PassOptions then = OptionsOfPasses(options.verify, options.dump_folder);
  LAZY_ASSIGN_OR_RETURN(passed.graph, ir::RunPasses(Passes(), std::move(passed.graph), then, &passed.context));
  return passed;
}

absl::StatusOr<Plan> Compile(const ir::Graph& graph, const CompileOptions& options) {
  LAZY_ASSIGN_OR_RETURN(const PassedGraph passed, RunAllPasses(graph, options));
  return CompilePassed(graph, passed, options);
}

absl::StatusOr<Plan> CompilePassed(const ir::Graph& graph, const PassedGraph& passed, const CompileOptions& asked) {
  const CompileOptions options = OptionsAfter(passed, asked);
  ir::Graph work = passed.graph;
  const Factors factors(work);
  for (;;) {  // each round has the copies that the last one found missing
    const Concats concats = PlaceOperands(work, factors);
    const Partition partition = MakePartition(work, concats, factors, options);
    std::vector<Body> bodies = MakeBodies(work, factors, partition);
    Tasks tasks = MakeTasks(work, factors, partition, bodies);
    if (options.target == Target::kCuda) DelayFills(work, &tasks);
    const StoragePlan storage = PlanStorage(work, partition, bodies, &tasks);
    if (storage.missing_copies.empty()) {
      if (options.target == Target::kCpu) MarkNonTemporalStores(work, partition, tasks, options, &bodies);
      Plan plan = Assemble(graph, work, factors, partition, bodies, tasks, storage, options);
      plan.padded_extents = passed.context.padded_extents;
      Dump(plan, options);
      return plan;
    }
    work = WithCopies(work, storage.missing_copies);
    if (options.verify) LAZY_RETURN_IF_ERROR(ir::VerifyAfter("copies", work, ir::Header::kAnywhere));
  }
}

}  // namespace torch_lazy::codegen
