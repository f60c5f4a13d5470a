// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay.h"

#include <algorithm>
#include <utility>

#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "lazy/advance.h"
#include "lazy/closing.h"
#include "lazy/history.h"
#include "lazy/run_call.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kMaxTries = 8;  // calls that were noted, and of which no two in a row were alike

struct Registry {
  std::mutex lock;
  std::vector<Replay*> all;
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

// A number that a trace holds; nullopt for lists and for tensors of the host that are not numbers PyTorch has wrapped.
std::optional<double> ValueOf(const c10::IValue& number) {
  if (number.isBool()) return number.toBool();
  if (number.isInt()) return static_cast<double>(number.toInt());
  if (number.isDouble()) return number.toDouble();
  if (!number.isTensor() || !number.toTensor().defined() || number.toTensor().is_complex()) return std::nullopt;
  return number.toTensor().item<double>();
}

// A number of the same type as `like`.
c10::IValue NumberLike(const c10::IValue& like, double value) {
  if (like.isInt()) return static_cast<int64_t>(value);
  if (like.isTensor() && at::isIntegralType(like.toTensor().scalar_type(), true)) {
    return at::native::wrapped_scalar_tensor(static_cast<int64_t>(value));
  }
  if (like.isTensor()) return at::native::wrapped_scalar_tensor(value);
  return value;
}

LazyStorageImpl* StorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? LazyStorageImpl::Of(tensor) : nullptr;
}

// The trace of another thread that must run before this one may read, or write, the storage.
std::shared_ptr<Trace> ConflictOver(const LazyStorageImpl& storage, bool written, const Trace* own) {
  for (const LazyStorageImpl::Touch& touch : storage.touches) {
    if (touch.trace.get() == own) continue;
    CheckNotFailed(*touch.trace);
    if (written || touch.trace.get() == storage.writer) return touch.trace;
  }
  return nullptr;
}

// The storage takes its place in the trace.
void Attach(const std::shared_ptr<Trace>& trace, size_t slot, LazyStorageImpl* storage) {
  Trace::Slot& at = trace->slots[slot];
  at.owner = storage;
  at.calls_at_death = UINT32_MAX;
  if (at.external) at.content = storage->content;
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

at::Tensor BytesOf(c10::Storage storage) {
  const int64_t size = static_cast<int64_t>(storage.nbytes());
  return MakeTensor(std::move(storage), at::kByte, {size}, {1});
}

}  // namespace

Replay::Replay() {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.lock);
  registry.all.push_back(this);
}

Replay::~Replay() {
  Abandon();
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.lock);
  std::erase(registry.all, this);
}

std::vector<int64_t> Replay::KeyOf(at::TensorList inputs) {
  std::vector<int64_t> key = {CurrentSettings(), c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(),
                              at::autocast::is_autocast_enabled(at::kPrivateUse1),
                              static_cast<int64_t>(at::autocast::get_autocast_dtype(at::kPrivateUse1))};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const LazyStorageImpl* storage = StorageOf(inputs[i]);
    key.push_back(storage == nullptr ? -1 : static_cast<int64_t>(storage->nbytes()));
    if (storage == nullptr) continue;
    const Geometry geometry = GeometryOf(inputs[i]);
    key.push_back(static_cast<int64_t>(geometry.dtype) | geometry.conj << 8 | geometry.neg << 9 | inputs[i].requires_grad() << 10 |
                  inputs[i].dim() << 16);
    key.insert(key.end(), geometry.sizes.begin(), geometry.sizes.end());
    key.insert(key.end(), geometry.strides.begin(), geometry.strides.end());
    key.push_back(geometry.offset);
    size_t first = 0;
    while (StorageOf(inputs[first]) != storage) ++first;
    key.push_back(static_cast<int64_t>(first));
  }
  return key;
}

void Replay::Begin(at::TensorList inputs) {
  TORCH_CHECK(CurrentNoting() == nullptr, "lazy: a function that is replayed calls another one that is");
  CutThreadTrace("replay");
  last_key_ = KeyOf(inputs);
  noting_ = std::make_unique<Noting>();
  noting_->first_serial = LazyStorageImpl::NextSerial();
  for (const at::Tensor& input : inputs) {
    const LazyStorageImpl* storage = StorageOf(input);
    if (storage == nullptr) noting_->broken = "an argument is no dense tensor of the device";
    noting_->inputs.push_back(storage == nullptr ? 0 : storage->serial());
  }
  CurrentNoting() = noting_.get();
  Locked lock(DeviceLock());
  noting_->trace = ThreadTrace();
  noting_->trace->noting = noting_.get();
}

