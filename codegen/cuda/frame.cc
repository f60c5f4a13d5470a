// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/frame.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/fingerprint.h"
#include "codegen/cuda/math_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

// Whoever launches an entry may have it begin before the stream's former kernel has ended, for which each one waits.
constexpr char kOneEntry[] = R"(
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const __grid_constant__ KERNEL_arguments one) {
  lazy_await_former();
  KERNEL_block(one, blockIdx.x);
}
)";

// The instance of a block is the last one that begins at or before it.
constexpr char kManyEntry[] = R"(
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL_many(const KERNEL_arguments* many, const int* first_block, int count) {
  lazy_await_former();
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_block[middle] <= (int)blockIdx.x) low = middle; else high = middle;
  }
  KERNEL_block(many[low], (int)blockIdx.x - first_block[low]);
}
)";

constexpr char kFewEntry[] = R"(
struct KERNEL_few_arguments { KERNEL_arguments of[FEW]; };
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL_few(const __grid_constant__ KERNEL_few_arguments few) {
  lazy_await_former();
  const KERNEL_arguments& arguments = few.of[blockIdx.y];
  if ((long)blockIdx.x * ITERATIONS < arguments.iterations) KERNEL_block(arguments, blockIdx.x);
}
)";

// By value, since a block that looks up its instance in memory begins late, and in a launch of its own each instance
// waits for the last blocks of the one before.
constexpr char kExactEntry[] = R"(
struct KERNEL_several { KERNEL_arguments of[MOST]; };
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL_exact(const __grid_constant__ KERNEL_several several) {
  lazy_await_former();
  KERNEL_exact_block(several.of[blockIdx.y], blockIdx.x);
}
)";

constexpr size_t kMostArgumentBytes = 4096;  // of a kernel

std::string ArgumentsText(size_t buffers, size_t extents) {
  std::string text = "struct KERNEL_arguments {\n  const double* scalars;\n  long iterations;\n";
  if (buffers > 0) absl::StrAppend(&text, "  void* buffers[", buffers, "];\n");
  if (extents > 0) absl::StrAppend(&text, "  long extents[", extents, "];\n");
  return text + "};\n";
}

}  // namespace

void OpenFunction(const std::string& qualifiers, const std::string& name, const std::string& parameters,
                  KernelText* text) {
  text->Open(absl::StrCat(qualifiers, "static __device__ __forceinline__ void ", name,
                          "(const KERNEL_arguments& arguments, ", parameters, ") {"));
  text->Head();
}

void CloseFunction(KernelText* text) { text->Close("}"); }

WrittenKernel Finish(const KernelText& text, const std::string& prefix, const ir::Dims& range, int threads,
                     int64_t iterations_per_block, int blocks_at_once, Kernel::Exact exact) {
  const std::string functions = text.Lines({"arguments.buffers", "arguments.extents", "arguments.scalars"});
  std::string bounds = absl::StrCat(threads);
  if (blocks_at_once > 0) absl::StrAppend(&bounds, ", ", blocks_at_once);
  const auto entry = [&](const char* of) {
    return absl::StrReplaceAll(of + 1, {{"THREADS", bounds},
                                        {"FEW", absl::StrCat(Kernel::kFew)},
                                        {"MOST", absl::StrCat(Kernel::Exact::kMost)},
                                        {"ITERATIONS", absl::StrCat(iterations_per_block)}});
  };
  WrittenKernel written = text.Written(
      prefix, range,
      absl::StrCat(MathFunctionsFor(functions + kOneEntry), ArgumentsText(text.body().slots.size(), text.num_extents()),
                   functions, exact.extent >= 0 ? entry(kExactEntry) : ""));
  written.kernel.threads = threads;
  written.kernel.iterations_per_block = iterations_per_block;
  written.kernel.exact = exact;
  const size_t few_bytes = Kernel::kFew * sizeof(int64_t) * (2 + text.body().slots.size() + text.num_extents());
  written.entries = {entry(kOneEntry), few_bytes <= kMostArgumentBytes ? entry(kFewEntry) : "", entry(kManyEntry)};
  return written;
}

void AddEntries(const WrittenKernel::Entries& entries, Kernel::Entries wanted, Kernel* kernel) {
  if (wanted.few && entries.few.empty()) wanted = {wanted.one, /*few=*/false, /*many=*/true};
  kernel->entries = wanted;
  const std::string former = kernel->name;
  const std::string added =
      absl::StrCat(wanted.one ? entries.one : "", wanted.few ? entries.few : "", wanted.many ? entries.many : "");
  kernel->source += absl::StrReplaceAll(added, {{"KERNEL", former}});
  kernel->name = absl::StrCat(former.substr(0, former.find('_') + 1), base::FingerprintOf(kernel->source).ToString());
  kernel->source = absl::StrReplaceAll(kernel->source, {{former, kernel->name}});
}

}  // namespace torch_lazy::codegen::cuda
