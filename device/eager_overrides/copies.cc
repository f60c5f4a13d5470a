// SPDX-License-Identifier: Apache-2.0
// Copies to, from and on the device.
//
// PyTorch sends every copy_ with a lazy tensor here as one _copy_from, broadcast and cast included. On the device it is
// a recorded call; from the host the bytes are taken at once, since the program may change or free them right after.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "device/eager_overrides/kernels.h"
#include "device/fork.h"
#include "device/unboxed.h"
#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"
#include "lazy/eager/queue_mark.h"
#include "lazy/host/lock.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/trace.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::device {
namespace {

// A trace that runs ahead is waited for: what is recorded must not depend on how far it is.
bool HasPendingWork(const at::Tensor& tensor) {
  const lazy::LazyStorageImpl* storage = lazy::LazyStorageImpl::Of(tensor);
  if (storage == nullptr) return false;
  const lazy::Locked lock(lazy::DeviceLock());
  return std::any_of(storage->touches.begin(), storage->touches.end(),
                     [](const auto& touch) { return !touch.trace->RunsAhead(); });
}

constexpr int64_t kMostStagedBytes = 64 << 20;

// Between tensors of the host. By this thread alone, if it is one of several that use a GPU: each would make a team.
void CopyOnHost(const at::Tensor& from, const at::Tensor& to) {
  const bool is_flat = from.scalar_type() == to.scalar_type() && from.is_non_overlapping_and_dense() &&
                       from.strides() == to.strides() && !from.is_conj() && !from.is_neg();
  if (is_flat && (from.numel() <= at::internal::GRAIN_SIZE || lazy::LaneForInputs() != lazy::kMainStream)) {
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  } else {
    at::Tensor(to).copy_(from);
  }
}

// To a GPU, by way of page-locked memory that PyTorch keeps until the copy is done: CUDA would wait for all work before
// a copy from memory that it cannot trust to stay.
void FillFromHost(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const bool stages = to.is_cuda() && from.is_cpu() && from.layout() == at::kStrided &&
                      !(non_blocking && from.is_pinned()) && static_cast<int64_t>(from.nbytes()) <= kMostStagedBytes &&
                      from.numel() > 0;
  if (stages) {
    const bool is_dense = from.is_non_overlapping_and_dense();
    const at::TensorOptions options = from.options().pinned_memory(true);
    const at::Tensor staged =
        is_dense ? at::empty_strided(from.sizes(), from.strides(), options) : at::empty(from.sizes(), options);
    CopyOnHost(from, staged);
    to.copy_(staged, /*non_blocking=*/true);
  } else {
    to.copy_(from, non_blocking);
  }
}

// To the lane on which the thread's replays run, into memory of its own: Note [Lanes]. False if the tensor is not all
// of a storage that has nothing yet.
bool FillOnLane(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const int lane = lazy::LaneForInputs();
  lazy::LazyStorageImpl* const storage = lazy::LazyStorageImpl::Of(to);
  if (lane == lazy::kMainStream || storage == nullptr || !lazy::LaneWork::IsPossible() ||
      lazy::CurrentReplayRecorder() != nullptr || static_cast<int64_t>(from.nbytes()) > kMostStagedBytes)
    return false;
  const auto has_nothing = [&] { return !storage->content && storage->touches.empty() && !storage->IsSwapped(); };
  {
    const lazy::Locked lock(lazy::DeviceLock());
    if (!has_nothing() || to.numel() == 0 || to.nbytes() != storage->nbytes() || !to.is_non_overlapping_and_dense())
      return false;
  }
  c10::Storage content;
  {
    const lazy::LaneWork work(lane);
    content = lazy::MakeOnLane(lazy::NewContent(storage->nbytes()), lane);
    FillFromHost(from, lazy::Alias(content, lazy::GeometryOf(to)), non_blocking);
  }
  const lazy::Locked lock(lazy::DeviceLock());
  if (!has_nothing()) return false;
  storage->content = std::move(content);
  storage->WasWritten();
  return true;
}

// From a GPU, by way of page-locked memory, likewise: meanwhile CUDA would keep other threads from what they have for
// the GPU, and would wait for what these have sent. Many bytes take longer than that.
void FillHost(const at::Tensor& from, const at::Tensor& to, bool non_blocking, bool is_on_lane) {
  constexpr int64_t kMostReadBytes = 1 << 20;
  const bool stages = from.is_cuda() && to.is_cpu() && to.layout() == at::kStrided &&
                      to.is_non_overlapping_and_dense() && !non_blocking &&
                      static_cast<int64_t>(to.nbytes()) <= kMostReadBytes && to.numel() > 0;
  if (!stages) {
    at::Tensor(to).copy_(from, non_blocking);
    return;
  }
  const at::Tensor staged = at::empty_strided(to.sizes(), to.strides(), to.options().pinned_memory(true));
  staged.copy_(from, /*non_blocking=*/true);
  is_on_lane ? lazy::CurrentStream()->synchronize() : lazy::QueueMark().Wait();
  CopyOnHost(staged, to);
}

// Host data goes straight into its final place, unless pending work still needs what is there: then it waits in a
// storage of its own for its turn.
void CopyFromHost(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const lazy::OnDevice on(to.device().index());
  const lazy::LeaveUnwritten staging;
  if (!HasPendingWork(to)) {
    if (FillOnLane(from, to, non_blocking)) return;
    lazy::WillOverwrite(to);
    FillFromHost(from, lazy::SyncToAlias(to, "copy from host", /*writes=*/true), non_blocking);
    return;
  }
  const at::Tensor snapshot = at::empty(from.sizes(), from.options().device(lazy::EagerDevice()).pinned_memory(false));
  FillFromHost(from, snapshot, non_blocking);
  const at::Tensor source = lazy::MakeTensor(lazy::MakeStorage(snapshot.storage()), snapshot.scalar_type(),
                                             snapshot.sizes(), snapshot.strides());
  RecordCopy(to, source, non_blocking);
}

// From one of our devices to another: no trace's, since a trace is one device's.
void CopyAcross(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const at::Tensor source = lazy::SyncToAlias(from, "copy to another device");
  lazy::WillOverwrite(to);
  lazy::SyncToAlias(to, "copy from another device", /*writes=*/true).copy_(source, non_blocking);
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  CheckFork();
  if (!to.is_privateuseone()) {
    const at::Tensor eager = lazy::SyncToRead(from, "copy to host");
    const lazy::OnDevice on(from.device().index());
    // Else ATen would want memory of the GPU for the copy. What is a lane's may still be in use on the main stream.
    const bool copies_bytes = eager.scalar_type() == to.scalar_type() && eager.strides() == to.strides() &&
                              eager.is_non_overlapping_and_dense() && eager.is_conj() == to.is_conj() &&
                              eager.is_neg() == to.is_neg();
    if (!copies_bytes) lazy::JoinLanes();
    const std::optional<c10::Stream> lane =
        copies_bytes ? lazy::StreamOfLane(lazy::LaneOf(eager.storage())) : std::nullopt;
    const lazy::OnStream on_lane(lane);
    FillHost(eager, to, non_blocking, lane.has_value());
  } else if (from.device() == to.device()) {
    RecordCopy(to, from, non_blocking);
  } else if (from.is_privateuseone()) {
    CopyAcross(from, to, non_blocking);
  } else {
    CopyFromHost(from, to, non_blocking);
  }
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return CopyFrom(from, to, /*non_blocking=*/false);
}

at::Scalar LocalScalarDense(const at::Tensor& self) {
  CheckFork();
  const at::Tensor eager = lazy::SyncToRead(self, "item");
  if (eager.is_cpu()) return at::native::_local_scalar_dense_cpu(eager);
  const lazy::OnDevice on(self.device().index());
  const lazy::OnStream lane(lazy::StreamOfLane(lazy::LaneOf(eager.storage())));
  return at::_local_scalar_dense(eager);
}

// Copy-on-write clones need storages whose pointers they may share, and ours are made to look like such.
at::Tensor LazyClone(const at::Tensor& self) { return at::clone(self); }

// All streams are one queue, so memory is never in use on another one.
void RecordStream(at::Tensor& /*self*/, c10::Stream /*stream*/) {}

// PyTorch's way to resolve a conjugate or negative bit is a clone, that is, a copy; so copies read the bits themselves.
TORCH_LIBRARY_IMPL(aten, Conjugate, aten) { aten.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, aten) { aten.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace

void RegisterCopies(torch::Library& aten) {
  aten.impl("_copy_from", TORCH_FN(CopyFrom));
  aten.impl("_copy_from_and_resize", TORCH_FN(CopyFromAndResize));
  aten.impl("_local_scalar_dense", TORCH_FN(LocalScalarDense));
  aten.impl("_lazy_clone", TORCH_FN(LazyClone));
  aten.impl("record_stream", TORCH_FN(RecordStream));
}

}  // namespace torch_lazy::device
