// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/cudnn_convolution.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/cudnn_convolution_add_relu.h>
#include <ATen/ops/cudnn_convolution_relu.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/relu.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/registry.h"
#include "base/check.h"
#include "base/flags.h"
#include "base/log.h"
#include "lazy/cuda/philox.h"
#include "lazy/cuda/products.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/background.h"
#include "lazy/host/ledger.h"
#include "lazy/libraries/similar_sizes.h"

namespace torch_lazy::lazy {
namespace {

using Form = PackedConvolution::Form;

constexpr int kFusedRounds = 2;         // the faster one counts
constexpr double kFusedWorthIt = 0.97;  // of the time of both apart
constexpr int kImageParts = 2;          // of an octave: images whose sizes are that far from each other are not similar
constexpr int64_t kFewestChannels = 8;  // where the fused one is faster in 16 bits
constexpr const char* kFused = "fused";
constexpr const char* kApart = "apart";

at::Tensor Convolve(const Form& form, const at::Tensor& x, const at::Tensor& weight) {
  return at::convolution(x, weight, /*bias=*/{}, form.stride, form.padding, form.dilation, /*transposed=*/false, {0, 0},
                         form.groups);
}

at::Tensor ConvolveWithRelu(const Form& form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& sum,
                            const at::Tensor& bias) {
  if (sum.defined()) {
    return at::cudnn_convolution_add_relu(x, weight, sum, 1, bias, form.stride, form.padding, form.dilation,
                                          form.groups);
  }
  return at::cudnn_convolution_relu(x, weight, bias, form.stride, form.padding, form.dilation, form.groups);
}

// What cuDNN does, in f32 until the end.
at::Tensor Emulate(const Form& form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& sum,
                   const at::Tensor& bias) {
  at::Tensor result = Convolve(form, x.to(at::kFloat), weight.to(at::kFloat));
  result += bias.to(at::kFloat).view({1, -1, 1, 1});
  if (sum.defined()) result += sum.to(at::kFloat);
  return at::relu(result).to(x.scalar_type());
}

std::string KeyOf(const FusedForm& fused) {
  const Form& form = fused.form;
  const at::Context& context = at::globalContext();
  const bool is_tf32 =
      context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV) == at::Float32Precision::TF32;
  const auto word = [](c10::IntArrayRef numbers) { return absl::StrCat("[", absl::StrJoin(numbers, ","), "]"); };
  const std::string images = SimilarWord({form.x.sizes.data(), form.x.sizes.size()}, kImageParts, /*aligned=*/false);
  return absl::StrCat("convolutions ", c10::toString(form.x.dtype),
                      form.x.dtype == at::kFloat && is_tf32 ? " tf32 " : " ", images, word(form.weight.sizes),
                      word(form.stride), word(form.padding), word(form.dilation), form.groups,
                      fused.adds ? " sum " : " ", context.benchmarkCuDNN() ? "benchmark " : "",
                      FindCudaProducts()->machine(), " cudnn ", at::detail::getCUDAHooks().versionRuntimeCuDNN());
}

// Whether it is to repeat from run to run: then a choice must not follow from times.
bool IsChosenByRule() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() || context.deterministicCuDNN();
}

// What times say of nearly all forms.
bool IsFasterByRule(const FusedForm& fused) {
  const bool is_half = fused.form.x.dtype != at::kFloat;
  return fused.form.weight.sizes[1] >= kFewestChannels && (is_half || !fused.adds);
}

// What is known, by key.
class Choices {
 public:
  struct Choice {
    bool is_faster;
    double saves = 0;  // seconds; 0: not known
  };

  static Choices& Get() {
    static Choices* const choices = new Choices;
    return *choices;
  }

  // Of this process, else of the disk. While nothing may be tried, what is not known is not faster.
  std::optional<Choice> Find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    if (known_.size() >= kMostKnown) return Choice{false};
    const std::string word = backends::Get().Recall(key);
    if (!word.empty()) return known_[key] = {word == kFused};
    if (!AccountOf(Venture::kConvolutions).MayTry()) return Choice{false};
    return std::nullopt;
  }

  void Add(const std::string& key, Choice choice, bool for_ever) {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_[key] = choice;
    if (!for_ever) return;
    InBackground([key, choice] { backends::Get().Keep(key, choice.is_faster ? kFused : kApart); });
  }

 private:
  static constexpr size_t kMostKnown = 1 << 12;  // those that come later are not fused
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Choice> known_;
};

// Seconds of a run.
struct Times {
  double fused = INFINITY, apart = INFINITY;  // INFINITY: cuDNN has no such convolution, or it lacked memory
};