void Replay::Abandon() {
  if (noting_ == nullptr) return;
  if (CurrentNoting() == noting_.get()) CurrentNoting() = nullptr;
  Locked lock(DeviceLock());
  noting_->trace->noting = nullptr;
  noting_ = nullptr;
}

std::vector<at::Tensor> Replay::End(at::TensorList inputs, at::ArrayRef<double> numbers, at::TensorList outputs, bool saves) {
  TORCH_CHECK(noting_ != nullptr, "lazy: the end of a function that has not begun");
  std::vector<at::Tensor> left;
  std::optional<Note> note = Take(noting_.get(), inputs, numbers, outputs, saves, &left);
  State& state = states_[last_key_];
  const std::string broken = noting_->broken;
  Abandon();
  if (!state.refusal.empty()) return left;
  if (note && state.note && SameCalls(*state.note, *note)) {
    Match(*state.note, *note, &state);
  } else {
    state.ready = false;
    state.argument_of.clear();
    if (++state.num_tries >= kMaxTries) state.refusal = !broken.empty() ? broken : "it does not make the same calls twice";
  }
  state.note = std::move(note);
  return left;
}

std::optional<Replay::Note> Replay::Take(Noting* noting, at::TensorList inputs, at::ArrayRef<double> arguments,
                                         at::TensorList outputs, bool saves, std::vector<at::Tensor>* left) {
  Note note;
  note.saves = saves;
  note.arguments = arguments.vec();
  std::vector<c10::Storage> left_storages;
  {
    Locked lock(DeviceLock());
    const std::shared_ptr<Trace>& trace = ThreadTrace();
    const bool is_whole = trace == noting->trace && trace->num_calls() != 0;
    if (!is_whole && noting->broken.empty()) {
      const CutSite* cut = noting->trace->cut;
      noting->broken = noting->trace->num_calls() == 0 ? "it makes no call that is recorded"
                       : cut != nullptr                ? absl::StrCat("it is cut inside: ", cut->reason, " ", cut->line.text)
                                                       : "it is cut inside";
    }
    if (is_whole && noting->broken.empty()) {
      note.path = trace->path;
      note.numbers = trace->numbers;
      note.new_bytes = trace->new_bytes;
      note.draws = std::move(noting->draws);
      note.sources.resize(trace->slots.size());
      for (NotedStorage& touched : noting->storages) {
        Source& source = note.sources[static_cast<size_t>(touched.slot)];
        const auto input = std::find(noting->inputs.begin(), noting->inputs.end(), touched.serial);
        const auto draw = std::find_if(note.draws.begin(), note.draws.end(), [&](const Draw& d) { return d.serial == touched.serial; });
        if (input != noting->inputs.end()) {
          source.kind = Source::Kind::kInput;
          source.index = static_cast<size_t>(input - noting->inputs.begin());
        } else if (draw != note.draws.end()) {
          source.kind = Source::Kind::kDrawn;
          source.index = static_cast<size_t>(draw - note.draws.begin());
        } else if (touched.serial < noting->first_serial) {
          source.kind = Source::Kind::kCaptured;
          source.index = note.captured.size();
          note.captured.push_back({std::move(touched.storage), std::move(touched.tensor)});
        } else if (trace->slots[static_cast<size_t>(touched.slot)].older) {
          noting->broken = "it fills memory from the host";
        }
      }
      for (Trace::Slot slot : trace->slots) {
        slot.content = c10::Storage();
        slot.owner = nullptr;
        note.slots.push_back(std::move(slot));
      }
      for (size_t s = 0; s < note.sources.size(); ++s) {
        LazyStorageImpl* owner = trace->slots[s].owner;
        Source& source = note.sources[s];
        if (owner == nullptr || source.kind == Source::Kind::kInput || source.kind == Source::Kind::kCaptured) continue;
        for (size_t k = 0; source.output < 0 && k < outputs.size(); ++k) {
          if (StorageOf(outputs[k]) == owner) source.output = static_cast<int32_t>(k);
        }
        if (source.output >= 0) continue;
        source.left = static_cast<int32_t>(left_storages.size());
        left_storages.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(owner));
      }
      for (const at::Tensor& tensor : outputs) {
        Output& output = note.outputs.emplace_back();
        const LazyStorageImpl* storage = StorageOf(tensor);
        if (storage == nullptr) {
          noting->broken = "it returns what is no dense tensor of the device";
          continue;
        }
        if (tensor.requires_grad() && !saves) noting->broken = "its result needs gradients";
        output.geometry = GeometryOf(tensor);
        for (size_t i = 0; i < inputs.size() && output.input < 0; ++i) {
          if (StorageOf(inputs[i]) == storage) output.input = static_cast<int32_t>(i);
        }
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (!inputs[i].is_same(tensor)) continue;
          output.input = static_cast<int32_t>(i);
          output.is_input = true;
        }
        for (size_t s = 0; s < trace->slots.size(); ++s) {
          if (trace->slots[s].owner == storage && note.sources[s].output >= 0) output.slot = static_cast<int32_t>(s);
        }
        if (output.slot < 0 && output.input < 0) noting->broken = "it returns a tensor that it was not given and has not made";
      }
    }
  }
  for (const c10::Storage& storage : left_storages) {
    note.left.emplace_back(storage.getWeakStorageImpl());
    if (saves) left->push_back(BytesOf(storage));
  }
  if (!noting->broken.empty()) return std::nullopt;
  return note;
}

