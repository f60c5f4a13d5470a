// SPDX-License-Identifier: Apache-2.0
#include "lazy/tuned_product.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <dlfcn.h>
#include <torch/version.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/background.h"

namespace torch_lazy::lazy {
namespace {

constexpr double kFewestOperations = 1e6;  // below, oneDNN's call costs more than it can save
constexpr double kFewestByRule = 3e7;      // 0.15 ms of two processors: one call more is then nothing
constexpr double kWorthIt = 0.97;          // of MKL's time
constexpr size_t kMostKnown = 1 << 14;     // shapes; those that come later are not tuned

constexpr const char* kNames[] = {"mkl", "onednn"};

// at::native::mkldnn_matmul(x, y, result, beta, alpha), which PyTorch uses for 16-bit floats; no header declares it.
using OneDnnMatmul = void (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, float, float);

OneDnnMatmul FindOneDnn() {
  static const auto found =
      reinterpret_cast<OneDnnMatmul>(dlsym(RTLD_DEFAULT, "_ZN2at6native13mkldnn_matmulERKNS_6TensorES3_S3_ff"));
  return found;
}

enum class Order : int { kRows, kColumns, kOther };

// Whether the matrices lie one after the other, row by row or column by column; oneDNN's caller copies others.
Order OrderOf(const Geometry& matrix) {
  const size_t rank = matrix.sizes.size();
  const int64_t rows = matrix.sizes[rank - 2], columns = matrix.sizes[rank - 1];
  const int64_t row = matrix.strides[rank - 2], column = matrix.strides[rank - 1];
  if (rank == 3 && matrix.sizes[0] != 1 && matrix.strides[0] != rows * columns) return Order::kOther;
  if (column == 1 && row == columns) return Order::kRows;
  return row == 1 && column == rows ? Order::kColumns : Order::kOther;
}

}  // namespace

TunedProduct* TunedProduct::For(const Geometry& x, const Geometry& y, const Geometry& result, bool deterministic) {
  const double operations = 2.0 * static_cast<double>(c10::multiply_integers(x.sizes) * y.sizes.back());
  if (x.dtype != at::kFloat || operations < kFewestOperations || FindOneDnn() == nullptr) return nullptr;
  const Order x_order = OrderOf(x), y_order = OrderOf(y);
  if (x_order == Order::kOther || y_order == Order::kOther || OrderOf(result) != Order::kRows) return nullptr;
  const at::Context& context = at::globalContext();
  const at::Float32Precision precision = context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  const bool is_exact = precision == at::Float32Precision::NONE || precision == at::Float32Precision::IEEE;
  if (!is_exact || !context.userEnabledMkldnn() || base::IsDisabled("autotune")) return nullptr;
  static auto* const one_dnns = new TunedProduct(kOneDnn);
  if (deterministic) return operations < kFewestByRule ? nullptr : one_dnns;

  std::string key = absl::StrCat("product f32 [", absl::StrJoin(x.sizes, ","), x_order == Order::kRows ? "] [" : "]t [",
                                 absl::StrJoin(y.sizes, ","), y_order == Order::kRows ? "]" : "]t", " threads ",
                                 at::get_num_threads(), " torch ", TORCH_VERSION);
  static std::mutex* const lock = new std::mutex;
  static auto* const known = new absl::flat_hash_map<std::string, std::unique_ptr<TunedProduct>>;
  std::lock_guard<std::mutex> guard(*lock);
  const auto found = known->find(key);
  if (found != known->end()) return found->second.get();
  if (known->size() >= kMostKnown) return nullptr;
  std::unique_ptr<TunedProduct>& product = (*known)[key];
  product.reset(new TunedProduct(std::move(key)));
  return product.get();
}

TunedProduct::TunedProduct(std::string key) : key_(std::move(key)) {
  fastest_.fill(std::numeric_limits<double>::infinity());
  const std::string word = backends::Get().Recall(key_);
  const auto name = std::find(std::begin(kNames), std::end(kNames), word);
  if (name != std::end(kNames)) winner_ = static_cast<Library>(name - std::begin(kNames));
}

void TunedProduct::Multiply(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result) {
  static std::atomic<int64_t>* const counts[] = {&base::Cell(base::Tally::kTunedProducts, kNames[kMkl]),
                                                 &base::Cell(base::Tally::kTunedProducts, kNames[kOneDnn])};
  counts[library]->fetch_add(1, std::memory_order_relaxed);
  if (library == kOneDnn) {
    FindOneDnn()(x, y, *result, /*beta=*/0, /*alpha=*/1);
  } else if (x.dim() == 2) {
    at::mm_out(*result, x, y);
  } else {
    at::bmm_out(*result, x, y);
  }
}

void TunedProduct::AddRun(Library library, double seconds) {
  std::lock_guard<std::mutex> guard(lock_);
  fastest_[library] = std::min(fastest_[library], seconds);
  if (++done_ != kRuns) return;
  const Library winner = fastest_[kOneDnn] < kWorthIt * fastest_[kMkl] ? kOneDnn : kMkl;
  winner_ = winner;
  LAZY_LOG(1, key_, ": ", kNames[winner], ", ", 1e6 * fastest_[kMkl], " and ", 1e6 * fastest_[kOneDnn], " us");
  InBackground([key = key_, winner] { backends::Get().Keep(key, kNames[winner]); });
}

void TunedProduct::Run(const at::Tensor& x, const at::Tensor& y, at::Tensor* result) {
  using Clock = std::chrono::steady_clock;
  const Library winner = winner_.load(std::memory_order_relaxed);
  if (winner != kUnknown) return Multiply(winner, x, y, result);
  const int run = begun_.fetch_add(1, std::memory_order_relaxed);
  const Library library = run % 2 == 0 || run >= kRuns ? kMkl : kOneDnn;
  const Clock::time_point start = Clock::now();
  Multiply(library, x, y, result);
  if (run < kRuns) AddRun(library, std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace torch_lazy::lazy
