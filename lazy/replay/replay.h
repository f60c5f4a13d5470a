// SPDX-License-Identifier: Apache-2.0
// Replay of a function's calls without recording them again.
//
// The first calls of the function are recorded like any other, and kept as a recording (recording.h). Once two in a row
// have left the same calls, with the same numbers or with numbers that are the function's arguments, `Run` records them
// once more, on other storages. Behind calls that they have followed before, all of them are put there at once
// (ReplayRecording::Place): the same path of the trie, slots in a row.
//
// The function's own code does not run then. Not replayed is, for the reason that `refusal` tells, what a replay would
// not repeat: a value that is waited for, memory filled by the host, a number that changes and is no argument, a shape
// that depends on data.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/container/flat_hash_map.h"
#include "lazy/replay/recording.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

class Replay {
 public:
  Replay();
  ~Replay();

  // The function holds these tensors. It is recorded anew where one has another storage than before (`.data =`), of
  // which a replay of calls on its views would not know.
  void Watch(at::TensorList tensors);

  // The thread's calls from here to End, or Abandon, are the function's, called with these tensors.
  void Begin(at::TensorList inputs);
  // The function was given these numbers, and has returned these tensors. `saves`: storages that it leaves behind (for
  // its backward pass) belong to the call; they are returned, as bytes, and each replay makes its own. Else a replay
  // fills the recording's. `given_draws`: of a backward pass, what the forward pass drew.
  std::vector<at::Tensor> End(at::TensorList inputs, at::ArrayRef<double> numbers, at::ArrayRef<PhiloxDraw> given_draws,
                              at::TensorList outputs, bool saves);
  void Abandon();

  // What the function would return, then what it would leave behind; nullopt: it must be called.
  std::optional<std::vector<at::Tensor>> Run(at::TensorList inputs, at::ArrayRef<double> numbers,
                                             at::ArrayRef<PhiloxDraw> given_draws = {});

  // What recorded calls of its last call, replayed or not, were given to draw.
  const std::vector<PhiloxDraw>& last_draws() const { return last_draws_; }

  // A forward pass may be replayed if the backward pass after it may. A backward pass does the same whatever modes are
  // on, and whatever of its inputs requires gradients.
  enum class Pass { kAny, kForward, kBackward };
  explicit Replay(Pass pass) : Replay() { pass_ = pass; }
  int64_t last_case() const;  // a number of the last inputs and all like them
  // The backward pass may be replayed after the forward pass of that case, of whose results these have gradients.
  void Pair(int64_t number, std::vector<bool> differentiable);
  const std::vector<bool>& differentiable() const;  // in the last case, which was replayed
  // Per input, whether the calls that were recorded last use it.
  std::vector<bool> UsedInputs(size_t num_inputs) const;

  // It would be replayed if it were called as it was the last time.
  bool ready() const;
  // Why the function is not replayed for inputs like the last; empty if it is, or may be after another call.
  std::string refusal() const;

 private:
  struct State {
    std::shared_ptr<ReplayRecording> recording;  // of the last call
    std::vector<int32_t>
        argument_of;            // per number of the trace: the function's argument that it is, -1 if it never changed
    std::vector<bool> changes;  // per argument: it did
    bool ready = false;
    int num_tries = 0;
    bool begins_anew = false;  // its trace was cut within it: it is recorded in one of its own
    int64_t number = 0;
    std::vector<bool> differentiable;  // of a forward pass: empty if its backward pass may not be replayed
    std::string refusal;
  };

  struct Watched {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    const c10::StorageImpl* storage;  // as recorded
  };

  bool HasMoved() const;  // has one of what is watched another storage?
  std::vector<int64_t> KeyOf(at::TensorList inputs) const;
  State& StateOf(const std::vector<int64_t>& key);
  static void Match(const ReplayRecording& before, const ReplayRecording& now, State* state);
  bool MayRun(const State& state, at::ArrayRef<double> arguments, size_t num_given_draws) const;

  std::unique_ptr<ReplayRecorder> recorder_;
  std::vector<Watched> watched_;
  absl::flat_hash_map<std::vector<int64_t>, State> states_;
  std::vector<int64_t> last_key_;
  std::vector<PhiloxDraw> last_draws_;
  Pass pass_ = Pass::kAny;
};

// The refusals of all that there are, for explain().
std::string TextOfRefusals();

}  // namespace torch_lazy::lazy