bool Replay::SameCalls(const Note& one, const Note& other) {
  if (one.path != other.path || one.sources != other.sources || one.outputs != other.outputs || one.saves != other.saves) return false;
  if (one.captured.size() != other.captured.size() || one.draws.size() != other.draws.size()) return false;
  for (size_t k = 0; k < one.captured.size(); ++k) {
    if (one.captured[k].storage != other.captured[k].storage) return false;
  }
  for (size_t k = 0; k < one.draws.size(); ++k) {
    if (one.draws[k].op != other.draws[k].op || one.draws[k].geometry != other.draws[k].geometry) return false;
  }
  return true;
}

// The numbers that differ between two calls must be arguments, and stay them.
void Replay::Match(const Note& before, const Note& now, State* state) {
  state->argument_of.resize(now.numbers.size(), -1);
  for (size_t n = 0; n < now.numbers.size(); ++n) {
    const std::optional<double> was = ValueOf(before.numbers[n]), is = ValueOf(now.numbers[n]);
    if (!was || !is) {
      state->refusal = "a number comes as a tensor of the host, or in a list";
      return;
    }
    int32_t& argument = state->argument_of[n];
    const auto equals = [&](size_t a) { return before.arguments[a] == *was && now.arguments[a] == *is; };
    if (argument >= 0 ? equals(static_cast<size_t>(argument)) : *was == *is) continue;
    argument = -1;
    for (size_t a = 0; argument < 0 && a < now.arguments.size(); ++a) {
      if (before.arguments.size() == now.arguments.size() && equals(a)) argument = static_cast<int32_t>(a);
    }
    if (argument >= 0) continue;
    size_t call = 0;
    while (call + 1 < now.path.size() && now.path[call + 1]->expected->first_number <= n) ++call;
    state->refusal = absl::StrCat("a number of call ", call + 1, ", ", now.path[call]->op->name, ", was ", *was, " and then ", *is,
                                  ", and is no argument");
    return;
  }
  state->ready = true;
}

bool Replay::MayRun(const State& state, at::ArrayRef<double> arguments) {
  if (!state.ready || !state.refusal.empty() || arguments.size() != state.note->arguments.size()) return false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const bool varies = std::find(state.argument_of.begin(), state.argument_of.end(), static_cast<int32_t>(a)) != state.argument_of.end();
    if (!varies && arguments[a] != state.note->arguments[a]) return false;  // nobody knows yet what it changes
  }
  return true;
}

