// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/ledger.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <mutex>
#include <utility>

namespace torch_lazy::lazy {
namespace {

// What a venture gets, whatever it has saved: at the beginning, and of the time that passes. And how much of the time
// it may take while it tries; 1: all. The number of graphs is not to follow the clock.
struct Terms {
  const char* name;
  double credit_seconds, share_of_time, pace;
};
constexpr Terms kTerms[] = {
    {"products", 0.01, 0.005, 1},           // tries of 0.1 to 1 ms
    {"cuda_products", 0.5, 0.01, 1.0 / 3},  // of a GPU: some hundred sizes, of 5 ms each
    {"convolutions", 1, 0.01, 1},           // some twenty forms, of 20 ms each
    {"cuda_graphs", 0.25, 0, 1},            // a large plan's capture takes 30 ms
};
constexpr int64_t kMostRestNs = 50'000'000;
constexpr int64_t kNoRestNs = 10'000'000;  // so long a rest is left out: several attempts are made in a row

// All accounts of the process.
struct Ledger {
  struct Row {
    explicit Row(const Terms& terms) : account(terms.name, terms.credit_seconds, terms.share_of_time, terms.pace) {}
    explicit Row(absl::string_view name) : account(std::string(name), /*credit_seconds=*/0) {}
    Account account;
    Effort before;  // the last reset
  };
  Ledger() {
    for (const Terms& terms : kTerms) rows.emplace_back(terms);
  }
  std::mutex lock;
  std::deque<Row> rows;  // which stay where they are
};

Ledger& TheLedger() {
  static Ledger* const ledger = new Ledger;
  return *ledger;
}

constinit thread_local Savings* noting = nullptr;

int64_t NsNow() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// 0 for what is no time.
int64_t NsOf(double seconds) { return std::isfinite(seconds) && seconds > 0 ? static_cast<int64_t>(seconds * 1e9) : 0; }

void Add(std::atomic<int64_t>* sum, int64_t by) {
  if (by != 0) sum->fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

Account::Account(std::string name, double credit_seconds, double share_of_time, double pace)
    : name_(std::move(name)),
      share_of_time_(share_of_time),
      pace_(pace),
      begun_ns_(NsNow()),
      credit_ns_(NsOf(credit_seconds)) {}

bool Account::MayTry(double seconds) const {
  const bool is_at_rest = pace_ < 1 && rests_until_ns_.load(std::memory_order_relaxed) > NsNow() + kNoRestNs;
  return !is_at_rest && HasLeft(seconds);
}

int64_t Account::LeftNs() const {
  const int64_t of_time =
      share_of_time_ == 0 ? 0 : static_cast<int64_t>(share_of_time_ * static_cast<double>(NsNow() - begun_ns_));
  return credit_ns_ + of_time + deposited_ns_.load(std::memory_order_relaxed) +
         saved_ns_.load(std::memory_order_relaxed) - spent_ns_.load(std::memory_order_relaxed);
}

bool Account::HasLeft(double seconds) const { return NsOf(seconds) < LeftNs(); }

double Account::Left() const { return static_cast<double>(std::max<int64_t>(LeftNs(), 0)) / 1e9; }

void Account::Deposit(double seconds) { Add(&deposited_ns_, NsOf(seconds)); }

void Account::Spend(double seconds) {
  Add(&tried_, 1);
  Add(&spent_ns_, NsOf(seconds));
  if (pace_ == 1) return;
  const int64_t now = NsNow(), rest = static_cast<int64_t>(static_cast<double>(NsOf(seconds)) * (1 / pace_ - 1));
  rests_until_ns_ = std::min(std::max(rests_until_ns_.load(std::memory_order_relaxed), now) + rest, now + kMostRestNs);
}

void Account::Save(double seconds) {
  SaveOften(1, NsOf(seconds));
  if (noting != nullptr) noting->Add(this, NsOf(seconds));
}

void Account::SaveOften(int64_t runs, int64_t ns) {
  Add(&used_, runs);
  Add(&saved_ns_, ns);
}

Effort Account::counted() const {
  return {.tried = tried_.load(std::memory_order_relaxed),
          .used = used_.load(std::memory_order_relaxed),
          .spent_ns = spent_ns_.load(std::memory_order_relaxed),
          .saved_ns = saved_ns_.load(std::memory_order_relaxed)};
}

Account& AccountOf(Venture venture) {
  static Account* const* const accounts = [] {
    auto* const all = new Account*[std::size(kTerms)];
    for (size_t k = 0; k < std::size(kTerms); ++k) all[k] = &TheLedger().rows[k].account;
    return all;
  }();
  return *accounts[static_cast<size_t>(venture)];
}

Account& AccountOf(absl::string_view name) {
  Ledger& ledger = TheLedger();
  const std::lock_guard<std::mutex> lock(ledger.lock);
  const auto found =
      std::ranges::find_if(ledger.rows, [&](const Ledger::Row& row) { return row.account.name() == name; });
  return found != ledger.rows.end() ? found->account : ledger.rows.emplace_back(name).account;
}

Savings::Noting::Noting(Savings* savings) { noting = savings; }

Savings::Noting::~Noting() { noting = nullptr; }

void Savings::Add(Account* account, int64_t ns) {
  auto found = std::ranges::find(all_, account, &Saved::account);
  if (found == all_.end()) found = all_.insert(all_.end(), {account, 0, 0});
  ++found->runs;
  found->ns += ns;
}

void Savings::Repeat() const {
  for (const Saved& saved : all_) saved.account->SaveOften(saved.runs, saved.ns);
}

std::vector<std::pair<std::string, Effort>> Efforts() {
  Ledger& ledger = TheLedger();
  const std::lock_guard<std::mutex> lock(ledger.lock);
  std::vector<std::pair<std::string, Effort>> efforts;
  for (const Ledger::Row& row : ledger.rows) {
    const Effort now = row.account.counted(), &before = row.before;
    efforts.emplace_back(row.account.name(), Effort{.tried = now.tried - before.tried,
                                                    .used = now.used - before.used,
                                                    .spent_ns = now.spent_ns - before.spent_ns,
                                                    .saved_ns = now.saved_ns - before.saved_ns});
  }
  return efforts;
}

void ResetEfforts() {
  Ledger& ledger = TheLedger();
  const std::lock_guard<std::mutex> lock(ledger.lock);
  for (Ledger::Row& row : ledger.rows) row.before = row.account.counted();
}

double SecondsNow() { return static_cast<double>(NsNow()) / 1e9; }

}  // namespace torch_lazy::lazy
