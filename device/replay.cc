// SPDX-License-Identifier: Apache-2.0
// torch.ops.torch_lazy.replay_*: functions that are replayed, by number; and tensors of the eager device as the
// device's.
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <torch/library.h>

#include "absl/container/flat_hash_map.h"
#include "device/fork.h"
#include "device/replay_node.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/replay/replay.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

struct Table {
  std::mutex lock;
  std::random_device device;
  absl::flat_hash_map<int64_t, std::shared_ptr<lazy::Replay>> replays;
};

Table& Replays() {
  static Table* const table = new Table;
  return *table;
}

std::shared_ptr<lazy::Replay> Of(int64_t number) {
  Table& table = Replays();
  std::lock_guard<std::mutex> lock(table.lock);
  const auto found = table.replays.find(number);
  TORCH_CHECK_INDEX(found != table.replays.end(), "lazy: there is no replay ", number);
  return found->second;
}

// Its number cannot be guessed: a model file, which may call these operators too, knows its own replays alone.
int64_t New(int64_t pass) {
  TORCH_CHECK_VALUE(pass >= 0 && pass <= static_cast<int64_t>(lazy::Replay::Pass::kBackward), "lazy: there is no pass ",
                    pass);
  Table& table = Replays();
  std::lock_guard<std::mutex> lock(table.lock);
  for (;;) {
    const auto number = static_cast<int64_t>(uint64_t{table.device()} << 31 ^ table.device());
    const auto [found, is_new] = table.replays.try_emplace(number);
    if (!is_new) continue;
    found->second = std::make_shared<lazy::Replay>(static_cast<lazy::Replay::Pass>(pass));
    return number;
  }
}

void Free(int64_t number) {
  std::shared_ptr<lazy::Replay> freed;  // ended outside the lock
  Table& table = Replays();
  std::lock_guard<std::mutex> lock(table.lock);
  const auto found = table.replays.find(number);
  if (found == table.replays.end()) return;
  freed = std::move(found->second);
  table.replays.erase(found);
}

void Begin(int64_t number, std::vector<at::Tensor> inputs) {
  CheckFork();
  Of(number)->Begin(inputs);
}

// `given_draws`: a seed and an offset each.
std::vector<at::Tensor> End(int64_t number, std::vector<at::Tensor> inputs, std::vector<double> numbers,
                            std::vector<int64_t> given_draws, std::vector<at::Tensor> outputs, bool saves) {
  std::vector<lazy::PhiloxDraw> draws;
  for (size_t i = 0; i + 1 < given_draws.size(); i += 2) draws.push_back({given_draws[i], given_draws[i + 1]});
  return Of(number)->End(inputs, numbers, draws, outputs, saves);
}

std::vector<int64_t> LastDraws(int64_t number) {
  std::vector<int64_t> draws;
  for (const lazy::PhiloxDraw& draw : Of(number)->last_draws()) draws.insert(draws.end(), {draw.seed, draw.offset});
  return draws;
}

void Watch(int64_t number, std::vector<at::Tensor> tensors) { Of(number)->Watch(tensors); }

void Abandon(int64_t number) { Of(number)->Abandon(); }

std::tuple<bool, std::vector<at::Tensor>> Run(int64_t number, std::vector<at::Tensor> inputs,
                                              std::vector<double> numbers) {
  CheckFork();
  std::optional<std::vector<at::Tensor>> results = Of(number)->Run(inputs, numbers);
  if (!results) return {false, {}};
  return {true, *std::move(results)};
}

std::string Refusal(int64_t number) { return Of(number)->refusal(); }

bool Ready(int64_t number) { return Of(number)->ready(); }

// A replay of a forward pass, whose backward pass will be one of `backward`.
std::tuple<bool, std::vector<at::Tensor>> Apply(int64_t forward, int64_t backward, std::vector<at::Tensor> inputs,
                                                std::vector<double> numbers) {
  CheckFork();
  std::optional<std::vector<at::Tensor>> outputs =
      ReplayWithGradients(Of(forward).get(), Of(backward), inputs, numbers);
  if (!outputs) return {false, {}};
  return {true, *std::move(outputs)};
}

// The same memory, on the other device: nothing is copied.
at::Tensor FromEager(const at::Tensor& tensor) {
  const lazy::OnDevice on(lazy::IsOnHost() ? -1 : tensor.device().index());
  TORCH_CHECK(tensor.device() == lazy::EagerDevice() && tensor.layout() == at::kStrided,
              "from_eager: expected a dense tensor of ", lazy::EagerDevice(), ", got one of ", tensor.device());
  at::Tensor alias = lazy::MakeTensor(lazy::MakeStorage(tensor.storage()), tensor.scalar_type(), tensor.sizes(),
                                      tensor.strides(), tensor.storage_offset());
  alias.unsafeGetTensorImpl()->_set_conj(tensor.is_conj());
  alias.unsafeGetTensorImpl()->_set_neg(tensor.is_neg());
  return alias;
}

std::vector<at::Tensor> Gradients(std::vector<at::Tensor> outputs, std::vector<std::optional<at::Tensor>> gradients,
                                  std::vector<at::Tensor> others) {
  std::vector<GradientForm> forms;
  std::vector<at::Tensor> given;
  for (const at::Tensor& output : outputs) forms.emplace_back(output);
  for (const std::optional<at::Tensor>& gradient : gradients) given.push_back(gradient.value_or(at::Tensor()));
  return InForm(forms, std::move(given), others);
}

at::Tensor ToEager(const at::Tensor& tensor) { return lazy::SyncForHost(tensor, "to_eager"); }

TORCH_LIBRARY_FRAGMENT(torch_lazy, m) {
  m.def("from_eager(Tensor tensor) -> Tensor", &FromEager);
  m.def("to_eager(Tensor tensor) -> Tensor", &ToEager);
  m.def("replay_ready(int replay) -> bool", &Ready);
  m.def("replay_new() -> int", [] { return New(0); });
  m.def("replay_new_pass(int which) -> int", &New);  // 1: forward, 2: backward
  m.def("replay_apply(int forward, int backward, Tensor[] inputs, float[] numbers) -> (bool, Tensor[])", &Apply);
  m.def("replay_gradients(Tensor[] outputs, Tensor?[] gradients, Tensor[] others) -> Tensor[]", &Gradients);
  m.def("replay_case(int replay) -> int", [](int64_t replay) { return Of(replay)->last_case(); });
  m.def("replay_pair(int forward, int number, bool[] differentiable) -> ()",
        [](int64_t forward, int64_t number, c10::List<bool> results) {
          Of(forward)->Pair(number, {results.begin(), results.end()});
        });
  m.def("replay_free(int replay) -> ()", &Free);
  m.def("replay_begin(int replay, Tensor[] inputs) -> ()", &Begin);
  m.def(
      "replay_end(int replay, Tensor[] inputs, float[] numbers, int[] given_draws, Tensor[] outputs, bool saves) -> "
      "Tensor[]",
      &End);
  m.def("replay_draws(int replay) -> int[]", &LastDraws);
  m.def("replay_watch(int replay, Tensor[] tensors) -> ()", &Watch);
  m.def("replay_abandon(int replay) -> ()", &Abandon);
  m.def("replay_run(int replay, Tensor[] inputs, float[] numbers) -> (bool, Tensor[])", &Run);
  m.def("replay_refusal(int replay) -> str", &Refusal);
}

}  // namespace
}  // namespace torch_lazy::device
