// SPDX-License-Identifier: Apache-2.0
// What efforts to be faster cost this process, and what they bring: attempts, runs and seconds. explain() tells it.
//
//   Account& account = AccountOf(Venture::kCudaGraphs);
//   if (account.MayTry()) account.Spend(seconds of a capture);
//   account.Save(seconds that a replay took less);
//
// Timing two libraries, or capturing a CUDA graph, costs time now and saves some at each later run, if there are any.
// So each such venture has an account with a limit. It begins with a credit, and most get a hundredth of the time that
// passes, or less; beyond that they may spend what they have saved. Then nothing more is tried until more is saved.
// Some have a pace, too: however much they own, they rest after what they have spent, so that no step waits long. What
// was found stays in use. An effort that nobody limits has an account by its name, which just counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace torch_lazy::lazy {

// Those that are limited, in the order of the table in ledger.cc.
enum class Venture { kProducts, kCudaProducts, kConvolutions, kCudaGraphs };

// What an account has counted.
struct Effort {
  int64_t tried = 0, used = 0;         // attempts, and runs of what they have found
  int64_t spent_ns = 0, saved_ns = 0;  // saved: where it was timed
};

// Thread-safe.
class Account {
 public:
  Account(std::string name, double credit_seconds, double share_of_time = 0, double pace = 1);

  const std::string& name() const { return name_; }
  // True while more than that is left, at its pace. An attempt may cost more.
  bool MayTry(double seconds = 0) const;
  // True while more than that is left, now or later.
  bool HasLeft(double seconds = 0) const;
  // How much that is; 0 where more was spent.
  double Left() const;
  // From now on it has so much more to spend.
  void Deposit(double seconds);
  // An attempt, which took so long. What is not above 0, or no number, takes no time.
  void Spend(double seconds);
  // A run of what was found, which took so much less. What is not above 0, or no number, is not known.
  void Save(double seconds);
  // So many such runs.
  void SaveOften(int64_t runs, int64_t ns);

  Effort counted() const;

 private:
  int64_t LeftNs() const;

  const std::string name_;
  const double share_of_time_, pace_;
  const int64_t begun_ns_, credit_ns_;
  std::atomic<int64_t> rests_until_ns_{0};
  std::atomic<int64_t> tried_{0}, used_{0}, spent_ns_{0}, saved_ns_{0}, deposited_ns_{0};
};

Account& AccountOf(Venture venture);
// Made when it is first asked for. Valid for ever.
Account& AccountOf(absl::string_view name);

// What was saved while something ran that will be repeated without asking again: steps that are captured in a CUDA
// graph.
class Savings {
 public:
  // All that the calling thread saves while this lives is noted down. One at a time in a thread.
  class Noting {
   public:
    explicit Noting(Savings* savings);
    ~Noting();
    Noting(const Noting&) = delete;
    Noting& operator=(const Noting&) = delete;
  };

  // It is saved once more.
  void Repeat() const;

 private:
  friend class Account;
  struct Saved {
    Account* account;
    int64_t runs, ns;
  };
  void Add(Account* account, int64_t ns);
  std::vector<Saved> all_;  // each account once
};

// Since the last reset, of each account: those that are limited, and the others in the order in which they were made.
std::vector<std::pair<std::string, Effort>> Efforts();
// What accounts may spend is as before.
void ResetEfforts();

// Of a clock that only goes forward.
double SecondsNow();

}  // namespace torch_lazy::lazy
