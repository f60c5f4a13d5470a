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
#include "lazy/host/source_line.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/at_once.h"
#include "lazy/trace/chunks.h"
#include "lazy/trace/slot.h"
#include "lazy/trace/step_detector.h"
#include "lazy/trace/trie.h"
#include "lazy/trace/unlike_steps.h"

namespace torch_lazy::lazy {

struct CutSite;
class QueueMark;
struct ReplayRecorder;

// The first call of a trace that was new to the trie at its place.
struct Divergence {
  const TrieNode* now = nullptr;    // null: all were known
  const TrieNode* known = nullptr;  // what came there the last time; null: known traces ended there
  SourceLine line;
};

class Trace {
 public:
  using Slot = TraceSlot;
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
  UnlikeSteps unlike_steps;
  size_t period = 0;       // > 0: the trace ends with two steps of so many calls
  bool ends_step = false;  // to be cut before the next call
  // Note [Pure steps]
  int pure_steps = 0;                        // that have ended in it
  int pure_steps_wanted = 1;                 // before it is cut for them
  int pure_steps_next = 1;                   // the same of the next one
  bool fragment = false;                     // begins inside a step, where it was cut because a shape was unknown
  bool replays = false;                      // holds calls of a function for replay, which are recorded at once
  std::vector<UnlikeSteps::Range> replayed;  // such calls, each function's
  int age = 0;                               // cuts of its thread for other reasons, up to and with its own
  bool op_by_op = false;                     // so it ran
  bool is_new = false;                       // such calls had never run together: Note [Chunks]
  bool is_waited = false;                    // somebody waits for its run
  bool ends_chunk = false;                   // and not a step, where `ends_step`
  bool follows_wait = false;                 // since its thread's last wait of the host, no step has ended without one
  Chunks chunks;
  AtOnce at_once;  // where it is on, the trace has no calls
  Divergence divergence;
  const CutSite* cut = nullptr;          // set when it is cut, for explain()
  ReplayRecorder* recorder = nullptr;    // of what it touches, for replay
  std::shared_ptr<const QueueMark> end;  // in the GPU's queue: Note [Early reads]

  size_t num_calls() const { return path.size(); }
  // Why it is cut, where `ends_step`.
  const char* what_ends() const { return ends_chunk ? "chunk" : "step"; }
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

// The newest of the calling thread, which alone may ask; null if there was none.
std::shared_ptr<Trace>& NewestOfThread();

// Raises what is to be said about a storage that a failed trace should have written.
void CheckNotFailed(const Trace& trace);

}  // namespace torch_lazy::lazy
