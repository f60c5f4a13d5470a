// SPDX-License-Identifier: Apache-2.0
// The calls pending on one thread, and the storages they touch.
//
// A trace lives from its first call to the end of its run; the next call of the thread starts another. The calls
// themselves are the path of trie nodes that ends in `at`; what changes from run to run is here: contents of slots, and
// arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "lazy/host/lock.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/divergence.h"
#include "lazy/trace/step_detector.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

struct CutSite;
struct Noting;

class Trace {
 public:
  // A storage as the trace knows it, numbered by first use.
  struct Slot {
    c10::Storage content;              // null until the trace writes it, or if nothing was ever stored
    LazyStorageImpl* owner = nullptr;  // null once the storage is dead
    size_t size_bytes = 0;
    bool external = false;  // it was there before the trace touched it
    bool written = false;
    uint32_t first_call = 0;                               // the call that first touched it
    uint32_t calls_at_death = UINT32_MAX;                  // calls recorded when the storage died
    bool older = false;                                    // it held something before the trace touched it
    bool inherits = false;                                 // content comes at the end of a run: Note [Runs ahead]
    uint64_t stamp = 0;                                    // the storage's, when the trace first touched it; 0: unknown
    uint64_t next_stamp = 0;                               // what it gets where the trace has written it; 0: any
    at::ScalarType unwritten = at::ScalarType::Undefined;  // the storage's
  };
  struct Heir {
    int32_t slot;
    std::shared_ptr<Trace> trace;
    int32_t its_slot;
  };
  enum class State { kPending, kRunning, kDone };  // also done if a call failed

  // --- guarded by the device lock ---
  State state = State::kPending;
  std::shared_ptr<Trie> trie;  // of its path
  std::string failure;         // what the call said that failed; see Note [Failing calls]
  // Note [Runs ahead]
  bool is_ahead = false;         // its run was given away
  std::vector<Heir> heirs;       // take over contents at its end
  std::shared_ptr<Trace> after;  // one that has to be done before this one runs
  std::string failure_before;    // of one that this inherits from
  Expected* at = nullptr;        // the newest call; the root before the first
  std::vector<Slot> slots;
  std::vector<c10::IValue> numbers;  // run-time numbers of all calls in order
  std::vector<TrieNode*> path;       // per call
  int64_t new_bytes = 0;             // of the results
  size_t final_slots = 0;            // what there was of these when it was done
  size_t final_numbers = 0;
  StepDetector steps;
  size_t period = 0;       // > 0: the trace ends with two steps of so many calls
  bool ends_step = false;  // to be cut before the next call
  // Note [Pure steps]
  int pure_steps = 0;         // that have ended in it
  int pure_steps_wanted = 1;  // before it is cut for them
  int pure_steps_next = 1;    // the same of the next one
  bool fragment = false;      // begins inside a step, where it was cut because a shape was unknown
  int age = 0;                // cuts of its thread for other reasons, up to and with its own
  Divergence divergence;
  const CutSite* cut = nullptr;  // set when it is cut, for explain()
  Noting* noting = nullptr;      // notes what it touches, for replay

  size_t num_calls() const { return path.size(); }
  // True if a trace that will run after it may use its storages.
  bool RunsAhead() const { return is_ahead && state == State::kRunning; }
  // Those of all its calls (call_settings.h); there is a call.
  uint32_t settings() const { return SettingsOf(path.front()->words()[0]); }
  // True if the call writes a slot that held something before the trace: an update, of a parameter say.
  bool Updates(const TrieNode& call) const;
  // Argument `arg` of a call of the trace: structure, or a number of this run. Tensors of the device are None.
  const c10::IValue& Argument(const TrieNode& call, size_t arg) const;
  void ForgetOwner(int32_t slot) {
    slots[slot].owner = nullptr;
    slots[slot].calls_at_death = static_cast<uint32_t>(path.size());
  }
};

// Tells of slots whether a wait after the first `end` calls may find their storages alive. What died before the next
// call counts as found, since the program might have waited first; but not what was made after the update before the
// last call, which only read it: an optimizer's temporary; nor, where nothing was updated, any temporary. The device
// lock is held.
class AliveAfter {
 public:
  AliveAfter(const Trace& trace, size_t end);
  bool operator()(size_t slot) const;

 private:
  enum class Use : uint8_t { kNone, kReads, kWrites };
  const Trace& trace_;
  const size_t end_;
  size_t updates_end_ = 0;  // calls up to and with the last update before the last call
  bool is_pure_ = false;    // no call up to the end is an update: Note [Pure steps]
  std::vector<Use> uses_;   // of the last call, per slot
};

// The trace of the calling thread, made if it has none. The device lock is held.
std::shared_ptr<Trace>& ThreadTrace();

// Why a trace is cut before a call that must run at once for its shape to be learned. It will be known the next time,
// so no cut comes at this place again, and nothing is compiled for it. Nor does what begins there come again.
inline constexpr char kUnknownShape[] = "unknown shape";

// Raises what is to be said about a storage that a failed trace should have written.
void CheckNotFailed(const Trace& trace);

// Runs the trace, or waits for the thread that does. The device lock is not held.
void CutAndRun(const std::shared_ptr<Trace>& trace, const char* reason);

// The same, but leaves it to a thread of ours where that is worth it.
void CutAndGoOn(const std::shared_ptr<Trace>& trace, const char* reason);

// Runs what the calling thread has recorded; the second may leave it to a thread of ours.
void CutThreadTrace(const char* reason);
void CutThreadTraceAndGoOn(const char* reason);

// The newest of the calling thread, null if there was none; and those of all threads.
std::shared_ptr<Trace> NewestTrace();
std::vector<std::shared_ptr<Trace>> TracesOfAllThreads();

}  // namespace torch_lazy::lazy
