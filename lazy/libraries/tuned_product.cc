// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/tuned_product.h"

#include <algorithm>
#include <bit>
#include <memory>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <dlfcn.h>
#include <torch/version.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "backends/registry.h"
#include "base/at_work.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/host/background.h"
#include "lazy/host/ledger.h"
#include "lazy/libraries/similar_sizes.h"

namespace torch_lazy::lazy {
namespace {

constexpr double kFewestOperations = 1e6;  // below, oneDNN's call costs more than it can save
constexpr double kFewestByRule = 3e7;      // 0.15 ms of two processors: one call more is then nothing
constexpr double kWorthIt = 0.97;          // of MKL's time
constexpr size_t kMostKnown = 1 << 14;     // sizes; those that come later are not tuned
constexpr int kMostPlaces = 512;           // sizes that oneDNN has code for at a time
constexpr int kTries = 8;                  // of each library, beside oneDNN's first
constexpr int kFewTries = 3;               // after which who is behind has lost
constexpr int kLatestRun = 1 << 12;
constexpr double kHeldUp = 4;            // times MKL's: what takes longer waited for a processor
constexpr double kLongestMaking = 5e-3;  // seconds, of oneDNN's code: likewise
constexpr int kParts = 2;                // of an octave: sizes that far from each other are not similar

constexpr const char* kNames[] = {"mkl", "onednn"};

// at::native::mkldnn_matmul(x, y, result, beta, alpha), which PyTorch uses for 16-bit floats; no header declares it.
using OneDnnMatmul = void (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, float, float);

// It refuses all types on a processor that has no instructions for 16-bit floats, as those with AVX2 alone.
bool TakesProducts() {
  const auto supports = c10::Dispatcher::singleton().findSchema({"mkldnn::_is_mkldnn_bf16_supported", ""});
  return supports.has_value() && supports->typed<bool()>().call();
}

// Null where it would refuse.
OneDnnMatmul FindOneDnn() {
  static const auto found =
      TakesProducts()
          ? reinterpret_cast<OneDnnMatmul>(dlsym(RTLD_DEFAULT, "_ZN2at6native13mkldnn_matmulERKNS_6TensorES3_S3_ff"))
          : nullptr;
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

// Of sizes that are similar.
std::string KeyOf(const Geometry& x, const Geometry& y) {
  const auto word = [](const Geometry& matrix) {
    return absl::StrCat(SimilarWord(matrix.sizes, kParts, /*aligned=*/false),
                        OrderOf(matrix) == Order::kRows ? " " : "t ");
  };
  return absl::StrCat("products f32 ", word(x), word(y), "threads ", at::get_num_threads(), " torch ", TORCH_VERSION);
}

// The size itself.
std::string SizeOf(const Geometry& x, const Geometry& y) {
  return absl::StrCat(absl::StrJoin(x.sizes, ","), "x", y.sizes.back(), OrderOf(x) == Order::kRows ? "n" : "t",
                      OrderOf(y) == Order::kRows ? "n" : "t");
}

// oneDNN's first product in a process takes much longer than any other: code for all is made. What it took is kept on
// disk, and another process makes its first when it may spend as much. A short program would pay for it at each run,
// and end before a choice is made.
class FirstProduct {
 public:
  static FirstProduct& Get() {
    static FirstProduct* const first = new FirstProduct;
    return *first;
  }

  // Seconds that the next product takes beside the usual.
  double Costs() const { return is_made_.load(std::memory_order_relaxed) ? 0 : known_; }
  void Made(double seconds) {
    if (is_made_.exchange(true) || (known_ > 0 && known_ <= seconds)) return;
    InBackground([seconds = std::min(seconds, kLongest)] { backends::Get().Keep(Key(), absl::StrCat(seconds)); });
  }

 private:
  static constexpr double kLongest = 0.1;  // what takes longer waited for a processor

  FirstProduct() {
    if (!absl::SimpleAtod(backends::Get().Recall(Key()), &known_) || !(known_ > 0)) known_ = 0;
    known_ = std::min(known_, kLongest);
  }
  static std::string Key() { return absl::StrCat("first of onednn, torch ", TORCH_VERSION); }

  double known_ = 0;  // 0: it is not
  std::atomic<bool> is_made_{false};
};

// A short program could pay for no try, or for one now and then in its last steps, and would never decide. So what a
// process has left to spend when it ends is the next one's, where products are undecided.
class Inheritance {
 public:
  // Takes it over, once.
  static void Take() {
    static const bool taken = [] {
      known_ = std::clamp(Recalled(), 0.0, kMost);
      AccountOf(Venture::kProducts).Deposit(known_);
      base::CallAtExit(&Leave);
      return true;
    }();
    static_cast<void>(taken);
  }

 private:
  static constexpr double kMost = 0.1;  // seconds that one process may find: the first product takes no longer

  static double Recalled() {
    double seconds = 0;
    return absl::SimpleAtod(backends::Get().Recall(Key()), &seconds) ? seconds : 0;
  }
  static void Leave() {
    static std::atomic<bool> has_left{false};
    if (has_left.exchange(true)) return;
    const double left = std::min(AccountOf(Venture::kProducts).Left(), kMost);
    if (left != known_) backends::Get().Keep(Key(), absl::StrCat(left));
  }
  static std::string Key() { return absl::StrCat("left for products, torch ", TORCH_VERSION); }

  inline static double known_ = 0;
};

}  // namespace

ProductChoice::ProductChoice(std::string key) : key_(std::move(key)) {
  const std::string kept = backends::Get().Recall(key_);
  absl::string_view word = kept;
  int run = 0;
  if (word == kNames[0]) {
    first_run_ = kNever;
  } else if (absl::ConsumePrefix(&word, kNames[1]) && absl::SimpleAtoi(word, &run) && run >= 0) {
    first_run_ = run;
  }
}

void ProductChoice::Decide(double mkl, double onednn, double making, double operations) {
  int run = kNever;
  double saves = 0;
  if (onednn < kWorthIt * mkl) {
    saves = mkl - onednn;
    const double paid = std::clamp(making / ((mkl - onednn) * operations), 1.0, double{kLatestRun});
    run = static_cast<int>(std::bit_ceil(static_cast<unsigned>(paid)));
  }
  int unknown = kUnknown;
  if (!first_run_.compare_exchange_strong(unknown, run)) return;
  saves_ = saves;
  LAZY_LOG(1, key_, ": ", run == kNever ? "mkl" : "onednn", ", ", 1e6 * mkl * operations, " and ",
           1e6 * onednn * operations, " us, code ", 1e6 * making, " us");
  InBackground([key = key_, word = run == kNever ? kNames[0] : absl::StrCat(kNames[1], " ", run)] {
    backends::Get().Keep(key, word);
  });
}

TunedProduct* TunedProduct::For(const Geometry& x, const Geometry& y, const Geometry& result, bool deterministic) {
  const double operations = 2.0 * static_cast<double>(c10::multiply_integers(x.sizes) * y.sizes.back());
  if (x.dtype != at::kFloat || operations < kFewestOperations || FindOneDnn() == nullptr) return nullptr;
  if (OrderOf(x) == Order::kOther || OrderOf(y) == Order::kOther || OrderOf(result) != Order::kRows) return nullptr;
  const at::Context& context = at::globalContext();
  const at::Float32Precision precision = context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  const bool is_exact = precision == at::Float32Precision::NONE || precision == at::Float32Precision::IEEE;
  if (!is_exact || !context.userEnabledMkldnn() || base::IsDisabled("autotune")) return nullptr;
  static auto* const one_dnns = new TunedProduct(new ProductChoice, /*operations=*/0);
  if (deterministic) return operations < kFewestByRule ? nullptr : one_dnns;

  static std::mutex* const lock = new std::mutex;
  static auto* const choices = new absl::flat_hash_map<std::string, std::unique_ptr<ProductChoice>>;
  static auto* const known = new absl::flat_hash_map<std::string, std::unique_ptr<TunedProduct>>;
  std::string key = KeyOf(x, y);
  std::lock_guard<std::mutex> guard(*lock);
  const auto [place, is_new] = known->try_emplace(absl::StrCat(key, SizeOf(x, y)));
  if (!is_new) return place->second.get();
  if (known->size() > kMostKnown) {
    known->erase(place);
    return nullptr;
  }
  std::unique_ptr<ProductChoice>& choice = (*choices)[key];
  if (choice == nullptr) choice = std::make_unique<ProductChoice>(std::move(key));
  place->second.reset(new TunedProduct(choice.get(), operations));
  return place->second.get();
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

bool TunedProduct::HasPlace() {
  static std::atomic<int> taken{0};
  if (place_.load(std::memory_order_relaxed) < 0)
    place_.store(taken.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  return place_.load(std::memory_order_relaxed) < kMostPlaces;
}

// The second run of a size is the first that may begin one: then it has come again. Where nothing may be spent, each
// later run asks.
bool TunedProduct::IsTrial(int64_t run) {
  if (run > 0) Inheritance::Take();
  if (run == 0 || !AccountOf(Venture::kProducts).MayTry(FirstProduct::Get().Costs())) return false;
  if (!is_trial_) is_trial_ = choice_.TakeTrial() && HasPlace();
  return is_trial_;
}

double TunedProduct::Time(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result) {
  static std::atomic<int64_t>& timed = base::Cell(base::Tally::kTunedProducts, "timed");
  timed.fetch_add(1, std::memory_order_relaxed);
  const double start = SecondsNow();
  Multiply(library, x, y, result);
  const double seconds = SecondsNow() - start;
  if (library == kOneDnn) FirstProduct::Get().Made(seconds);
  if (++tries_[library] == 1 && library == kOneDnn) {
    first_ = std::min(seconds, kLongestMaking + kHeldUp * fastest_[kMkl]);
  } else {
    fastest_[library] = fastest_[library] == 0 ? seconds : std::min(fastest_[library], seconds);
  }
  return seconds;
}

// True if there is nothing more to be tried.
bool TunedProduct::TryDecide() {
  const int tries = std::min(tries_[kMkl], tries_[kOneDnn] - 1);
  const bool is_behind = tries >= kFewTries && fastest_[kOneDnn] >= kWorthIt * fastest_[kMkl];
  if (tries < kTries && !is_behind) return false;
  choice_.Decide(fastest_[kMkl] / operations_, fastest_[kOneDnn] / operations_, first_ - fastest_[kOneDnn],
                 operations_);
  return true;
}

// A run takes turns with those before and after it. While that takes no longer than oneDNN's code did, both libraries
// run again at once.
void TunedProduct::Try(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result) {
  const double begun = SecondsNow();
  Time(library, x, y, result);
  if (library == kMkl) return;
  for (double again = 0; !TryDecide() && again + 2 * fastest_[kMkl] < first_;)
    again += Time(kMkl, x, y, result) + Time(kOneDnn, x, y, result);
  const double spent = SecondsNow() - begun - fastest_[kMkl];
  AccountOf(Venture::kProducts).Spend(spent);
}

void TunedProduct::Run(const at::Tensor& x, const at::Tensor& y, at::Tensor* result) {
  // What oneDNN keeps for the first thread has ended by the time that handlers of exit() run there.
  if (base::IsExiting()) return Multiply(kMkl, x, y, result);
  const int64_t run = runs_.fetch_add(1, std::memory_order_relaxed);
  const int first_run = choice_.first_run();
  if (first_run == ProductChoice::kAlways) return Multiply(kOneDnn, x, y, result);
  if (first_run != ProductChoice::kUnknown) {
    const bool by_onednn = first_run != ProductChoice::kNever && run >= first_run && HasPlace();
    if (by_onednn) AccountOf(Venture::kProducts).Save(choice_.saves() * operations_);
    return Multiply(by_onednn ? kOneDnn : kMkl, x, y, result);
  }
  static std::atomic<int64_t>& undecided = base::Cell(base::Tally::kTunedProducts, "undecided");
  if (run > 0) undecided.fetch_add(1, std::memory_order_relaxed);
  const std::unique_lock<std::mutex> lock(lock_, std::try_to_lock);
  if (!lock.owns_lock() || !IsTrial(run)) return Multiply(kMkl, x, y, result);
  Try(run % 2 == 0 ? kOneDnn : kMkl, x, y, result);
}

}  // namespace torch_lazy::lazy
