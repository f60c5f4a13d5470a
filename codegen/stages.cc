// SPDX-License-Identifier: Apache-2.0
#include "codegen/stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/compile.h"
#include "codegen/partition/partition.h"
#include "codegen/partition/partition_text.h"
#include "codegen/passes/pipeline.h"
#include "ir/passes/pipeline.h"
#include "ir/print.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kSymbols = 16;      // that are as if seen
constexpr int64_t kLarge = 3000;  // for which a plan shares out sums and streams results

struct Request {
  std::vector<absl::string_view> names;  // without targets
  CompileOptions options;
};

absl::StatusOr<Request> ReadRequest(absl::string_view run) {
  Request request;
  request.options.verify = true;
  const std::vector<absl::string_view> words = absl::StrSplit(run, ' ');
  int64_t size = kLarge;
  if (words.size() > 2 || (words.size() == 2 && words[1] != "large" && !absl::SimpleAtoi(words[1], &size)))
    return absl::InvalidArgumentError(absl::StrCat("after names come `large` or a number, not ", run));
  if (words.size() == 2) request.options.seen_extents.assign(kSymbols, size);
  for (absl::string_view name : absl::StrSplit(words[0], ',')) {
    if (absl::ConsumeSuffix(&name, "=cuda")) request.options.target = Target::kCuda;
    absl::ConsumeSuffix(&name, "=cpp");
    request.names.push_back(name);
  }
  return request;
}

// From here on the text is the kernel's own.
size_t BeginOf(const Kernel& kernel) {
  const size_t arguments = kernel.source.find(absl::StrCat("struct ", kernel.name, "_arguments"));
  return arguments != std::string::npos ? arguments : kernel.source.find("extern \"C\"");
}

// A line "}" alone ends a golden's text: all but the last become "};".
std::string KernelTexts(const Plan& plan) {
  std::string text;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (kernel.threads > 0) {
      absl::StrAppend(&text, "// ", kernel.threads, " threads, ", kernel.iterations_per_block, " iterations a block\n");
    }
    absl::StrAppend(&text,
                    absl::StrReplaceAll(kernel.source.substr(BeginOf(kernel)), {{kernel.name, absl::StrCat("k", k)}}));
  }
  absl::StrReplaceAll({{"\n}\n", "\n};\n"}}, &text);
  if (!text.empty()) text.replace(text.size() - 3, 3, "}\n");
  return text;
}

class Stages {
 public:
  Stages(const ir::Graph& graph, const CompileOptions& options)
      : original_(graph), passed_(Unpassed(graph, options)), options_(options) {}

  absl::Status Run(absl::string_view name) {
    if (name == "partition" || name == "plan" || name == "emit") return Print(name);
    const ir::Pass* const pass = FindPass(name);
    if (name == "optimize") return Apply(ir::Passes());
    if (name == "passes") return ApplyAll();
    if (pass != nullptr) return Apply(absl::MakeConstSpan(pass, 1));
    return absl::NotFoundError(absl::StrCat("there is no pass ", name));
  }

  std::string Text() const { return printed_.empty() ? ir::Print(passed_.graph) : printed_; }

 private:
  absl::Status Apply(absl::Span<const ir::Pass> passes) {
    LAZY_ASSIGN_OR_RETURN(passed_.graph, ir::RunPasses(passes, std::move(passed_.graph),
                                                       OptionsOfPasses(options_.verify, ""), &passed_.context));
    for (const ir::Pass& pass : passes) done_.push_back(pass.name);
    return absl::OkStatus();
  }

  absl::Status ApplyAll() {
    LAZY_RETURN_IF_ERROR(Apply(ir::Passes()));
    return Apply(Passes());
  }

  // What later stages count on.
  absl::Status ApplyNeeded() {
    for (const ir::Pass& pass : Passes()) {
      const bool is_done = std::find(done_.begin(), done_.end(), pass.name) != done_.end();
      if (pass.is_needed && !is_done) LAZY_RETURN_IF_ERROR(Apply(absl::MakeConstSpan(&pass, 1)));
    }
    return absl::OkStatus();
  }

  absl::Status Print(absl::string_view what) {
    if (done_.empty()) {
      LAZY_ASSIGN_OR_RETURN(passed_, RunAllPasses(original_, options_));
    } else {
      LAZY_RETURN_IF_ERROR(ApplyNeeded());
    }
    if (what == "partition") {
      absl::StrAppend(&printed_, Partitioned());
      return absl::OkStatus();
    }
    LAZY_ASSIGN_OR_RETURN(const Plan plan, CompilePassed(original_, passed_, options_));
    absl::StrAppend(&printed_, what == "plan" ? plan.ToString() : KernelTexts(plan));
    return absl::OkStatus();
  }

  std::string Partitioned() const {
    const ir::Graph& graph = passed_.graph;
    const Factors factors(graph);
    std::vector<Reason> reasons;
    const Partition partition =
        MakePartition(graph, PlaceOperands(graph, factors), factors, OptionsAfter(passed_, options_), &reasons);
    return PartitionText(graph, partition, reasons);
  }

  const ir::Graph& original_;
  PassedGraph passed_;
  const CompileOptions options_;
  std::vector<absl::string_view> done_;  // names of passes
  std::string printed_;
};

}  // namespace

std::string StageNames() {
  std::vector<absl::string_view> names;
  for (const auto& passes : {ir::Passes(), Passes()}) {
    for (const ir::Pass& pass : passes) {
      if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
    }
  }
  return absl::StrCat(absl::StrJoin(names, ", "), ", optimize, passes, partition, plan, emit");
}

absl::StatusOr<std::string> RunStages(absl::string_view run, const ir::Graph& graph) {
  LAZY_ASSIGN_OR_RETURN(const Request request, ReadRequest(run));
  Stages stages(graph, request.options);
  for (const absl::string_view name : request.names) LAZY_RETURN_IF_ERROR(stages.Run(name));
  return stages.Text();
}

}  // namespace torch_lazy::codegen
