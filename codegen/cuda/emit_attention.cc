// SPDX-License-Identifier: Apache-2.0
// Attention of a few queries: a block does a query, and reads its head's keys and values once.
//
// Some lanes of a warp, side by side, have a key: each lane 8 numbers of its width, and the same 8 of the value. They
// add up the score, and what is to come of all keys so far, in registers: the greatest score, the sum of exponentials,
// and the sum of values. In the end the block's lanes meet. This is the online softmax of Milakov and Gimelshein,
// arXiv:1805.02867.
//
// A width that lanes do not have, or that is not aligned, is done number by number: right, and slow.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/frame.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/op_text.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int kVector = 8;  // numbers of 16 bits that a lane reads at once: the 8 of the text below
constexpr int kUnroll = 4;  // keys that a lane has on their way
constexpr int kLanesOfWarp = 32;

enum Operand : int { kQuery, kKeys, kValues, kBias };

constexpr char kWide[] = R"(
  constexpr int kGroups = THREADS / LANES;
  const int lane = thread % LANES, group = thread / LANES;
  const bool in = lane * 8 < width;
  float of_query[8], so_far[8], sum = 0.f, most = -(float)lazy_inf();
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    of_query[k] = in ? query[(lane * 8 + k) * QUERY_STEP] : 0.f;
    so_far[k] = 0.f;
  }
  for (long first = 0; first < length; first += kGroups * UNROLL) {
    TYPE key[UNROLL][8] = {}, value[UNROLL][8] = {};
    float score[UNROLL], top = most;
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long l = first + u * kGroups + group;
      if (!in || l >= length) continue;
      lazy_read(key[u], keys + l * KEYS_STEP + lane * 8);
      lazy_read(value[u], values + l * VALUES_STEP + lane * 8);
    }
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long l = first + u * kGroups + group;
      score[u] = 0.f;
      #pragma unroll
      for (int k = 0; k < 8; ++k) score[u] += of_query[k] * KEY_NUMBER;
      #pragma unroll
      for (int by = LANES / 2; by > 0; by /= 2) score[u] += __shfl_xor_sync(0xffffffffu, score[u], by);
      score[u] = l < length ? score[u]BIAS : -(float)lazy_inf();
      top = fmaxf(top, score[u]);
    }
    const float base = top > -(float)lazy_inf() ? top : 0.f, before = lazy_exp_nonpositive(most - base);
    most = top;
    sum *= before;
    #pragma unroll
    for (int k = 0; k < 8; ++k) so_far[k] *= before;
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const float part = lazy_exp_nonpositive(score[u] - base);
      sum += part;
      #pragma unroll
      for (int k = 0; k < 8; ++k) so_far[k] += part * VALUE_NUMBER;
    }
  }
  #pragma unroll
  for (int by = LANES; by < 32; by *= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, most, by), top = fmaxf(most, other);
    const float base = top > -(float)lazy_inf() ? top : 0.f;
    const float ours = lazy_exp_nonpositive(most - base), theirs = lazy_exp_nonpositive(other - base);
    most = top;
    sum = sum * ours + __shfl_xor_sync(0xffffffffu, sum, by) * theirs;
    #pragma unroll
    for (int k = 0; k < 8; ++k) so_far[k] = so_far[k] * ours + __shfl_xor_sync(0xffffffffu, so_far[k], by) * theirs;
  }
  __shared__ float most_of[THREADS / 32], sum_of[THREADS / 32], values_of[THREADS / 32][LANES * 8];
  const int warp = thread / 32;
  if (thread % 32 < LANES) {
    most_of[warp] = most;
    sum_of[warp] = sum;
    #pragma unroll
    for (int k = 0; k < 8; ++k) values_of[warp][lane * 8 + k] = so_far[k];
  }
  __syncthreads();
  for (int d = thread; d < width; d += THREADS) {
    float top = most_of[0], all = 0.f, number = 0.f;
    for (int w = 1; w < THREADS / 32; ++w) top = fmaxf(top, most_of[w]);
    const float base = top > -(float)lazy_inf() ? top : 0.f;
    for (int w = 0; w < THREADS / 32; ++w) {
      const float part = lazy_exp_nonpositive(most_of[w] - base);
      all += sum_of[w] * part;
      number += values_of[w][d] * part;
    }
    result[d * RESULT_STEP] = STORED;
  }
)";

