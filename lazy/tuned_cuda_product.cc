// SPDX-License-Identifier: Apache-2.0
#include "lazy/tuned_cuda_product.h"

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
#include "lazy/background.h"
#include "lazy/cuda_library.h"

namespace torch_lazy::lazy {
namespace {

constexpr double kFewestOperations = 1e9;  // 2 us of an H200
constexpr int64_t kFewestOfEach = 8;       // rows, columns and terms
constexpr double kWorthIt = 0.97;          // of ATen's time
constexpr int kRounds = 2;                 // the faster one counts
constexpr size_t kMostKnown = 1 << 12;     // shapes; those that come later are ATen's
constexpr const char* kAtensWord = "aten";

const CudaProducts* Open() {
  const auto products = reinterpret_cast<const CudaProducts* (*)()>(FindInCudaLibrary("torch_lazy_cuda_products"));
  return products == nullptr ? nullptr : products();
}

std::string WordOf(const Geometry& matrix) {
  return absl::StrCat("[", absl::StrJoin(matrix.sizes, ","), "; ", absl::StrJoin(matrix.strides, ","), "]");
}

// What ATen's products depend on beside their operands; only its defaults are known here.
bool AreSettingsUsual(const at::Context& context) {
  constexpr auto kUsual = at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  return !context.deterministicAlgorithms() && context.allowFP16ReductionCuBLAS() == kUsual &&
         context.allowBF16ReductionCuBLAS() == kUsual && !context.allowFP16AccumulationCuBLAS();
}

bool IsLarge(const Geometry& x, const Geometry& y) {
  const double operations = 2.0 * static_cast<double>(c10::multiply_integers(x.sizes)) * static_cast<double>(y.sizes.back());
  const size_t rank = x.sizes.size();
  return operations >= kFewestOperations && std::min({x.sizes[rank - 2], x.sizes[rank - 1], y.sizes[rank - 1]}) >= kFewestOfEach;
}

}  // namespace

const CudaProducts* FindCudaProducts() {
  static const CudaProducts* const products = Open();
  return products;
}

TunedCudaProduct* TunedCudaProduct::For(const Geometry& x, const Geometry& y, const Geometry& bias, const Geometry& result,
                                        bool is_relu) {
  const at::Context& context = at::globalContext();
  if (x.dtype == at::kDouble || !IsLarge(x, y) || base::IsDisabled("autotune") || !AreSettingsUsual(context)) return nullptr;
  const CudaProducts* const products = FindCudaProducts();
  if (products == nullptr) return nullptr;
  const bool is_tf32 = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32;
  const std::string key = absl::StrCat("product ", c10::toString(x.dtype), x.dtype == at::kFloat && is_tf32 ? " tf32 " : " ", WordOf(x), " ",
                                 WordOf(y), bias.sizes.empty() ? " " : is_relu ? " bias relu " : " bias ", WordOf(result));
  static std::mutex* const lock = new std::mutex;
  static auto* const known = new absl::flat_hash_map<std::string, std::unique_ptr<TunedCudaProduct>>;
  std::lock_guard<std::mutex> guard(*lock);
  const auto found = known->find(key);
  if (found != known->end()) return found->second.get();
  if (known->size() >= kMostKnown) return nullptr;
  return known->emplace(key, std::make_unique<TunedCudaProduct>(*products, key)).first->second.get();
}

TunedCudaProduct::TunedCudaProduct(const CudaProducts& products, const std::string& key)
    : products_(products), key_(absl::StrCat(key, " ", products.machine())) {}

// Its first run: what the disk knows is taken at once.
void TunedCudaProduct::Begin(const ProductTensors& tensors) {
  product_ = products_.make(tensors);
  state_ = product_ == nullptr ? State::kAtens : State::kSeen;
  if (product_ == nullptr) return;
  const std::string word = backends::Get().Recall(key_);
  if (word == kAtensWord) state_ = State::kAtens;
  else if (!word.empty() && products_.choose(product_, word)) state_ = State::kChosen;
}

void TunedCudaProduct::Tune(const ProductTensors& tensors, const std::function<void()>& atens) {
  std::vector<std::string> words = products_.candidates(product_);
  std::vector<double> fastest(words.size(), INFINITY);
  double by_aten = INFINITY;
  const bool in_graph = !base::IsDisabled("graphs");
  for (int round = 0; round < kRounds; ++round) {
    by_aten = std::min(by_aten, products_.seconds(atens, in_graph));
    for (size_t k = 0; k < words.size(); ++k) {
      if (!products_.choose(product_, words[k])) continue;
      bool ran = true;
      const double seconds = products_.seconds([&] { ran = products_.run(product_, tensors) && ran; }, in_graph);
      if (ran) fastest[k] = std::min(fastest[k], seconds);
    }
  }
  const auto best = std::min_element(fastest.begin(), fastest.end());
  const bool wins = best != fastest.end() && std::isfinite(by_aten) && *best < kWorthIt * by_aten &&
                    products_.choose(product_, words[static_cast<size_t>(best - fastest.begin())]);
  state_ = wins ? State::kChosen : State::kAtens;
  LAZY_LOG(1, key_, ": aten ", 1e6 * by_aten, ", best of ", words.size(), " ", best == fastest.end() ? 0 : 1e6 * *best, " us");
  if (!std::isfinite(by_aten)) return;
  std::string word = wins ? words[static_cast<size_t>(best - fastest.begin())] : kAtensWord;
  InBackground([key = key_, word = std::move(word)] { backends::Get().Keep(key, word); });
}

void TunedCudaProduct::Run(const ProductTensors& tensors, const std::function<void()>& atens) {
  static std::atomic<int64_t>& count = base::Cell(base::Tally::kTunedProducts, "cublaslt");
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (state_ == State::kNew) {
      if (!products_.is_capturing()) Begin(tensors);
    } else if (state_ == State::kSeen && !products_.is_capturing()) {
      Tune(tensors, atens);
    }
    if (state_ == State::kChosen && products_.run(product_, tensors)) {
      count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  atens();
}

}  // namespace torch_lazy::lazy
