// SPDX-License-Identifier: Apache-2.0
// A way to run an entry's traces that takes more for granted than the plain plan does.
//
// Note [Variants]
// An entry's plain plan (plain_plan.h) is right for all its traces. A variant is right for those for which something
// more holds: weights have stayed, say. At each run the entry asks its variants, in the order of the list in
// variants.cc: does what you take for granted hold, and if so, are you ready? What is ready takes the place of the way
// found so far, or wraps it, and the last way found runs. So what holds for more traces stands first. Nobody who
// implements a variant, and nobody who chooses one, knows the others.
//
// What is asked is asked at every run: it costs nanoseconds, and allocates nothing. What costs more is done once, after
// some patience (lazy/host/patience.h).
#pragma once

#include <memory>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// A way that is ready. Thread-safe. Runs in other threads may use it a little longer than who has made it.
class Runnable {
 public:
  virtual ~Runnable() = default;

  // Runs on the trace's slots and leaves the outputs in them. False if a call has failed: then the slots are as they
  // were. Raises what cannot be undone.
  virtual bool Run(Trace* trace) = 0;

  // Something else runs in its place: gives back memory that a later run can fill anew.
  virtual void Release() = 0;

  // As BoundPlan says.
  virtual size_t PeakBytes() const = 0;
  virtual bool runs_ahead() const { return false; }
  virtual bool ahead_by_replay() const { return false; }
  virtual bool shares_launches() const { return false; }
  // True if the run before was a CUDA graph's.
  virtual bool replays() const { return false; }
  // True if a run of the trace would be, for the program's thread that the calling one works for.
  virtual bool WouldReplay(Trace* /*trace*/) const { return false; }
};

// Of one entry, which has it under a lock.
class Variant {
 public:
  virtual ~Variant() = default;

  // True if what it takes for granted holds for the trace, which is about to run. Asked once for each run, so it may
  // count. Where it does not hold, what followed from it is let go of.
  virtual bool Guard(const Trace& trace) = 0;

  // The way to run the trace, for which the guard holds; null if there is none, or none yet. `next`: the way to run it
  // without this variant. `once`: no such trace is expected again, so nothing is asked of the compiler for it.
  virtual std::shared_ptr<Runnable> Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) = 0;

  // The entry will run no more, or seldom: gives back memory that a later run can fill anew, its way among it.
  virtual void Release() = 0;
};

}  // namespace torch_lazy::lazy
