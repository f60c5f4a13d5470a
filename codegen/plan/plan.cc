// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::codegen {
namespace {

std::string BufferName(const Plan& plan, int32_t buffer) {
  const BufferSpec& spec = plan.buffers[buffer];
  switch (spec.kind) {
    case BufferSpec::Kind::kParam:
      return absl::StrCat("%p", spec.index);
    case BufferSpec::Kind::kOutput:
      return absl::StrCat("%out", spec.index);
    case BufferSpec::Kind::kTemp:
      return absl::StrCat("%t", buffer);
  }
  return "";
}

std::string BufferNames(const Plan& plan, const std::vector<int32_t>& buffers) {
  return absl::StrJoin(buffers, ", ", [&](std::string* out, int32_t b) { absl::StrAppend(out, BufferName(plan, b)); });
}

std::string InstanceText(const Plan& plan, const Instance& instance) {
  const auto extent = [](std::string* out, const auto& e) { absl::StrAppend(out, e.ToString()); };
  std::vector<std::string> places;
  for (size_t k = 0; k < instance.buffers.size(); ++k) {
    const Polynomial& offset = instance.offsets[k];
    places.push_back(absl::StrCat(BufferName(plan, instance.buffers[k]),
                                  offset.is_zero() ? "" : absl::StrCat("[", offset.ToString(), "]")));
  }
  std::string text = absl::StrCat("k", instance.kernel, "(", absl::StrJoin(places, ", "), ")");
  absl::StrAppend(&text, " over [", absl::StrJoin(instance.range, ", ", extent), "]");
  if (!instance.extents.empty()) {
    absl::StrAppend(&text, " extents ", absl::StrJoin(instance.extents, ", ", extent));
  }
  if (!instance.scalars.empty()) absl::StrAppend(&text, " scalars $", absl::StrJoin(instance.scalars, ", $"));
  return text;
}

std::string MatrixText(const Plan& plan, const BoundMatrix& matrix) {
  const auto append = [](std::string* out, const Polynomial& p) { absl::StrAppend(out, p.ToString()); };
  return absl::StrCat(BufferName(plan, matrix.buffer), "[",
                      matrix.offset.is_zero() ? "" : absl::StrCat(matrix.offset.ToString(), "; "),
                      absl::StrJoin(matrix.strides, ", ", append), "]");
}

}  // namespace

Kernel::Entry EntryFor(absl::Span<const int64_t> blocks) {
  constexpr int64_t kIdle = 1024;  // blocks that may begin for nothing, or an eighth
  if (blocks.size() == 1) return Kernel::Entry::kOne;
  int64_t most = 0, all = 0;
  for (const int64_t number : blocks) {
    most = std::max(most, number);
    all += number;
  }
  const auto count = static_cast<int64_t>(blocks.size());
  const bool is_few = count <= Kernel::kFew && most * count - all <= std::max(kIdle, all / 8);
  return is_few ? Kernel::Entry::kFew : Kernel::Entry::kMany;
}

std::string Plan::ToString() const {
  std::string text = "plan {\n";
  for (const PaddedExtent& padded : padded_extents) {
    absl::StrAppend(&text, "  ", padded.whole.ToString(), ", ", padded.rest.ToString(), ": ", padded.part.ToString(),
                    " up to a multiple of ", PaddedExtent::kMultiple, ", and the rest\n");
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    absl::StrAppend(&text, "  ", BufferName(*this, static_cast<int32_t>(b)), ": ", buffers[b].type.ToString(), "\n");
  }
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::kCall) {
      absl::StrAppend(&text, "  call %", step.call, "(", BufferNames(*this, step.operands), ") -> ",
                      BufferNames(*this, step.results));
    } else if (step.kind == Step::Kind::kMatmul) {
      absl::StrAppend(&text, "  matmul ", MatrixText(*this, step.x), " by ", MatrixText(*this, step.y));
      if (step.bias.buffer >= 0) absl::StrAppend(&text, " plus ", MatrixText(*this, step.bias));
      absl::StrAppend(&text, step.is_relu ? ", relu" : "", " -> ", MatrixText(*this, step.result));
    } else {
      absl::StrAppend(&text, "  launch");
      for (const Instance& instance : step.instances) absl::StrAppend(&text, "\n    ", InstanceText(*this, instance));
    }
    if (!step.frees.empty()) absl::StrAppend(&text, "\n    free ", BufferNames(*this, step.frees));
    text += "\n";
  }
  absl::StrAppend(&text, "  return ", BufferNames(*this, outputs), "\n}\n");
  return text;
}

std::vector<int64_t> NumbersOf(absl::Span<const PaddedExtent> padded, absl::Span<const int64_t> symbols) {
  std::vector<int64_t> numbers(symbols.begin(), symbols.end());
  for (const PaddedExtent& extent : padded) {
    const int64_t part = extent.part.Value(symbols), whole = PaddedExtent::RoundUp(part);
    numbers.resize(std::max<size_t>(numbers.size(), extent.rest.symbol() + 1));
    numbers[extent.whole.symbol()] = whole;
    numbers[extent.rest.symbol()] = whole - part;
  }
  return numbers;
}

bool IsMadeFor(const Plan& plan, absl::Span<const int64_t> symbols) {
  constexpr int64_t kMuch = 1 << 20;  // elements: a GPU's kernels of fewer are fast anyway
  const auto is_fast = [&](const Instance& instance) {
    const Kernel& kernel = plan.kernels[static_cast<size_t>(instance.kernel)];
    if (kernel.longest_row == 0) return true;
    const int64_t row = Polynomial(instance.row).Value(symbols);
    return Polynomial(instance.elements).Value(symbols) < kMuch ||
           (kernel.shortest_row <= row && row <= kernel.longest_row);
  };
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return std::all_of(step.instances.begin(), step.instances.end(), is_fast);
  });
}

int64_t ScratchBytes(const Instance& instance, absl::Span<const int64_t> symbols) {
  return instance.scratch_element_bytes * ir::NumElements(instance.scratch, symbols) + instance.scratch_padding_bytes;
}

}  // namespace torch_lazy::codegen