Times Time(const FusedForm& fused, const std::string& key) {
  const CudaProducts& cuda = *FindCudaProducts();
  const Form& form = fused.form;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto some = [](const Geometry& geometry) {
    constexpr double kSome = 0.01;
    return at::empty_strided(geometry.sizes, geometry.strides, at::TensorOptions(EagerDevice()).dtype(geometry.dtype))
        .fill_(kSome);
  };
  const at::Tensor x = some(form.x), weight = some(form.weight), sum = fused.adds ? some(form.result) : at::Tensor();
  const at::Tensor bias = some({.dtype = form.x.dtype, .sizes = {form.weight.sizes[0]}, .strides = {1}});
  const auto apart = [&] {
    at::Tensor result = Convolve(form, x, weight);
    fused.adds ? result.add_(sum) : result.relu_();
  };
  Times times;
  const bool in_graph = !base::IsDisabled("graphs");
  const std::lock_guard<std::mutex> nobody_captures(DrawMutex());  // a timing captures
  for (int round = 0; round < kFusedRounds; ++round) {
    times.apart = std::min(times.apart, cuda.seconds(apart, in_graph));
    times.fused = std::min(times.fused, cuda.seconds([&] { ConvolveWithRelu(form, x, weight, sum, bias); }, in_graph));
  }
  LAZY_LOG(1, key, ": apart ", 1e6 * times.apart, ", fused ", 1e6 * times.fused, " us");
  return times;
}

// What f16 cannot tell from 0 is in every channel the same number of times what the images are, so the largest channel
// tells.
bool FitsF16(const at::Tensor& weight, const at::Tensor& bias) {
  constexpr double kSmallestLargest = 1.0 / 1024;  // its 2^14th part is the least that f16 can tell from 0
  const double largest = weight.abs().max().item().toDouble();
  const bool is_small = largest != 0 && largest < kSmallestLargest;
  return std::isfinite(largest) && !is_small && (!bias.defined() || bias.isfinite().all().item().toBool());
}

}  // namespace

bool HasFusedConvolutions() {
  const at::Context& context = at::globalContext();
  if (IsChosenByRule() && context.benchmarkCuDNN()) return false;
  return IsOnHost() || (context.userEnabledCuDNN() && !base::IsDisabled("autotune") && FindCudaProducts() != nullptr);
}

bool IsKnown(const FusedForm& fused) {
  return IsOnHost() || IsChosenByRule() || Choices::Get().Find(KeyOf(fused)).has_value();
}

bool IsFusedFaster(const FusedForm& fused) {
  if (IsOnHost()) return true;
  if (IsChosenByRule()) return IsFasterByRule(fused);
  const std::string key = KeyOf(fused);
  if (const std::optional<Choices::Choice> known = Choices::Get().Find(key)) return known->is_faster;
  Times times;
  const double start = SecondsNow();
  try {
    times = Time(fused, key);
  } catch (const std::exception& error) {  // no memory for it
    LAZY_LOG(1, key, ": ", error.what());
  }
  AccountOf(Venture::kConvolutions).Spend(SecondsNow() - start);
  const bool is_faster = times.fused < kFusedWorthIt * times.apart;
  const double saves = is_faster && std::isfinite(times.apart) ? times.apart - times.fused : 0;
  Choices::Get().Add(key, {is_faster, saves}, /*for_ever=*/std::isfinite(times.fused) && std::isfinite(times.apart));
  return is_faster;
}

double SecondsSaved(const FusedForm& fused) {
  if (IsOnHost() || IsChosenByRule()) return 0;
  const std::optional<Choices::Choice> known = Choices::Get().Find(KeyOf(fused));
  return known ? known->saves : 0;
}

bool KeepDigits(const std::vector<PackedConvolution>& convolutions) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return std::ranges::all_of(convolutions, [](const PackedConvolution& convolution) {
    return convolution.form.weight.dtype != at::kHalf || FitsF16(convolution.packed_weight, convolution.bias);
  });
}

c10::Storage RunCudnn(const PackedConvolution& convolution, const c10::Storage& x_content,
                      const c10::Storage& sum_content) {
  const Form& form = convolution.form;
  const at::Tensor x = Alias(x_content, form.x), sum = sum_content ? Alias(sum_content, form.result) : at::Tensor();
  LAZY_CHECK(convolution.has_relu || !(sum.defined() || convolution.bias.defined()),
             "a summand has neither bias nor sum");
  if (!convolution.has_relu) return ContentOf(Convolve(form, x, convolution.packed_weight), form.result);
  AccountOf(Venture::kConvolutions).Save(convolution.saves);
  const auto run = IsOnHost() ? &Emulate : &ConvolveWithRelu;
  return ContentOf(run(form, x, convolution.packed_weight, sum, convolution.bias), form.result);
}

}  // namespace torch_lazy::lazy
