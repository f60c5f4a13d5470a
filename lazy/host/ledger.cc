// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/ledger.h"

#include <array>
#include <chrono>
#include <cmath>

namespace torch_lazy::lazy {
namespace {

// What a venture gets, whatever it has saved: at the beginning, and of the time that passes. The number of graphs is
// not to follow the clock.
struct Terms {
  double credit_seconds, share_of_time;
};
constexpr Terms kTerms[] = {
    {0.05, 0.01},  // products: tries of 0.1 to 1 ms
    {0.5, 0.01},   // of a GPU: a dozen sizes, of 10 ms each
    {1, 0.01},     // convolutions: some twenty forms, of 20 ms each
    {0.25, 0},     // graphs: a large plan's capture takes 30 ms
};

const Terms& TermsOf(Venture venture) { return kTerms[static_cast<size_t>(venture)]; }

thread_local std::array<int64_t, std::size(kTerms)> saved_here_ns{};

int64_t NsNow() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int64_t NsOf(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

bool IsSome(double seconds) { return std::isfinite(seconds) && seconds > 0; }

}  // namespace

Account::Account(Venture venture) : Account(venture, TermsOf(venture).credit_seconds) {}

Account::Account(Venture venture, double credit_seconds)
    : venture_(venture), begun_ns_(NsNow()), credit_ns_(NsOf(credit_seconds)) {}

bool Account::MayTry() const {
  const double share = TermsOf(venture_).share_of_time;
  const int64_t given =
      credit_ns_ + (share == 0 ? 0 : static_cast<int64_t>(share * static_cast<double>(NsNow() - begun_ns_)));
  return spent_ns_.load(std::memory_order_relaxed) < given + saved_ns_.load(std::memory_order_relaxed);
}

void Account::Spend(double seconds) {
  if (!IsSome(seconds)) return;
  spent_ns_.fetch_add(NsOf(seconds), std::memory_order_relaxed);
}

void Account::Save(double seconds) {
  if (!IsSome(seconds)) return;
  saved_ns_.fetch_add(NsOf(seconds), std::memory_order_relaxed);
  saved_here_ns[static_cast<size_t>(venture_)] += NsOf(seconds);
}

double Account::SavedHere() const { return static_cast<double>(saved_here_ns[static_cast<size_t>(venture_)]) / 1e9; }

Account& AccountOf(Venture venture) {
  static Account* const accounts[] = {new Account(Venture::kProducts), new Account(Venture::kCudaProducts),
                                      new Account(Venture::kConvolutions), new Account(Venture::kCudaGraphs)};
  return *accounts[static_cast<size_t>(venture)];
}

double SecondsNow() { return static_cast<double>(NsNow()) / 1e9; }

}  // namespace torch_lazy::lazy
