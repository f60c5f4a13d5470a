// SPDX-License-Identifier: Apache-2.0
// Runs traces beside the program: while one runs, the thread that recorded it records the next.
//
// Eager's time for small kernels is the host's, and so is ours if recording and running take turns. So a trace that
// nobody waits for runs on a thread of this library, which on a GPU launches its kernels. On the CPU such a trace
// consists of kernels and small products, since that thread has no team: a second one in a process costs more than it
// brings. Who waits for its trace shares its kernels.
//
// Note [Runs ahead]
// One trace at a time is *ahead*: given to this thread and not done. Another trace may use its
// storages as if it were done, provided that it runs later, which Trace::after sees to. What it
// will find in them it inherits at the end of that run.
//
// Note [Taken back]
// The program takes a run back, and who waits for it runs it:
// - where it turns out to be one for a thread of the program, and this thread sends it back: its CUDA graph does not
//   fit, say, and cuDNN would prepare convolutions on this thread anew;
// - where this thread has not begun it after a while. A team of OpenMP spins on all processors for some milliseconds
//   after its work, be that ATen's on tensors of the host, and Linux may let this thread wait for one of its ticks.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace torch_lazy::lazy {

class RunThread {
 public:
  static RunThread& Get();

  // True if the thread is now the caller's to Post to. Waits where it runs what the calling thread
  // has posted, and raises what that has raised; false where it runs another's, or where the
  // program can have no more threads. From then on Wait and Drain wait for the post, too.
  bool Acquire();

  enum class Where { kHere, kInProgram };  // on this thread, or on one of the program's
  // False if it must run in the program, and nothing was done. That is asked here alone.
  using Runs = std::function<bool(Where)>;

  // To be called after Acquire, whatever happens. `keep` is dropped by one of the program's threads, later: what it
  // owns may belong to Python.
  void Post(Runs run, std::shared_ptr<void> keep);

  // Until nothing that was posted before is left to do; helps. Raises what a run has raised, once.
  void Wait();

  // The same, but leaves what there is to raise.
  void Drain();

  // The same, of what the calling thread has posted.
  void DrainOwn();

  // Drains, and nobody acquires the thread until it is opened again. The lock is held meanwhile: a
  // child of a fork has it as it was then, and not the thread.
  void Close();
  void Open();

  std::thread::id user() const { return user_.load(); }  // who posted last

 private:
  enum class State : int { kTaken, kPosted, kSentBack };
  RunThread() = default;
  bool Start();  // false if there are no more threads
  void Serve();
  void KeepAway();
  void HelpUntilDone(uint64_t ticket);
  Runs Take(State if_state);  // null if it is in another
  void SendBack(Runs run);
  bool TakeBack(State if_state);  // runs it; false if it is in another
  void End(std::exception_ptr error);
  void DropAndRaise();

  std::atomic<uint32_t> events_{0};  // what a helper waits for: offers, and ends of runs
  std::atomic<uint32_t> posts_{0};
  std::atomic<int> thread_{0};               // its number in the system, once it runs
  std::atomic<int> away_from_{-1};           // the processor that it leaves to the program
  std::atomic<uint64_t> done_{0};            // the last ticket that is
  std::atomic<std::thread::id> user_;        // who acquired it last
  std::atomic<State> state_{State::kTaken};  // of what was posted
  std::mutex lock_;                          // over what follows
  bool has_thread_ = false;
  int num_closed_ = 0;
  uint64_t ticket_ = 0;  // the last that was acquired; the thread is free if it is done
  Runs run_;
  std::shared_ptr<void> keep_;
  std::vector<std::shared_ptr<void>> leftovers_;  // of runs that are done
  std::exception_ptr error_;
};

// The thread of the program that the calling thread works for: who has posted what it runs, or itself.
std::thread::id ProgramThread();

}  // namespace torch_lazy::lazy
