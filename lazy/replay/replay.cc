// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay/replay.h"

#include <algorithm>
#include <utility>

#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "absl/strings/str_cat.h"
#include "lazy/cuts/cut.h"
#include "lazy/host/lock.h"
#include "lazy/ops/call_settings.h"
#include "lazy/replay/player.h"
#include "lazy/trace/new_slots.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kMaxTries = 8;  // calls that were recorded, and of which no two in a row were alike

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

void Replay::Watch(at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) {
    watched_.push_back(
        {c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), tensor.storage().unsafeGetStorageImpl()});
  }
}

bool Replay::HasMoved() const {
  return std::ranges::any_of(watched_,
                             [](const Watched& watched) { return HasOtherStorage(watched.tensor, watched.storage); });
}

std::vector<int64_t> Replay::KeyOf(at::TensorList inputs) const {
  std::vector<int64_t> key;
  if (pass_ != Pass::kBackward) {
    key = {CurrentSettings(), c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(),
           at::autocast::is_autocast_enabled(at::kPrivateUse1),
           static_cast<int64_t>(at::autocast::get_autocast_dtype(at::kPrivateUse1))};
  }
  key.reserve(key.size() + 10 * inputs.size());
  c10::SmallVector<LazyStorageImpl*, 64> storages;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LazyStorageImpl* const storage = storages.emplace_back(DenseStorageOf(inputs[i]));
    key.push_back(storage == nullptr ? -1 : static_cast<int64_t>(storage->nbytes()));
    if (storage == nullptr) continue;
    const Geometry geometry = GeometryOf(inputs[i]);
    key.push_back(static_cast<int64_t>(geometry.dtype) | geometry.conj << 8 | geometry.neg << 9 |
                  (pass_ != Pass::kBackward && inputs[i].requires_grad()) << 10 | inputs[i].dim() << 16 |
                  static_cast<int64_t>(inputs[i].device().index()) << 32);
    key.insert(key.end(), geometry.sizes.begin(), geometry.sizes.end());
    key.insert(key.end(), geometry.strides.begin(), geometry.strides.end());
    key.push_back(geometry.offset);
  }
  Locked lock(DeviceLock());
  NewSlots numbers(0);
  for (LazyStorageImpl* const storage : storages)
    key.push_back(storage == nullptr ? -1 : numbers.Of(storage));  // which lie on one
  return key;
}

Replay::State& Replay::StateOf(const std::vector<int64_t>& key) {
  const auto [found, is_new] = states_.try_emplace(key);
  if (is_new) found->second.number = static_cast<int64_t>(states_.size());
  return found->second;
}

int64_t Replay::last_case() const {
  const auto found = states_.find(last_key_);
  return found == states_.end() ? 0 : found->second.number;
}

void Replay::Pair(int64_t number, std::vector<bool> differentiable) {
  for (auto& [key, state] : states_) {
    if (state.number == number) state.differentiable = differentiable;
  }
}

const std::vector<bool>& Replay::differentiable() const { return states_.at(last_key_).differentiable; }

std::vector<bool> Replay::UsedInputs(size_t num_inputs) const {
  std::vector<bool> used(num_inputs, false);
  const auto found = states_.find(last_key_);
  if (found == states_.end() || found->second.recording == nullptr) return std::vector<bool>(num_inputs, true);
  for (const ReplayRecording::Storage& storage : found->second.recording->storages) {
    if (storage.kind == ReplayRecording::Storage::Kind::kInput && storage.index < num_inputs)
      used[storage.index] = true;
  }
  return used;
}

void Replay::Begin(at::TensorList inputs) {
  TORCH_CHECK(CurrentReplayRecorder() == nullptr, "lazy: a function that is replayed calls another one that is");
  if (HasMoved()) {
    for (auto& [key, state] : states_) state.ready = false, state.recording = nullptr;
    for (Watched& watched : watched_) {
      if (const auto tensor = watched.tensor.lock()) watched.storage = tensor->storage().unsafeGetStorageImpl();
    }
  }
  last_key_ = KeyOf(inputs);
  if (StateOf(last_key_).begins_anew) CutThreadTrace("replay");
  recorder_ = std::make_unique<ReplayRecorder>();
  recorder_->first_serial = LazyStorageImpl::NextSerial();
  for (const at::Tensor& input : inputs) {
    const LazyStorageImpl* storage = DenseStorageOf(input);
    if (storage == nullptr) recorder_->broken = "an argument is no dense tensor of the device";
    recorder_->inputs.push_back(storage == nullptr ? 0 : storage->serial());
    recorder_->versions.push_back(storage == nullptr ? 0 : VersionOf(input.unsafeGetTensorImpl()));
  }
  CurrentReplayRecorder() = recorder_.get();
  if (const std::shared_ptr<Trace> trace = NewestTrace(); trace != nullptr && trace->ends_step)
    CutAndGoOn(trace, trace->what_ends());
  Locked lock(DeviceLock());
  recorder_->trace = RecordingTrace();
  recorder_->first_call = recorder_->trace->num_calls();
  recorder_->first_number = recorder_->trace->numbers.size();
  recorder_->bytes_before = recorder_->trace->new_bytes;
  recorder_->trace->recorder = recorder_.get();
  recorder_->trace->replays = true;
}