std::optional<std::vector<at::Tensor>> Replay::Run(at::TensorList inputs, at::ArrayRef<double> arguments) {
  last_key_ = KeyOf(inputs);
  const auto found = states_.find(last_key_);
  if (found == states_.end() || !MayRun(found->second, arguments) || CurrentNoting() != nullptr) return std::nullopt;
  const Note& note = *found->second.note;
  std::vector<c10::Storage> captured, left;
  std::vector<c10::intrusive_ptr<c10::TensorImpl>> tensors;
  for (const Captured& from : note.captured) {
    c10::intrusive_ptr<c10::StorageImpl> storage = from.storage.lock();
    tensors.push_back(from.tensor.lock());
    if (storage == nullptr) return std::nullopt;
    if (tensors.back() != nullptr && tensors.back()->storage().unsafeGetStorageImpl() != storage.get()) return std::nullopt;
    captured.emplace_back(std::move(storage));
  }
  // What the function leaves behind: new with each call, or that of the recording if anyone still has it.
  for (size_t k = 0; k < note.left.size(); ++k) left.emplace_back(note.saves ? nullptr : note.left[k].lock());
  std::vector<at::Tensor> drawn;
  CutThreadTrace("replay");
  for (const Draw& draw : note.draws) {
    drawn.push_back(TensorOn(MakeStorage(draw.size_bytes), draw.geometry));
    torch::jit::Stack stack = {drawn.back()};
    stack.insert(stack.end(), draw.args.begin(), draw.args.end());
    RunNow(*draw.op, &stack, "immediate");
  }

  std::vector<c10::Storage> storages(note.slots.size());  // of each slot that has one
  for (size_t s = 0; s < note.slots.size(); ++s) {
    const Source& source = note.sources[s];
    switch (source.kind) {
      case Source::Kind::kInput: storages[s] = inputs[source.index].storage(); break;
      case Source::Kind::kCaptured: storages[s] = captured[source.index]; break;
      case Source::Kind::kDrawn: storages[s] = drawn[source.index].storage(); break;
      case Source::Kind::kNew:
        if (source.left >= 0) storages[s] = left[static_cast<size_t>(source.left)];
        if (source.output >= 0 || (source.left >= 0 && note.saves)) storages[s] = MakeStorage(note.slots[s].size_bytes);
    }
  }
  const char* reason = nullptr;
  while (true) {
    std::shared_ptr<Trace> conflict;
    {
      Locked lock(DeviceLock());
      const std::shared_ptr<Trace>& trace = ThreadTrace();
      for (size_t s = 0; s < storages.size() && conflict == nullptr; ++s) {
        if (!storages[s]) continue;
        const auto& storage = static_cast<const LazyStorageImpl&>(*storages[s].unsafeGetStorageImpl());
        if (storage.nbytes() != note.slots[s].size_bytes) return std::nullopt;
        conflict = ConflictOver(storage, note.slots[s].written, trace.get());
      }
      if (conflict == nullptr) {
        reason = PutTrace(found->second, arguments, storages, trace);
        break;
      }
    }
    CutAndRun(conflict, "another thread");
  }
  base::Count(base::Counter::kReplays);
  for (size_t s = 0; s < note.slots.size(); ++s) {
    if (!note.slots[s].written) continue;
    const Source& source = note.sources[s];
    c10::TensorImpl* written = source.kind == Source::Kind::kInput      ? inputs[source.index].unsafeGetTensorImpl()
                               : source.kind == Source::Kind::kCaptured ? tensors[source.index].get()
                                                                        : nullptr;
    if (written != nullptr && !written->is_inference()) written->bump_version();
  }
  std::vector<at::Tensor> results;
  for (const Output& output : note.outputs) {
    if (output.is_input) results.push_back(inputs[static_cast<size_t>(output.input)]);
    else if (output.slot >= 0) results.push_back(TensorOn(storages[static_cast<size_t>(output.slot)], output.geometry));
    else results.push_back(TensorOn(inputs[static_cast<size_t>(output.input)].storage(), output.geometry));
  }
  if (note.saves) {
    std::vector<at::Tensor> saved(note.left.size());
    for (size_t s = 0; s < note.slots.size(); ++s) {
      if (note.sources[s].left >= 0) saved[static_cast<size_t>(note.sources[s].left)] = BytesOf(storages[s]);
    }
    results.insert(results.end(), saved.begin(), saved.end());
  }
  if (reason != nullptr) CutThreadTrace(reason);
  return results;
}

const char* Replay::PutTrace(const State& state, at::ArrayRef<double> arguments, const std::vector<c10::Storage>& storages,
                             const std::shared_ptr<Trace>& trace) {
  const Note& note = *state.note;
  trace->path = note.path;
  trace->at = note.path.back()->expected;
  trace->slots = note.slots;
  trace->numbers = note.numbers;
  trace->new_bytes = note.new_bytes;
  for (size_t n = 0; n < note.numbers.size(); ++n) {
    if (state.argument_of[n] >= 0) trace->numbers[n] = NumberLike(note.numbers[n], arguments[static_cast<size_t>(state.argument_of[n])]);
  }
  for (size_t s = 0; s < storages.size(); ++s) {
    if (storages[s]) {
      Attach(trace, s, static_cast<LazyStorageImpl*>(storages[s].unsafeGetStorageImpl()));
    } else if (trace->slots[s].calls_at_death == UINT32_MAX) {
      trace->slots[s].calls_at_death = static_cast<uint32_t>(note.path.size());
    }
  }
  base::Count(base::Counter::kCallsTotal, static_cast<int64_t>(note.path.size()));
  return MustCut(trace.get(), /*grown=*/false);
}

bool Replay::ready() const {
  const auto found = states_.find(last_key_);
  return found != states_.end() && found->second.ready && found->second.refusal.empty();
}

std::string Replay::refusal() const {
  const auto found = states_.find(last_key_);
  return found == states_.end() ? "" : found->second.refusal;
}

std::string TextOfRefusals() {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.lock);
  std::string text;
  for (Replay* replay : registry.all) {
    if (const std::string refusal = replay->refusal(); !refusal.empty()) absl::StrAppend(&text, "not replayed: ", refusal, "\n");
  }
  return text;
}

}  // namespace torch_lazy::lazy
