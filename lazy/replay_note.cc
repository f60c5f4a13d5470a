// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay_note.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lazy/geometry.h"
#include "lazy/history.h"
#include "lazy/lock.h"
#include "lazy/storage.h"

namespace torch_lazy::lazy {
namespace {

using Source = ReplayNote::Source;
using Output = ReplayNote::Output;

// Reads the thread's trace. The device lock is held.
class Taker {
 public:
  Taker(Noting* noting, at::TensorList inputs, at::TensorList outputs, ReplayNote* note)
      : noting_(*noting), trace_(*ThreadTrace()), inputs_(inputs), outputs_(outputs), note_(*note) {}

  // False if the trace does not hold all calls, or nothing else.
  bool IsWhole() {
    if (&trace_ == noting_.trace.get() && trace_.num_calls() != 0) return true;
    const CutSite* cut = noting_.trace->cut;
    Break(noting_.trace->num_calls() == 0 ? "it makes no call that is recorded"
          : cut != nullptr                ? absl::StrCat("it is cut inside: ", cut->reason, " ", cut->line.text)
                                          : "it is cut inside");
    return false;
  }

  void TakeCalls() {
    note_.trie = trace_.trie;
    note_.path = trace_.path;
    note_.numbers = trace_.numbers;
    note_.new_bytes = trace_.new_bytes;
    note_.draws = std::move(noting_.draws);
    for (Trace::Slot slot : trace_.slots) {
      slot.content = c10::Storage();
      slot.owner = nullptr;
      note_.slots.push_back(std::move(slot));
    }
  }

  void TakeSources() {
    note_.sources.resize(trace_.slots.size());
    for (NotedStorage& touched : noting_.storages) {
      Source& source = note_.sources[static_cast<size_t>(touched.slot)];
      const auto input = std::find(noting_.inputs.begin(), noting_.inputs.end(), touched.serial);
      const auto draw = std::find_if(note_.draws.begin(), note_.draws.end(), [&](const Draw& d) { return d.serial == touched.serial; });
      if (input != noting_.inputs.end()) {
        source.kind = Source::Kind::kInput;
        source.index = static_cast<size_t>(input - noting_.inputs.begin());
      } else if (draw != note_.draws.end()) {
        source.kind = Source::Kind::kDrawn;
        source.index = static_cast<size_t>(draw - note_.draws.begin());
      } else if (touched.serial < noting_.first_serial) {
        source.kind = Source::Kind::kCaptured;
        source.index = note_.captured.size();
        note_.captured.push_back({std::move(touched.storage), std::move(touched.tensor)});
      } else if (trace_.slots[static_cast<size_t>(touched.slot)].older) {
        Break("it fills memory from the host");
      }
    }
  }

  // What was made and is still alive is returned, or left behind: the latter's storages.
  std::vector<c10::Storage> TakeNew() {
    std::vector<c10::Storage> left;
    for (size_t s = 0; s < note_.sources.size(); ++s) {
      LazyStorageImpl* owner = trace_.slots[s].owner;
      Source& source = note_.sources[s];
      if (owner == nullptr || source.kind == Source::Kind::kInput || source.kind == Source::Kind::kCaptured) continue;
      const auto output = std::find_if(outputs_.begin(), outputs_.end(), [&](const at::Tensor& t) { return DenseStorageOf(t) == owner; });
      if (output != outputs_.end()) {
        source.output = static_cast<int32_t>(output - outputs_.begin());
      } else {
        source.left = static_cast<int32_t>(left.size());
        left.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(owner));
      }
    }
    return left;
  }

  // After TakeNew.
  void TakeOutputs() {
    for (const at::Tensor& tensor : outputs_) {
      Output& output = note_.outputs.emplace_back();
      const LazyStorageImpl* storage = DenseStorageOf(tensor);
      if (storage == nullptr) {
        Break("it returns what is no dense tensor of the device");
        continue;
      }
      if (tensor.requires_grad() && !note_.saves) Break("its result needs gradients");
      output.geometry = GeometryOf(tensor);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (output.input < 0 && DenseStorageOf(inputs_[i]) == storage) output.input = static_cast<int32_t>(i);
        if (!inputs_[i].is_same(tensor)) continue;
        output.input = static_cast<int32_t>(i);
        output.is_input = true;
      }
      for (size_t s = 0; s < trace_.slots.size(); ++s) {
        if (trace_.slots[s].owner == storage && note_.sources[s].output >= 0) output.slot = static_cast<int32_t>(s);
      }
      if (output.slot < 0 && output.input < 0) Break("it returns a tensor that it was not given and has not made");
    }
  }

 private:
  void Break(const std::string& why) {
    if (noting_.broken.empty()) noting_.broken = why;
  }

  Noting& noting_;
  const Trace& trace_;
  at::TensorList inputs_, outputs_;
  ReplayNote& note_;
};

}  // namespace

bool ReplayNote::SameCalls(const ReplayNote& other) const {
  if (path != other.path || sources != other.sources || outputs != other.outputs || saves != other.saves) return false;
  return std::equal(captured.begin(), captured.end(), other.captured.begin(), other.captured.end(),
                    [](const Captured& a, const Captured& b) { return a.storage == b.storage; }) &&
         std::equal(draws.begin(), draws.end(), other.draws.begin(), other.draws.end(),
                    [](const Draw& a, const Draw& b) { return a.op == b.op && a.geometry == b.geometry; });
}

std::optional<ReplayNote> TakeNote(Noting* noting, at::TensorList inputs, at::ArrayRef<double> arguments, at::TensorList outputs,
                                   bool saves, std::vector<at::Tensor>* left) {
  ReplayNote note;
  note.saves = saves;
  note.arguments = arguments.vec();
  std::vector<c10::Storage> left_storages;
  {
    Locked lock(DeviceLock());
    Taker taker(noting, inputs, outputs, &note);
    if (taker.IsWhole() && noting->broken.empty()) {
      taker.TakeCalls();
      taker.TakeSources();
      left_storages = taker.TakeNew();
      taker.TakeOutputs();
    }
  }
  for (const c10::Storage& storage : left_storages) {
    note.left.emplace_back(storage.getWeakStorageImpl());
    if (saves) left->push_back(BytesOf(storage));
  }
  if (!noting->broken.empty()) return std::nullopt;
  return note;
}

LazyStorageImpl* DenseStorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? LazyStorageImpl::Of(tensor) : nullptr;
}

at::Tensor BytesOf(c10::Storage storage) {
  const int64_t size = static_cast<int64_t>(storage.nbytes());
  return MakeTensor(std::move(storage), at::kByte, {size}, {1});
}

}  // namespace torch_lazy::lazy
