// SPDX-License-Identifier: Apache-2.0
// torch.ops.torch_lazy.replay_*: functions that are replayed, by number; and tensors of the host as the device's.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/library.h>

#include "absl/container/flat_hash_map.h"
#include "device/fork.h"
#include "lazy/eager_device.h"
#include "lazy/replay.h"
#include "lazy/storage.h"

namespace torch_lazy::device {
namespace {

struct Table {
  std::mutex lock;
  int64_t next = 0;
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

int64_t New() {
  Table& table = Replays();
  std::lock_guard<std::mutex> lock(table.lock);
  table.replays.emplace(table.next, std::make_shared<lazy::Replay>());
  return table.next++;
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

std::vector<at::Tensor> End(int64_t number, std::vector<at::Tensor> inputs, std::vector<double> numbers, std::vector<at::Tensor> outputs,
                            bool saves) {
  return Of(number)->End(inputs, numbers, outputs, saves);
}

void Abandon(int64_t number) { Of(number)->Abandon(); }

std::tuple<bool, std::vector<at::Tensor>> Run(int64_t number, std::vector<at::Tensor> inputs, std::vector<double> numbers) {
  CheckFork();
  std::optional<std::vector<at::Tensor>> results = Of(number)->Run(inputs, numbers);
  if (!results) return {false, {}};
  return {true, *std::move(results)};
}

std::string Refusal(int64_t number) { return Of(number)->refusal(); }

bool Ready(int64_t number) { return Of(number)->ready(); }

// The same memory, on the other device: nothing is copied.
at::Tensor FromEager(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device() == lazy::EagerDevice() && tensor.layout() == at::kStrided, "from_eager: expected a dense tensor of ",
              lazy::EagerDevice(), ", got one of ", tensor.device());
  at::Tensor alias = lazy::MakeTensor(lazy::MakeStorage(tensor.storage()), tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                                      tensor.storage_offset());
  alias.unsafeGetTensorImpl()->_set_conj(tensor.is_conj());
  alias.unsafeGetTensorImpl()->_set_neg(tensor.is_neg());
  return alias;
}

at::Tensor ToEager(const at::Tensor& tensor) { return lazy::SyncForHost(tensor, "to_eager"); }

TORCH_LIBRARY_FRAGMENT(torch_lazy, m) {
  m.def("from_eager(Tensor tensor) -> Tensor", &FromEager);
  m.def("to_eager(Tensor tensor) -> Tensor", &ToEager);
  m.def("replay_ready(int replay) -> bool", &Ready);
  m.def("replay_new() -> int", &New);
  m.def("replay_free(int replay) -> ()", &Free);
  m.def("replay_begin(int replay, Tensor[] inputs) -> ()", &Begin);
  m.def("replay_end(int replay, Tensor[] inputs, float[] numbers, Tensor[] outputs, bool saves) -> Tensor[]", &End);
  m.def("replay_abandon(int replay) -> ()", &Abandon);
  m.def("replay_run(int replay, Tensor[] inputs, float[] numbers) -> (bool, Tensor[])", &Run);
  m.def("replay_refusal(int replay) -> str", &Refusal);
}

}  // namespace
}  // namespace torch_lazy::device