// Each score by all threads, each number of the result by one.
constexpr char kAny[] = R"(
  __shared__ float part_of[THREADS / 32];
  for (long from = 0; from < width; from += THREADS) {
    const long d = from + thread;
    float most = -(float)lazy_inf(), all = 0.f, number = 0.f;
    for (long l = 0; l < length; ++l) {
      float score = 0.f;
      for (long k = thread; k < width; k += THREADS) score += query[k * QUERY_STEP] * KEY_AT;
      #pragma unroll
      for (int by = 16; by > 0; by /= 2) score += __shfl_xor_sync(0xffffffffu, score, by);
      if (thread % 32 == 0) part_of[thread / 32] = score;
      __syncthreads();
      score = 0.f;
      for (int w = 0; w < THREADS / 32; ++w) score += part_of[w];
      __syncthreads();
      score = scoreBIAS;
      const float top = fmaxf(most, score), base = top > -(float)lazy_inf() ? top : 0.f;
      const float before = lazy_exp_nonpositive(most - base), part = lazy_exp_nonpositive(score - base);
      most = top;
      all = all * before + part;
      if (d < width) number = number * before + part * VALUE_AT;
    }
    if (d < width) result[d * RESULT_STEP] = STORED;
  }
)";

class AttentionEmitter {
 public:
  AttentionEmitter(const ir::Graph& graph, const Body& body, const CompileOptions& options)
      : body_(body),
        loops_(MakeLoops(body)),
        text_(graph, body, Target::kCuda),
        lanes_(LanesFor(SeenSize(Width(), options.seen_extents))),
        threads_(ThreadsFor(SeenSize(body.variables[length_variable()].extent, options.seen_extents))) {}

  WrittenKernel Emit() {
    if (StepsByOne()) EmitFunction("KERNEL_wide", kWide);
    EmitFunction("KERNEL_any", kAny);
    OpenFunction("", "KERNEL_block", "const long r", &text_);
    if (StepsByOne()) text_.Line(absl::StrCat("if (", IsWide(), ") return KERNEL_wide(arguments, r, threadIdx.x);"));
    text_.Line("KERNEL_any(arguments, r, threadIdx.x);");
    CloseFunction(&text_);
    return Finish(text_, "attention", RangeOf(loops_), threads_, 1);
  }

 private:
  int width_variable() const { return static_cast<int>(body_.variables.size()) - 1; }
  int length_variable() const { return width_variable() - 1; }
  const Monomial& Width() const { return body_.variables[width_variable()].extent; }
  int result_address() const { return static_cast<int>(body_.addresses.size()) - 1; }
  bool has_bias() const { return result_address() > kBias; }
  const Affine& IndexOf(int address) const { return body_.addresses[address].index; }
  std::string StepOf(int address, int variable) { return text_.Number(IndexOf(address).CoefficientOf(variable)); }

