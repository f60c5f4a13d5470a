// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay_run.h"

#include <utility>

#include "base/metrics.h"
#include "lazy/advance.h"
#include "lazy/closing.h"
#include "lazy/lock.h"
#include "lazy/run_call.h"
#include "lazy/storage.h"

namespace torch_lazy::lazy {
namespace {

using Source = ReplayNote::Source;

// The storage takes its place in the trace.
void Attach(const std::shared_ptr<Trace>& trace, size_t slot, LazyStorageImpl* storage) {
  Trace::Slot& at = trace->slots[slot];
  at.owner = storage;
  at.calls_at_death = UINT32_MAX;
  if (at.external) at.content = storage->content;
  at.stamp = storage->stamp();
  at.inherits = false;
  ComeAfter(*storage, static_cast<int32_t>(slot), trace);
  storage->touches.push_back({trace, static_cast<int32_t>(slot)});
  if (!at.written) return;
  storage->writer = trace.get();
  ArmPlaceholder(storage);
}

at::Tensor TensorOn(c10::Storage storage, const Geometry& geometry) {
  at::Tensor tensor = MakeTensor(std::move(storage), geometry.dtype, geometry.sizes, geometry.strides, geometry.offset);
  tensor.unsafeGetTensorImpl()->_set_conj(geometry.conj);
  tensor.unsafeGetTensorImpl()->_set_neg(geometry.neg);
  return tensor;
}

class Run {
 public:
  Run(const ReplayNote& note, at::TensorList inputs) : note_(note), inputs_(inputs), storages_(note.slots.size()) {}

  // False if something is gone.
  bool FindCaptured() {
    for (const ReplayNote::Captured& from : note_.captured) {
      c10::intrusive_ptr<c10::StorageImpl> storage = from.storage.lock();
      tensors_.push_back(from.tensor.lock());
      if (storage == nullptr) return false;
      if (tensors_.back() != nullptr && tensors_.back()->storage().unsafeGetStorageImpl() != storage.get()) return false;
      captured_.emplace_back(std::move(storage));
    }
    Locked lock(DeviceLock());
    return note_.trie == CurrentTrie();
  }

  // What the function leaves behind is new with each call if it saves it, else that of the recording if anyone still has it.
  // False if one has another size than when it was noted.
  bool FindStorages() {
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Source& source = note_.sources[s];
      switch (source.kind) {
        case Source::Kind::kInput: storages_[s] = inputs_[source.index].storage(); break;
        case Source::Kind::kCaptured: storages_[s] = captured_[source.index]; break;
        case Source::Kind::kDrawn: break;  // see DrawNumbers
        case Source::Kind::kNew:
          if (source.output >= 0 || (source.left >= 0 && note_.saves)) {
            storages_[s] = MakeStorage(note_.slots[s].size_bytes);
          } else if (source.left >= 0) {
            storages_[s] = c10::Storage(note_.left[static_cast<size_t>(source.left)].lock());
          }
      }
      if (storages_[s] && storages_[s].nbytes() != note_.slots[s].size_bytes) return false;
    }
    return true;
  }

  // In the program's order, whether the trace uses them or not.
  void DrawNumbers() {
    std::vector<c10::Storage> drawn;
    for (const Draw& draw : note_.draws) {
      drawn.push_back(MakeStorage(draw.size_bytes));
      torch::jit::Stack stack = {TensorOn(drawn.back(), draw.geometry)};
      stack.insert(stack.end(), draw.args.begin(), draw.args.end());
      RunNow(*draw.op, &stack, "immediate");
    }
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (note_.sources[s].kind == Source::Kind::kDrawn) storages_[s] = drawn[note_.sources[s].index];
    }
  }

