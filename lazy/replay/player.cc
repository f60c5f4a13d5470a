// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay/player.h"

#include <utility>

#include "base/metrics.h"
#include "lazy/eager/current_device.h"
#include "lazy/record/run_now.h"
#include "lazy/replay/append_calls.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

using Storage = ReplayRecording::Storage;

at::Tensor TensorOn(c10::Storage storage, const Geometry& geometry) {
  at::Tensor tensor = MakeTensor(std::move(storage), geometry.dtype, geometry.sizes, geometry.strides, geometry.offset);
  tensor.unsafeGetTensorImpl()->_set_conj(geometry.conj);
  tensor.unsafeGetTensorImpl()->_set_neg(geometry.neg);
  return tensor;
}

class Player {
 public:
  Player(ReplayRecording* recording, at::TensorList inputs, std::vector<c10::IValue> numbers)
      : recording_(*recording), inputs_(inputs), numbers_(std::move(numbers)), storages_(recording_.storages.size()) {}

  // False if something is gone.
  bool FindCaptured() {
    captured_.reserve(recording_.captured.size());
    for (const ReplayRecording::Captured& from : recording_.captured) {
      c10::intrusive_ptr<c10::StorageImpl> storage = from.storage.lock();
      if (storage == nullptr || HasOtherStorage(from.tensor, storage.get())) return false;
      captured_.emplace_back(std::move(storage));
    }
    return true;
  }

  // What the function leaves behind is new with each call if it saves it, else that of the recording if anyone still
  // has it. False if one has another size than when it was recorded, or memory that the trace does not know of.
  bool FindStorages() {
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Storage& recorded = recording_.storages[s];
      switch (recorded.kind) {
        case Storage::Kind::kInput:
          storages_[s] = inputs_[recorded.index].storage();
          break;
        case Storage::Kind::kCaptured:
          storages_[s] = std::move(captured_[recorded.index]);
          break;
        case Storage::Kind::kDrawn:
          break;  // see DrawNumbers
        case Storage::Kind::kNew:
          if (recorded.output >= 0 || (recorded.left >= 0 && recording_.saves)) {
            storages_[s] = MakeStorage(recorded.size_bytes, recorded.unwritten);
          } else if (recorded.left >= 0) {
            storages_[s] = c10::Storage(recording_.left[static_cast<size_t>(recorded.left)].lock());
          }
      }
      if (!storages_[s]) continue;
      if (storages_[s].nbytes() != recorded.size_bytes) return false;
      if (LazyStorageImpl::Of(storages_[s].unsafeGetStorageImpl())->IsSwapped()) return false;
    }
    return true;
  }

  // In the program's order, whether the calls use them or not.
  std::vector<PhiloxDraw> DrawNumbers() {
    std::vector<PhiloxDraw> draws;  // for recorded calls
    std::vector<c10::Storage> drawn(recording_.draws.size());
    for (size_t d = 0; d < drawn.size(); ++d) {
      const RecordedDraw& draw = recording_.draws[d];
      if (draw.op == nullptr) {
        const PhiloxDraw now = draws.emplace_back(TakeRecordedDraw(draw.per_thread));
        for (const size_t number : draw.numbers) {
          numbers_[number] = now.seed;
          numbers_[number + 1] = now.offset;
        }
        continue;
      }
      drawn[d] = MakeStorage(draw.size_bytes);
      torch::jit::Stack stack = {TensorOn(drawn[d], draw.geometry)};
      stack.insert(stack.end(), draw.args.begin(), draw.args.end());
      RunNow(*draw.op, &stack, "immediate", /*learn=*/false);
    }
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (recording_.storages[s].kind == Storage::Kind::kDrawn) storages_[s] = drawn[recording_.storages[s].index];
    }
    return draws;
  }

  void Record() {
    AppendCalls(&recording_, std::move(numbers_), &storages_);
    base::Count(base::Counter::kCallsTotal, static_cast<int64_t>(recording_.calls.size()));
    base::Count(base::Counter::kReplays);
  }

  // As autograd counts them.
  void CountWrites() {
    for (const Storage& recorded : recording_.storages) {
      if (recorded.num_writes == 0) continue;
      if (recorded.kind == Storage::Kind::kInput) {
        c10::TensorImpl* const written = inputs_[recorded.index].unsafeGetTensorImpl();
        for (uint32_t n = 0; n < recorded.num_writes && !written->is_inference(); ++n) written->bump_version();
      } else {
        for (uint32_t n = 0; n < recorded.num_writes; ++n) recording_.captured[recorded.index].version.bump();
      }
    }
  }

  std::vector<at::Tensor> Results() const {
    std::vector<at::Tensor> results;
    for (const ReplayRecording::Output& output : recording_.outputs) {
      if (output.is_input)
        results.push_back(inputs_[static_cast<size_t>(output.input)]);
      else if (output.storage >= 0)
        results.push_back(TensorOn(storages_[static_cast<size_t>(output.storage)], output.geometry));
      else
        results.push_back(TensorOn(inputs_[static_cast<size_t>(output.input)].storage(), output.geometry));
    }
    if (!recording_.saves) return results;
    std::vector<at::Tensor> saved(recording_.left.size());
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (recording_.storages[s].left >= 0)
        saved[static_cast<size_t>(recording_.storages[s].left)] = BytesOf(storages_[s]);
    }
    results.insert(results.end(), saved.begin(), saved.end());
    return results;
  }

 private:
  ReplayRecording& recording_;
  at::TensorList inputs_;
  std::vector<c10::IValue> numbers_;
  std::vector<c10::Storage> captured_;  // moved into the next
  std::vector<c10::Storage> storages_;  // of each of the recording's that has one
};

}  // namespace

std::optional<std::vector<at::Tensor>> PlayRecording(ReplayRecording* recording, at::TensorList inputs,
                                                     std::vector<c10::IValue> numbers, std::vector<PhiloxDraw>* draws) {
  const OnDevice on(recording->calls.empty() ? -1 : DeviceOfSettings(SettingsOf(recording->calls.front()->words()[0])));
  Player player(recording, inputs, std::move(numbers));
  if (!player.FindCaptured() || !player.FindStorages()) return std::nullopt;
  *draws = player.DrawNumbers();
  player.Record();
  player.CountWrites();
  return player.Results();
}

}  // namespace torch_lazy::lazy
