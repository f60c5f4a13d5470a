// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/tuned_cuda_product.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include <ATen/Context.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/cuda/load_library.h"
#include "lazy/cuda/philox.h"
#include "lazy/host/background.h"
#include "lazy/host/ledger.h"
#include "lazy/libraries/similar_sizes.h"

namespace torch_lazy::lazy {
namespace {

constexpr double kFewestCudaOperations = 1e9;  // 2 us of an H200
constexpr double kVeryManyOperations = 2e10;   // 40 us
constexpr size_t kTried = 3, kTriedOfVeryMany = 8;
constexpr int64_t kFewestOfEach = 8;          // rows, columns and terms
constexpr double kCudaWorthIt = 0.97;         // of ATen's time
constexpr double kContends = 1.1;             // times the fastest: who is slower is not tried again
constexpr size_t kMostKnownToCuda = 1 << 12;  // sizes; those that come later are ATen's
constexpr int kCudaParts = 4;                 // of an octave: sizes that far from each other are not similar
constexpr const char* kAtensWord = "aten";

const CudaProducts* OpenCudaProducts() {
  const auto products = reinterpret_cast<const CudaProducts* (*)()>(FindInCudaLibrary("torch_lazy_cuda_products"));
  return products == nullptr ? nullptr : products();
}

std::string WordOf(c10::IntArrayRef numbers) {
  return SimilarWord({numbers.data(), numbers.size()}, kCudaParts, /*aligned=*/true);
}

std::string WordOf(const Geometry& matrix) { return WordOf(matrix.sizes) + WordOf(matrix.strides); }

// The size itself.
std::string SizeOf(const Geometry& matrix) {
  return absl::StrCat("[", absl::StrJoin(matrix.sizes, ","), "; ", absl::StrJoin(matrix.strides, ","), "]");
}

// What ATen's products depend on beside their operands; only its defaults are known here.
bool AreSettingsUsual(const at::Context& context) {
  constexpr auto kUsual = at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  return !context.deterministicAlgorithms() && context.allowFP16ReductionCuBLAS() == kUsual &&
         context.allowBF16ReductionCuBLAS() == kUsual && !context.allowFP16AccumulationCuBLAS();
}

double OperationsOf(const Geometry& x, const Geometry& y) {
  return 2.0 * static_cast<double>(c10::multiply_integers(x.sizes)) * static_cast<double>(y.sizes.back());
}

bool IsLarge(const Geometry& x, const Geometry& y) {
  const size_t rank = x.sizes.size();
  return OperationsOf(x, y) >= kFewestCudaOperations &&
         std::min({x.sizes[rank - 2], x.sizes[rank - 1], y.sizes[rank - 1]}) >= kFewestOfEach;
}

}  // namespace

const CudaProducts* FindCudaProducts() {
  static const CudaProducts* const products = OpenCudaProducts();
  return products;
}

TunedCudaProduct* TunedCudaProduct::For(const Geometry& x, const Geometry& y, const Geometry& bias,
                                        const Geometry& result, bool is_relu) {
  const at::Context& context = at::globalContext();
  if (x.dtype == at::kDouble || !IsLarge(x, y) || base::IsDisabled("autotune") || !AreSettingsUsual(context))
    return nullptr;
  const CudaProducts* const products = FindCudaProducts();
  if (products == nullptr) return nullptr;
  const bool is_tf32 =
      context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32;
  const char* const precision = x.dtype == at::kFloat && is_tf32 ? " tf32 " : " ";
  const char* const ends = bias.sizes.empty() ? " " : is_relu ? " bias relu " : " bias ";
  std::string key = absl::StrCat("products ", c10::toString(x.dtype), precision, WordOf(x), " ", WordOf(y), ends,
                                 WordOf(result), " ", products->machine());
  static std::mutex* const lock = new std::mutex;
  static auto* const choices = new absl::flat_hash_map<std::string, std::unique_ptr<CudaProductChoice>>;
  static auto* const known = new absl::flat_hash_map<std::string, std::unique_ptr<TunedCudaProduct>>;
  std::lock_guard<std::mutex> guard(*lock);
  const auto [place, is_new] = known->try_emplace(absl::StrCat(key, SizeOf(x), SizeOf(y), SizeOf(result)));
  if (!is_new) return place->second.get();
  if (known->size() > kMostKnownToCuda) {
    known->erase(place);
    return nullptr;
  }
  std::unique_ptr<CudaProductChoice>& choice = (*choices)[key];
  if (choice == nullptr) choice = std::make_unique<CudaProductChoice>(std::move(key));
  const size_t most_tried = OperationsOf(x, y) < kVeryManyOperations ? kTried : kTriedOfVeryMany;
  place->second = std::make_unique<TunedCudaProduct>(*products, choice.get(), most_tried);
  return place->second.get();
}

// What is to be done once is done outside of captures.
void TunedCudaProduct::Prepare(const ProductTensors& tensors, const std::function<void()>& atens) {
  using Choice = CudaProductChoice::State;
  if (state_ == State::kNew) {
    product_ = products_.make(tensors);
    state_ = product_ == nullptr ? State::kAtens : State::kWaits;
  }
  if (state_ != State::kWaits) return;
  if (choice_.state == Choice::kNew) {  // what the disk knows is taken at once
    choice_.word = backends::Get().Recall(choice_.key);
    choice_.state = choice_.word.empty() ? Choice::kSeen : Choice::kKnown;
  } else if (choice_.state == Choice::kSeen && AccountOf(Venture::kCudaProducts).MayTry()) {
    // A trial captures. Where another thread does so it is left to a later run: that one may wait for this choice.
    const std::unique_lock<std::mutex> nobody_captures(DrawMutex(), std::try_to_lock);
    if (nobody_captures.owns_lock()) Tune(tensors, atens);
  }
  if (choice_.state != Choice::kKnown) return;
  const bool chosen = choice_.word != kAtensWord && products_.choose(product_, choice_.word);
  state_ = chosen ? State::kChosen : State::kAtens;
}

void TunedCudaProduct::Tune(const ProductTensors& tensors, const std::function<void()>& atens) {
  const double start = SecondsNow();
  std::vector<std::string> words = products_.candidates(product_);
  words.resize(std::min(words.size(), most_tried_));
  std::vector<double> fastest(words.size(), 0);
  double by_aten = 0;
  const auto may_win = [&] {
    return !words.empty() && std::isfinite(by_aten) && *std::ranges::min_element(fastest) < kCudaWorthIt * by_aten;
  };
  for (const bool again : {false, true}) {
    if (again && !may_win()) break;
    const bool in_graph = again && !base::IsDisabled("graphs");
    const double contends = again ? kContends * *std::ranges::min_element(fastest) : INFINITY;
    by_aten = products_.seconds(atens, in_graph);
    for (size_t k = 0; k < words.size(); ++k) {
      bool ran = fastest[k] <= contends && products_.choose(product_, words[k]);
      const double seconds =
          ran ? products_.seconds([&] { ran = products_.run(product_, tensors) && ran; }, in_graph) : INFINITY;
      fastest[k] = ran ? seconds : INFINITY;
    }
  }
  const auto best = std::min_element(fastest.begin(), fastest.end());
  const bool wins = may_win();
  choice_.state = CudaProductChoice::State::kKnown;
  choice_.word = wins ? words[static_cast<size_t>(best - fastest.begin())] : kAtensWord;
  choice_.saves = wins ? by_aten - *best : 0;
  AccountOf(Venture::kCudaProducts).Spend(SecondsNow() - start);
  LAZY_LOG(1, choice_.key, ": aten ", 1e6 * by_aten, ", number ", best - fastest.begin(), " of ", words.size(), " ",
           best == fastest.end() ? 0 : 1e6 * *best, " us, tried in ", 1e3 * (SecondsNow() - start), " ms");
  if (!std::isfinite(by_aten)) return;
  InBackground([key = choice_.key, word = choice_.word] { backends::Get().Keep(key, word); });
}

bool TunedCudaProduct::AwaitsTrial() const {
  const std::lock_guard<std::mutex> guard(choice_.lock);
  return state_ == State::kWaits && choice_.state == CudaProductChoice::State::kSeen &&
         AccountOf(Venture::kCudaProducts).HasLeft();
}

void TunedCudaProduct::Run(const ProductTensors& tensors, const std::function<void()>& atens) {
  static std::atomic<int64_t>& count = base::Cell(base::Tally::kTunedProducts, "cublaslt");
  {
    const std::lock_guard<std::mutex> guard(choice_.lock);
    if ((state_ == State::kNew || state_ == State::kWaits) && !products_.is_capturing()) Prepare(tensors, atens);
    if (state_ == State::kChosen && products_.run(product_, tensors)) {
      AccountOf(Venture::kCudaProducts).Save(choice_.saves);
      count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  atens();
}

}  // namespace torch_lazy::lazy