  // Returns the reason to cut the trace, or null.
  const char* PutTrace(std::vector<c10::IValue> numbers) {
    while (true) {
      std::shared_ptr<Trace> conflict;
      {
        Locked lock(DeviceLock());
        const std::shared_ptr<Trace>& trace = ThreadTrace();
        for (size_t s = 0; s < storages_.size() && conflict == nullptr; ++s) {
          if (!storages_[s]) continue;
          conflict = ConflictOver(*static_cast<const LazyStorageImpl*>(storages_[s].unsafeGetStorageImpl()), note_.slots[s].written,
                                  trace.get());
        }
        if (conflict == nullptr) {
          Put(std::move(numbers), trace);
          return MustCut(trace.get(), /*grown=*/false);
        }
      }
      CutAndGoOn(conflict, "another thread");
    }
  }

  // As autograd counts them.
  void CountWrites() const {
    for (size_t s = 0; s < note_.slots.size(); ++s) {
      if (!note_.slots[s].written) continue;
      const Source& source = note_.sources[s];
      c10::TensorImpl* written = source.kind == Source::Kind::kInput      ? inputs_[source.index].unsafeGetTensorImpl()
                                 : source.kind == Source::Kind::kCaptured ? tensors_[source.index].get()
                                                                          : nullptr;
      if (written != nullptr && !written->is_inference()) written->bump_version();
    }
  }

  std::vector<at::Tensor> Results() const {
    std::vector<at::Tensor> results;
    for (const ReplayNote::Output& output : note_.outputs) {
      if (output.is_input) results.push_back(inputs_[static_cast<size_t>(output.input)]);
      else if (output.slot >= 0) results.push_back(TensorOn(storages_[static_cast<size_t>(output.slot)], output.geometry));
      else results.push_back(TensorOn(inputs_[static_cast<size_t>(output.input)].storage(), output.geometry));
    }
    if (!note_.saves) return results;
    std::vector<at::Tensor> saved(note_.left.size());
    for (size_t s = 0; s < note_.slots.size(); ++s) {
      if (note_.sources[s].left >= 0) saved[static_cast<size_t>(note_.sources[s].left)] = BytesOf(storages_[s]);
    }
    results.insert(results.end(), saved.begin(), saved.end());
    return results;
  }

 private:
  // The trace has no calls yet. The device lock is held.
  void Put(std::vector<c10::IValue> numbers, const std::shared_ptr<Trace>& trace) const {
    trace->trie = note_.trie;
    trace->path = note_.path;
    trace->at = note_.path.back()->expected;
    trace->slots = note_.slots;
    trace->numbers = std::move(numbers);
    trace->new_bytes = note_.new_bytes;
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (storages_[s]) {
        Attach(trace, s, static_cast<LazyStorageImpl*>(storages_[s].unsafeGetStorageImpl()));
      } else if (trace->slots[s].calls_at_death == UINT32_MAX) {
        trace->slots[s].calls_at_death = static_cast<uint32_t>(note_.path.size());
      }
    }
    base::Count(base::Counter::kCallsTotal, static_cast<int64_t>(note_.path.size()));
    base::Count(base::Counter::kReplays);
  }

  const ReplayNote& note_;
  at::TensorList inputs_;
  std::vector<c10::intrusive_ptr<c10::TensorImpl>> tensors_;  // of what is captured; null if it is gone
  std::vector<c10::Storage> captured_;
  std::vector<c10::Storage> storages_;  // of each slot that has one
};

}  // namespace

std::optional<std::vector<at::Tensor>> RunNote(const ReplayNote& note, at::TensorList inputs, std::vector<c10::IValue> numbers) {
  Run run(note, inputs);
  if (!run.FindCaptured() || !run.FindStorages()) return std::nullopt;
  CutThreadTraceAndGoOn("replay");
  run.DrawNumbers();
  const char* reason = run.PutTrace(std::move(numbers));
  run.CountWrites();
  std::vector<at::Tensor> results = run.Results();
  if (reason != nullptr) CutThreadTraceAndGoOn(reason);
  return results;
}

}  // namespace torch_lazy::lazy
