// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay/recording.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lazy/cuts/cut.h"
#include "lazy/eager/geometry.h"
#include "lazy/host/lock.h"
#include "lazy/trace/history.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {
namespace {

using Storage = ReplayRecording::Storage;
using Output = ReplayRecording::Output;

// Reads the thread's trace. The device lock is held.
class Taker {
 public:
  Taker(ReplayRecorder* recorder, at::TensorList inputs, at::TensorList outputs, ReplayRecording* recording)
      : recorder_(*recorder), trace_(*ThreadTrace()), inputs_(inputs), outputs_(outputs), recording_(*recording) {}

  // False if the trace does not hold all calls.
  bool IsWhole() {
    const Trace& began = *recorder_.trace;
    if (&trace_ == &began && trace_.num_calls() > recorder_.first_call) return true;
    const CutSite* cut = began.cut;
    const bool has_calls = began.num_calls() > recorder_.first_call;
    recorder_.is_cut = has_calls && cut != nullptr && cut->reason != kUnknownShape;
    Break(!has_calls       ? "it makes no call that is recorded"
          : cut != nullptr ? absl::StrCat("it is cut inside: ", cut->reason, " ", cut->line.text)
                           : "it is cut inside");
    return false;
  }

  void TakeCalls() {
    recording_.trie = trace_.trie;
    recording_.calls.assign(trace_.path.begin() + static_cast<ptrdiff_t>(recorder_.first_call), trace_.path.end());
    recording_.numbers.assign(trace_.numbers.begin() + static_cast<ptrdiff_t>(recorder_.first_number),
                              trace_.numbers.end());
    recording_.new_bytes = trace_.new_bytes - recorder_.bytes_before;
    number_of_.assign(trace_.slots.size(), -1);
    for (size_t k = 0; k < recording_.calls.size(); ++k) {
      const TrieNode& call = *recording_.calls[k];
      for (const NodeOperand& operand : call.operands) Use(operand.slot, k, /*is_result=*/false, operand.written);
      int32_t slot = call.first_result_slot;
      for (const ResultShape& result : call.shape->results) {
        if (result.defined && result.arg < 0) Use(slot++, k, /*is_result=*/true, /*written=*/true);
      }
    }
  }

  // After TakeCalls.
  void TakeDraws(at::ArrayRef<PhiloxDraw> given) {
    recording_.draws = std::move(recorder_.draws);
    for (RecordedDraw& draw : recording_.draws) {
      if (draw.op == nullptr) draw.numbers = NumbersOf(draw.philox);
    }
    for (const PhiloxDraw& draw : given) recording_.given_draws.push_back(NumbersOf(draw));
  }

  // After TakeDraws.
  void TakeOrigins() {
    for (TouchedStorage& touched : recorder_.storages) {
      Storage& storage = recording_.storages[static_cast<size_t>(number_of_[static_cast<size_t>(touched.slot)])];
      storage.version = touched.version;
      const auto input = std::find(recorder_.inputs.begin(), recorder_.inputs.end(), touched.serial);
      const auto draw = std::find_if(recording_.draws.begin(), recording_.draws.end(), [&](const RecordedDraw& d) {
        return d.op != nullptr && d.serial == touched.serial;
      });
      if (input != recorder_.inputs.end()) {
        storage.kind = Storage::Kind::kInput;
        storage.index = static_cast<size_t>(input - recorder_.inputs.begin());
      } else if (draw != recording_.draws.end()) {
        storage.kind = Storage::Kind::kDrawn;
        storage.index = static_cast<size_t>(draw - recording_.draws.begin());
      } else if (touched.serial < recorder_.first_serial) {
        storage.kind = Storage::Kind::kCaptured;
        storage.index = recording_.captured.size();
        recording_.captured.push_back({std::move(touched.storage), std::move(touched.tensor), {}});
      } else if (trace_.slots[static_cast<size_t>(touched.slot)].older) {
        Break("it fills memory from the host");
      }
    }
  }

  // What was made and is still alive is returned, or left behind: the latter's storages.
  std::vector<c10::Storage> TakeNew() {
    std::vector<c10::Storage> left;
    for (size_t s = 0; s < slots_.size(); ++s) {
      LazyStorageImpl* owner = trace_.slots[static_cast<size_t>(slots_[s])].owner;
      Storage& storage = recording_.storages[s];
      if (owner == nullptr || storage.kind == Storage::Kind::kInput || storage.kind == Storage::Kind::kCaptured)
        continue;
      const auto output = std::find_if(outputs_.begin(), outputs_.end(),
                                       [&](const at::Tensor& t) { return DenseStorageOf(t) == owner; });
      if (output != outputs_.end()) {
        storage.output = static_cast<int32_t>(output - outputs_.begin());
      } else {
        storage.left = static_cast<int32_t>(left.size());
        left.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(owner));
      }
    }
    return left;
  }