void Replay::Abandon() {
  if (recorder_ == nullptr) return;
  if (CurrentReplayRecorder() == recorder_.get()) CurrentReplayRecorder() = nullptr;
  Locked lock(DeviceLock());
  recorder_->trace->recorder = nullptr;
  recorder_ = nullptr;
}

std::vector<at::Tensor> Replay::End(at::TensorList inputs, at::ArrayRef<double> numbers,
                                    at::ArrayRef<PhiloxDraw> given_draws, at::TensorList outputs, bool saves) {
  TORCH_CHECK(recorder_ != nullptr, "lazy: the end of a function that has not begun");
  TORCH_CHECK_VALUE(inputs.size() == recorder_->inputs.size(), "lazy: a function that began with ",
                    recorder_->inputs.size(), " tensors ends with ", inputs.size());
  last_draws_.clear();
  for (const RecordedDraw& draw : recorder_->draws) {
    if (draw.op == nullptr) last_draws_.push_back(draw.philox);
  }
  std::vector<at::Tensor> left;
  std::optional<ReplayRecording> recording =
      FinishRecording(recorder_.get(), inputs, numbers, given_draws, outputs, saves, &left);
  State& state = StateOf(last_key_);
  const std::string broken = recorder_->broken;
  state.begins_anew = state.begins_anew || recorder_->is_cut;
  Abandon();
  if (!state.refusal.empty()) return left;
  if (recording && state.recording && state.recording->SameCalls(*recording)) {
    Match(*state.recording, *recording, &state);
  } else {
    state.ready = false;
    state.argument_of.clear();
    state.changes.clear();
    if (++state.num_tries >= kMaxTries)
      state.refusal = !broken.empty() ? broken : "it does not make the same calls twice";
  }
  state.differentiable.clear();  // until the backward pass has been recorded as well
  state.recording = recording ? std::make_shared<ReplayRecording>(*std::move(recording)) : nullptr;
  return left;
}

// The numbers that differ between two calls must be arguments, and stay them.
void Replay::Match(const ReplayRecording& before, const ReplayRecording& now, State* state) {
  state->argument_of.resize(now.numbers.size(), -1);
  state->changes.resize(now.arguments.size(), false);
  for (size_t a = 0; a < std::min(before.arguments.size(), now.arguments.size()); ++a) {
    if (before.arguments[a] != now.arguments[a]) state->changes[a] = true;
  }
  const auto is_drawn = [&](size_t n) {
    const auto has = [&](const std::vector<size_t>& seeds) {
      return std::ranges::any_of(seeds, [&](size_t seed) { return n == seed || n == seed + 1; });
    };
    return std::ranges::any_of(now.draws, has, &RecordedDraw::numbers) || std::ranges::any_of(now.given_draws, has);
  };
  for (size_t n = 0; n < now.numbers.size(); ++n) {
    if (is_drawn(n)) continue;  // anew by each replay, or by the pass before
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
    while (call + 1 < now.calls.size() &&
           now.calls[call + 1]->expected->first_number - now.calls[0]->expected->first_number <= n)
      ++call;
    state->refusal = absl::StrCat("a number of call ", call + 1, ", ", now.calls[call]->op->name, ", was ", *was,
                                  " and then ", *is, ", and is no argument");
    return;
  }
  state->ready = true;
}

bool Replay::MayRun(const State& state, at::ArrayRef<double> arguments, size_t num_given_draws) const {
  if (pass_ == Pass::kForward && state.differentiable.empty()) return false;
  if (!state.ready || !state.refusal.empty() || arguments.size() != state.recording->arguments.size()) return false;
  if (num_given_draws != state.recording->given_draws.size()) return false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!state.changes[a] && arguments[a] != state.recording->arguments[a])
      return false;  // nobody knows yet what it changes
  }
  return true;
}

std::optional<std::vector<at::Tensor>> Replay::Run(at::TensorList inputs, at::ArrayRef<double> arguments,
                                                   at::ArrayRef<PhiloxDraw> given_draws) {
  if (HasMoved()) return std::nullopt;
  last_key_ = KeyOf(inputs);
  const auto found = states_.find(last_key_);
  if (found == states_.end() || !MayRun(found->second, arguments, given_draws.size()) ||
      CurrentReplayRecorder() != nullptr)
    return std::nullopt;
  const State& state = found->second;
  const std::shared_ptr<ReplayRecording> recording = state.recording;
  std::vector<c10::IValue> numbers = recording->numbers;
  for (size_t n = 0; n < numbers.size(); ++n) {
    if (state.argument_of[n] >= 0)
      numbers[n] = NumberLike(numbers[n], arguments[static_cast<size_t>(state.argument_of[n])]);
  }
  for (size_t d = 0; d < given_draws.size(); ++d) {
    for (const size_t number : recording->given_draws[d]) {
      numbers[number] = given_draws[d].seed;
      numbers[number + 1] = given_draws[d].offset;
    }
  }
  return PlayRecording(recording.get(), inputs, std::move(numbers), &last_draws_);
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
    if (const std::string refusal = replay->refusal(); !refusal.empty())
      absl::StrAppend(&text, "not replayed: ", refusal, "\n");
  }
  return text;
}

}  // namespace torch_lazy::lazy