  // Lanes of a warp for the width seen first.
  static int LanesFor(double width) {
    const double vectors = std::clamp(width / kVector, 1.0, double{kLanesOfWarp});
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(vectors)));
  }

  // Long keys keep more memory on its way.
  static int ThreadsFor(double length) { return length <= 128 ? 256 : length <= 1024 ? 512 : 1024; }

  // The widths of keys and values lie in memory one after the other.
  bool StepsByOne() const {
    return IndexOf(kKeys).CoefficientOf(width_variable()).is_one() &&
           IndexOf(kValues).CoefficientOf(width_variable()).is_one();
  }

  // All that is read as vectors is aligned, and lanes have the whole width.
  std::string IsWide() {
    std::vector<std::string> numbers = {text_.Number(Width())}, conditions;
    for (const int address : {kKeys, kValues}) {
      for (const Affine::Term& term : IndexOf(address).terms) {
        if (term.variable != width_variable()) numbers.push_back(text_.Number(term.coefficient));
      }
      conditions.push_back(absl::StrCat("(unsigned long)", text_.PointerTo(address), " % 16 == 0"));
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return absl::StrCat(text_.Number(Width()), " <= ", lanes_ * kVector, " && (", absl::StrJoin(numbers, " | "), ") % ",
                        kVector, " == 0 && ", absl::StrJoin(conditions, " && "));
  }

  void EmitFunction(const std::string& name, absl::string_view pattern) {
    OpenFunction("", name, "const long r, const int thread", &text_);
    const std::vector<KernelText::Along> at = PlaceLoops(loops_.outer, 'i', "r", &text_);
    const char* const names[] = {"query", "keys", "values", "bias"};
    for (int address = 0; address <= result_address(); ++address) {
      text_.Line(absl::StrCat("auto* const ", address == result_address() ? "result" : names[address], " = ",
                              text_.PointerTo(body_.addresses[address].slot), " + ",
                              text_.IndexText(IndexOf(address), at, /*with_offset=*/false), ";"));
    }
    text_.Line(absl::StrCat("const long length = ", text_.Number(body_.variables[length_variable()].extent),
                            ", width = ", text_.Number(Width()), ";"));
    text_.Line(Filled(pattern));
    CloseFunction(&text_);
  }

  std::string Filled(absl::string_view pattern) {
    const ir::DType half = text_.TypeAt(kKeys);
    const std::string keys_step = StepOf(kKeys, length_variable()), values_step = StepOf(kValues, length_variable());
    const std::string width_of_keys = StepOf(kKeys, width_variable()),
                      width_of_values = StepOf(kValues, width_variable());
    const std::string bias =
        !has_bias()
            ? ""
            : absl::StrCat(" + (float)", LoadText(text_.TypeAt(kBias),
                                                  absl::StrCat("bias[l * ", StepOf(kBias, length_variable()), "]")));
    return absl::StrReplaceAll(
        pattern.substr(3, pattern.size() - 4),
        {{"KEY_NUMBER", LoadText(half, "key[u][k]")},
         {"VALUE_NUMBER", LoadText(half, "value[u][k]")},
         {"KEY_AT", LoadText(half, absl::StrCat("keys[l * ", keys_step, " + k * ", width_of_keys, "]"))},
         {"VALUE_AT", LoadText(half, absl::StrCat("values[l * ", values_step, " + d * ", width_of_values, "]"))},
         {"STORED", StoreText(half, "(all > 0.f || all != all ? number / all : 0.f)")},
         {"QUERY_STEP", StepOf(kQuery, width_variable())},
         {"KEYS_STEP", keys_step},
         {"VALUES_STEP", values_step},
         {"RESULT_STEP", StepOf(result_address(), width_variable())},
         {"BIAS", bias},
         {"TYPE", MemoryType(half)},
         {"THREADS", absl::StrCat(threads_)},
         {"LANES", absl::StrCat(lanes_)},
         {"UNROLL", absl::StrCat(kUnroll)}});
  }

  const Body& body_;
  const Loops loops_;
  KernelText text_;
  const int lanes_, threads_;
};

}  // namespace

Body BodyOf(const Attention& attention, ir::Value attend) {
  Body body;
  const auto add_variable = [&](Variable::Kind kind, const Monomial& extent) {
    body.variables.push_back({kind, extent});
    return static_cast<int>(body.variables.size()) - 1;
  };
  int outer[3];
  const Monomial* const extents[] = {&attention.batch, &attention.heads, &attention.rows};
  for (int k = 0; k < 3; ++k)
    outer[k] = Polynomial(*extents[k]).is_one() ? -1 : add_variable(Variable::Kind::kOuter, *extents[k]);
  const int length = add_variable(Variable::Kind::kInner, attention.length);
  const int width = add_variable(Variable::Kind::kInner, attention.width);
  body.inner = uint64_t{1} << length | uint64_t{1} << width;
  // `last`: the variables of the last two dims.
  const auto add_address = [&](const Matrix& at, ir::Value stored, bool written, std::pair<int, int> last) {
    Address address{static_cast<int>(body.slots.size()), {}};
    const int variables[] = {outer[0], outer[1], last.first, last.second};
    for (int dim = 0; dim < 4; ++dim) {
      if (variables[dim] >= 0) address.index.Add(variables[dim], at.strides[dim]);
    }
    body.slots.push_back({stored, written, at.offset});
    body.addresses.push_back(std::move(address));
  };
  const std::pair<int, int> last[] = {{outer[2], width}, {length, width}, {length, width}, {outer[2], length}};
  for (size_t k = 0; k < attention.operands.size(); ++k)
    add_address(attention.operands[k], attention.operands[k].base, /*written=*/false, last[k]);
  add_address(attention.result, attend, /*written=*/true, last[0]);
  return body;
}

WrittenKernel EmitAttention(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  return AttentionEmitter(graph, body, options).Emit();
}

}  // namespace torch_lazy::codegen::cuda