  // After TakeNew.
  void TakeOutputs() {
    for (const at::Tensor& tensor : outputs_) {
      Output& output = recording_.outputs.emplace_back();
      const LazyStorageImpl* storage = DenseStorageOf(tensor);
      if (storage == nullptr) {
        Break("it returns what is no dense tensor of the device");
        continue;
      }
      if (tensor.requires_grad() && !recording_.saves) Break("its result needs gradients");
      output.geometry = GeometryOf(tensor);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (output.input < 0 && DenseStorageOf(inputs_[i]) == storage) output.input = static_cast<int32_t>(i);
        if (!inputs_[i].is_same(tensor)) continue;
        output.input = static_cast<int32_t>(i);
        output.is_input = true;
      }
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (trace_.slots[static_cast<size_t>(slots_[s])].owner == storage && recording_.storages[s].output >= 0)
          output.storage = static_cast<int32_t>(s);
      }
      if (output.storage < 0 && output.input < 0) Break("it returns a tensor that it was not given and has not made");
    }
  }

 private:
  // Where calls are given the draw.
  std::vector<size_t> NumbersOf(PhiloxDraw draw) const {
    std::vector<size_t> numbers;
    for (const TrieNode* call : recording_.calls) {
      const int32_t place = call->op->seed_arg < 0 ? -1 : call->PlaceOfNumber(static_cast<size_t>(call->op->seed_arg));
      if (place < 0) continue;
      const size_t number = static_cast<size_t>(place) - recorder_.first_number;
      const c10::IValue &seed = recording_.numbers[number], &offset = recording_.numbers[number + 1];
      if (seed.isInt() && offset.isInt() && seed.toInt() == draw.seed && offset.toInt() == draw.offset)
        numbers.push_back(number);
    }
    return numbers;
  }

  void Use(int32_t slot, size_t call, bool is_result, bool written) {
    int32_t& number = number_of_[static_cast<size_t>(slot)];
    if (number < 0) {
      number = static_cast<int32_t>(slots_.size());
      slots_.push_back(slot);
      const Trace::Slot& at = trace_.slots[static_cast<size_t>(slot)];
      Storage& storage = recording_.storages.emplace_back();
      storage.is_result = is_result;
      storage.size_bytes = at.size_bytes;
      storage.unwritten = at.unwritten;
      storage.first_call = static_cast<uint32_t>(call);
      if (at.owner == nullptr) storage.calls_at_death = at.calls_at_death - static_cast<uint32_t>(recorder_.first_call);
    }
    recording_.storages[static_cast<size_t>(number)].written |= written;
    recording_.uses.push_back(number);
  }

  void Break(const std::string& why) {
    if (recorder_.broken.empty()) recorder_.broken = why;
  }

  ReplayRecorder& recorder_;
  const Trace& trace_;
  at::TensorList inputs_, outputs_;
  ReplayRecording& recording_;
  std::vector<int32_t> slots_;      // of the recording's storages
  std::vector<int32_t> number_of_;  // per slot: the storage's, -1 if the calls do not use it
};

}  // namespace

bool ReplayRecording::SameCalls(const ReplayRecording& other) const {
  const auto same_call = [](const TrieNode* a, const TrieNode* b) {
    return a == b || (a->op == b->op && a->words() == b->words());
  };
  const auto alike = [](const auto& a, const auto& b) { return a.IsLike(b); };
  const auto same_storage = [](const Captured& a, const Captured& b) { return a.storage == b.storage; };
  return uses == other.uses && outputs == other.outputs && saves == other.saves &&
         std::ranges::equal(calls, other.calls, same_call) && std::ranges::equal(storages, other.storages, alike) &&
         std::ranges::equal(captured, other.captured, same_storage) && std::ranges::equal(draws, other.draws, alike) &&
         given_draws == other.given_draws;
}

std::optional<ReplayRecording> FinishRecording(ReplayRecorder* recorder, at::TensorList inputs,
                                               at::ArrayRef<double> arguments, at::ArrayRef<PhiloxDraw> given_draws,
                                               at::TensorList outputs, bool saves, std::vector<at::Tensor>* left) {
  ReplayRecording recording;
  recording.saves = saves;
  recording.arguments = arguments.vec();
  std::vector<c10::Storage> left_storages;
  {
    Locked lock(DeviceLock());
    Taker taker(recorder, inputs, outputs, &recording);
    if (taker.IsWhole() && recorder->broken.empty()) {
      taker.TakeCalls();
      taker.TakeDraws(given_draws);
      taker.TakeOrigins();
      left_storages = taker.TakeNew();
      taker.TakeOutputs();
    }
  }
  for (const c10::Storage& storage : left_storages) {
    recording.left.emplace_back(storage.getWeakStorageImpl());
    if (saves) left->push_back(BytesOf(storage));
  }
  if (!recorder->broken.empty()) return std::nullopt;
  for (Storage& storage : recording.storages) {
    if (storage.kind == Storage::Kind::kInput) {
      storage.num_writes = VersionOf(inputs[storage.index].unsafeGetTensorImpl()) - recorder->versions[storage.index];
    } else if (storage.kind == Storage::Kind::kCaptured) {
      ReplayRecording::Captured& captured = recording.captured[storage.index];
      const auto tensor = captured.tensor.lock();
      if (tensor == nullptr || tensor->is_inference()) continue;
      captured.version = tensor->version_counter();
      storage.num_writes = VersionOf(tensor.get()) - storage.version;
    }
  }
  return recording;
}

// To own the tensor for a moment would take Python's lock, for each that Python knows. Its memory stays while there are
// weak references, and a tensor that dies now has no storage.
bool HasOtherStorage(const c10::weak_intrusive_ptr<c10::TensorImpl>& tensor, const c10::StorageImpl* storage) {
  return tensor.use_count() > 0 && tensor._unsafe_get_target()->unsafe_storage().unsafeGetStorageImpl() != storage;
}

LazyStorageImpl* DenseStorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? LazyStorageImpl::Of(tensor) : nullptr;
}

at::Tensor BytesOf(c10::Storage storage) {
  const int64_t size = static_cast<int64_t>(storage.nbytes());
  return MakeTensor(std::move(storage), at::kByte, {size}, {1});
}

}  // namespace torch_lazy::lazy
