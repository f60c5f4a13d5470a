// SPDX-License-Identifier: Apache-2.0
// The autograd engine's queue, whose own functions are not exported. What they work on is private, which an explicit
// instantiation may name.
#include "device/ready_queue.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace torch_lazy::device {
namespace {

using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::NodeTask;
using torch::autograd::ReadyQueue;

struct Private {
  friend constexpr auto MutexOf(Private);
  friend constexpr auto HeapOf(Private);
};
template <auto kMutex, auto kHeap>
struct Reveal {
  friend constexpr auto MutexOf(Private) { return kMutex; }
  friend constexpr auto HeapOf(Private) { return kHeap; }
};
template struct Reveal<&ReadyQueue::mutex_, &ReadyQueue::heap_>;

std::mutex& Mutex(ReadyQueue& queue) { return queue.*MutexOf(Private()); }

// What a std::priority_queue keeps its elements in.
template <typename Queue>
typename Queue::container_type& ElementsOf(Queue& queue) {
  struct Open : Queue {
    static auto Member() { return &Open::c; }
  };
  return queue.*Open::Member();
}

std::vector<NodeTask>& Heap(ReadyQueue& queue) { return ElementsOf(queue.*HeapOf(Private())); }

template <typename Owner, typename OtherOwner>
bool IsSamePass(const Owner& one, const OtherOwner& other) {
  return !one.owner_before(other) && !other.owner_before(one);
}

// The order of ReadyQueue: deeper passes first, and later calls.
bool ComesAfter(const NodeTask& one, const NodeTask& other) {
  if (one.fn_ != nullptr && other.fn_ != nullptr && IsSamePass(one.base_, other.base_)) {
    return one.fn_->sequence_nr() < other.fn_->sequence_nr();
  }
  const auto order = [](const NodeTask& task) {
    const std::shared_ptr<GraphTask> pass = task.base_.lock();
    const bool has_node = task.fn_ != nullptr;
    return std::make_tuple(task.isShutdownTask_, !has_node, pass != nullptr ? pass->reentrant_depth_ : 0,
                           has_node ? task.fn_->sequence_nr() : 0);
  };
  return order(one) < order(other);
}

}  // namespace

void Push(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue, ReadyNode node) {
  const std::lock_guard<std::mutex> lock(Mutex(queue));
  std::vector<NodeTask>& tasks = Heap(queue);
  ++pass->outstanding_tasks_;
  tasks.emplace_back(pass, std::move(node.node), std::move(node.inputs));
  std::push_heap(tasks.begin(), tasks.end(), &ComesAfter);
}

bool LookAsBuilt(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue) {
  constexpr int kMany = 1 << 28;
  const int outstanding = pass->outstanding_tasks_.load();
  if (outstanding < 1 || outstanding > kMany) return false;
  const std::lock_guard<std::mutex> lock(Mutex(queue));
  const std::vector<NodeTask>& tasks = Heap(queue);
  if (tasks.size() > kMany || tasks.capacity() > kMany || tasks.capacity() < tasks.size()) return false;
  const auto is_of_pass = [&](const NodeTask& task) { return IsSamePass(task.base_, pass) && task.fn_ != nullptr; };
  return std::ranges::count_if(tasks, is_of_pass) < outstanding;  // the node that runs is not in the queue
}

bool ComesFirst(const Node& node, const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue) {
  const std::lock_guard<std::mutex> lock(Mutex(queue));
  const std::vector<NodeTask>& tasks = Heap(queue);
  if (tasks.empty()) return true;
  const NodeTask& first = tasks.front();
  return first.fn_ != nullptr && IsSamePass(first.base_, pass) && first.fn_->sequence_nr() < node.sequence_nr();
}

std::optional<ReadyNode> Take(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue, bool (*accepts)(Node&)) {
  const std::lock_guard<std::mutex> lock(Mutex(queue));
  std::vector<NodeTask>& tasks = Heap(queue);
  if (tasks.empty()) return std::nullopt;
  NodeTask& first = tasks.front();
  if (first.fn_ == nullptr || !IsSamePass(first.base_, pass) || !accepts(*first.fn_)) return std::nullopt;
  std::pop_heap(tasks.begin(), tasks.end(), &ComesAfter);
  ReadyNode taken{std::move(tasks.back().fn_), std::move(tasks.back().inputs_)};
  tasks.pop_back();
  --pass->outstanding_tasks_;
  return taken;
}

void MakeRoomForStreams(InputBuffer& inputs) {
  inputs.opt_accum_streams.resize(inputs.buffer.size());
  inputs.ready_events.resize(inputs.buffer.size());
  inputs.ready_streams.resize(inputs.buffer.size());
}

void MakeRoomForStreams(GraphTask& pass, ReadyQueue& queue) {
  const std::scoped_lock lock(pass.mutex_, Mutex(queue));
  for (auto& [node, inputs] : pass.not_ready_) MakeRoomForStreams(inputs);
  for (NodeTask& task : Heap(queue)) MakeRoomForStreams(task.inputs_);
}

}  // namespace torch_lazy::device
