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

using Storage = ReplayNote::Storage;

at::Tensor TensorOn(c10::Storage storage, const Geometry& geometry) {
  at::Tensor tensor = MakeTensor(std::move(storage), geometry.dtype, geometry.sizes, geometry.strides, geometry.offset);
  tensor.unsafeGetTensorImpl()->_set_conj(geometry.conj);
  tensor.unsafeGetTensorImpl()->_set_neg(geometry.neg);
  return tensor;
}

class Run {
 public:
  Run(ReplayNote* note, at::TensorList inputs, std::vector<c10::IValue> numbers)
      : note_(*note), inputs_(inputs), numbers_(std::move(numbers)), storages_(note_.storages.size()) {}

  // False if something is gone.
  bool FindCaptured() {
    captured_.reserve(note_.captured.size());
    for (const ReplayNote::Captured& from : note_.captured) {
      c10::intrusive_ptr<c10::StorageImpl> storage = from.storage.lock();
      if (storage == nullptr || HasOtherStorage(from.tensor, storage.get())) return false;
      captured_.emplace_back(std::move(storage));
    }
    return true;
  }

  // What the function leaves behind is new with each call if it saves it, else that of the recording if anyone still
  // has it. False if one has another size than when it was noted.
  bool FindStorages() {
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Storage& noted = note_.storages[s];
      switch (noted.kind) {
        case Storage::Kind::kInput:
          storages_[s] = inputs_[noted.index].storage();
          break;
        case Storage::Kind::kCaptured:
          storages_[s] = std::move(captured_[noted.index]);
          break;
        case Storage::Kind::kDrawn:
          break;  // see DrawNumbers
        case Storage::Kind::kNew:
          if (noted.output >= 0 || (noted.left >= 0 && note_.saves)) {
            storages_[s] = MakeStorage(noted.size_bytes, noted.unwritten);
          } else if (noted.left >= 0) {
            storages_[s] = c10::Storage(note_.left[static_cast<size_t>(noted.left)].lock());
          }
      }
      if (storages_[s] && storages_[s].nbytes() != noted.size_bytes) return false;
    }
    return true;
  }

  // In the program's order, whether the calls use them or not.
  std::vector<PhiloxDraw> DrawNumbers() {
    std::vector<PhiloxDraw> draws;  // for recorded calls
    std::vector<c10::Storage> drawn(note_.draws.size());
    for (size_t d = 0; d < drawn.size(); ++d) {
      const Draw& draw = note_.draws[d];
      if (draw.op == nullptr) {
        const PhiloxDraw now = draws.emplace_back(TakeNotedDraw(draw.per_thread));
        for (const size_t number : draw.numbers) {
          numbers_[number] = now.seed;
          numbers_[number + 1] = now.offset;
        }
        continue;
      }
      drawn[d] = MakeStorage(draw.size_bytes);
      torch::jit::Stack stack = {TensorOn(drawn[d], draw.geometry)};
      stack.insert(stack.end(), draw.args.begin(), draw.args.end());
      RunNow(*draw.op, &stack, "immediate");
    }
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (note_.storages[s].kind == Storage::Kind::kDrawn) storages_[s] = drawn[note_.storages[s].index];
    }
    return draws;
  }

  void Record() {
    AppendCalls(&note_, std::move(numbers_), &storages_);
    base::Count(base::Counter::kCallsTotal, static_cast<int64_t>(note_.calls.size()));
    base::Count(base::Counter::kReplays);
  }

  // As autograd counts them.
  void CountWrites() {
    for (const Storage& noted : note_.storages) {
      if (noted.num_writes == 0) continue;
      if (noted.kind == Storage::Kind::kInput) {
        c10::TensorImpl* const written = inputs_[noted.index].unsafeGetTensorImpl();
        for (uint32_t n = 0; n < noted.num_writes && !written->is_inference(); ++n) written->bump_version();
      } else {
        for (uint32_t n = 0; n < noted.num_writes; ++n) note_.captured[noted.index].version.bump();
      }
    }
  }

  std::vector<at::Tensor> Results() const {
    std::vector<at::Tensor> results;
    for (const ReplayNote::Output& output : note_.outputs) {
      if (output.is_input)
        results.push_back(inputs_[static_cast<size_t>(output.input)]);
      else if (output.storage >= 0)
        results.push_back(TensorOn(storages_[static_cast<size_t>(output.storage)], output.geometry));
      else
        results.push_back(TensorOn(inputs_[static_cast<size_t>(output.input)].storage(), output.geometry));
    }
    if (!note_.saves) return results;
    std::vector<at::Tensor> saved(note_.left.size());
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (note_.storages[s].left >= 0) saved[static_cast<size_t>(note_.storages[s].left)] = BytesOf(storages_[s]);
    }
    results.insert(results.end(), saved.begin(), saved.end());
    return results;
  }

 private:
  ReplayNote& note_;
  at::TensorList inputs_;
  std::vector<c10::IValue> numbers_;
  std::vector<c10::Storage> captured_;  // moved into the next
  std::vector<c10::Storage> storages_;  // of each of the note's that has one
};

}  // namespace

std::optional<std::vector<at::Tensor>> RunNote(ReplayNote* note, at::TensorList inputs,
                                               std::vector<c10::IValue> numbers, std::vector<PhiloxDraw>* draws) {
  const OnDevice on(note->calls.empty() ? -1 : DeviceOfSettings(SettingsOf(note->calls.front()->words()[0])));
  Run run(note, inputs, std::move(numbers));
  if (!run.FindCaptured() || !run.FindStorages()) return std::nullopt;
  *draws = run.DrawNumbers();
  run.Record();
  run.CountWrites();
  return run.Results();
}

}  // namespace torch_lazy::lazy
