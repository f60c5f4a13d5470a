// SPDX-License-Identifier: Apache-2.0
// The storage behind a lazy tensor: memory, or a place in a trace that will fill it.
//
// Tensors are plain c10::TensorImpl over a LazyStorageImpl, so that `.data =`, `detach`, `set_data` and nn.Parameter
// keep working: all state lives here. A storage's bytes are a CPU storage, its *content*, on which ATen's kernels can
// run without a copy. The content is absent until something is written, and stale while records that write it are
// pending.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <typeinfo>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include "lazy/host/lock.h"
#include "lazy/trace/placeholder.h"
#include "torch_compat/storage_hook.h"

namespace torch_lazy::lazy {

class Trace;

class LazyStorageImpl final : public torch_compat::HookedStorage {
 public:
  LazyStorageImpl(size_t size_bytes, int device_index);
  ~LazyStorageImpl() override;
  void release_resources() override;

  // The lazy storage behind a tensor; null for another device's or a foreign storage.
  static LazyStorageImpl* Of(const at::TensorBase& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return nullptr;
    return Of(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  }
  static LazyStorageImpl* Of(c10::StorageImpl* storage) {
    if (storage == nullptr || typeid(*storage) != typeid(LazyStorageImpl)) return nullptr;
    return static_cast<LazyStorageImpl*>(storage);
  }

  // Shows the placeholder, so that the next access to the address runs what is pending by then. To be called whenever a
  // write to the storage is recorded, and whenever its content moves.
  void Arm() { HookedStorage::Arm(PlaceholderOf(this)); }

  // Makes the content that which the address belongs to, after what was recorded with the former. To be called without
  // the lock where IsSwapped(), before the storage is used.
  void TakeSwapped();

  // As an allocator: see Note [Mutable access].
  void copy_data(void* to, const void* from, size_t size_bytes) const override;

  // Storages are numbered as they are made.
  uint64_t serial() const { return serial_; }
  static uint64_t NextSerial();

  // --- guarded by the device lock (lock.h) ---
  struct Touch {
    std::shared_ptr<Trace> trace;
    int32_t slot;
  };
  c10::Storage content;                // of the eager device; null if nothing was ever stored
  c10::SmallVector<Touch, 1> touches;  // traces that read or write this storage

 private:                           // beside what each recorded call looks at, since it looks at this
  at::Tensor eager_;                // while there are no traces; null: none was asked for
  c10::DispatchKeySet eager_keys_;  // of the tensor that it is like

 public:
  Trace* writer = nullptr;  // the one of the traces whose pending calls write it
  at::ScalarType unwritten =
      at::ScalarType::Undefined;  // fills it when it is first needed, if it is then unwritten: memory.h
  bool had_traces = false;        // ever

  // A number that no other content of any storage has or had: equal stamps, equal bytes. 0 where others may write the
  // memory.
  uint64_t stamp() const { return stamp_; }
  static uint64_t NextStamp();
  void WasWritten(uint64_t stamp = NextStamp()) {  // the content is another one now
    if (stamp_ != 0) stamp_ = stamp;
  }
  void Expose() { stamp_ = 0; }  // others have the address now

  // An eager tensor on the content, like this one on the storage; null while something is pending, nothing was ever
  // stored, or the tensor is not dense or has names. It is kept for the next time, so it must stay as it is. The device
  // lock is held.
  const at::Tensor& EagerOn(const at::Tensor& tensor);
  // The same for a tensor that is known to be like it.
  void KeepEager(at::Tensor eager, const at::Tensor& like) {
    eager_ = std::move(eager);
    eager_keys_ = like.key_set();
  }
  // The content may become another one.
  void ForgetEager() {
    if (eager_.defined()) eager_.reset();
  }
  // While one lives, no other thread that holds the device lock as own touches the storage: Note [Device lock].
  class TouchesGuard {
   public:
    explicit TouchesGuard(LazyStorageImpl* storage) : storage_(TraceLock::HaveSeveralThreads() ? storage : nullptr) {
      while (storage_ != nullptr && storage_->is_guarded_.exchange(true, std::memory_order_acquire)) RelaxProcessor();
    }
    ~TouchesGuard() {
      if (storage_ != nullptr) storage_->is_guarded_.store(false, std::memory_order_release);
    }
    TouchesGuard(const TouchesGuard&) = delete;
    TouchesGuard& operator=(const TouchesGuard&) = delete;

   private:
    LazyStorageImpl* const storage_;
  };
  // The trace uses the storage as this slot. The device lock is held; as own, with a guard.
  void JoinTrace(const std::shared_ptr<Trace>& trace, int32_t slot) {
    ForgetEager();
    had_traces = true;
    touches.push_back({trace, slot});
  }
  struct {
    uint64_t by = 0;
    int32_t slot = 0;
  } seen;  // by which NewSlots, and what it gave

 private:
  // These wait for what is pending, so they are written above the traces, in cuts/address.cc, as is TakeSwapped().
  c10::DataPtr Answer() override;
  c10::DataPtr NewMemory(size_t size_bytes) override;
  void LeaveTraces();
  bool LeaveOwnTrace(c10::SmallVector<Touch, 1>* left);
  void LeaveAll(c10::SmallVector<Touch, 1>* left);
  const uint64_t serial_;
  uint64_t stamp_;
  bool released_ = false;
  std::atomic<bool> is_guarded_{false};
};

// A new lazy tensor of this geometry over `storage`.
at::Tensor MakeTensor(c10::Storage storage, at::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      int64_t offset = 0);

// A new storage of the current device, without content or over an existing storage of the eager device (no copy).
c10::Storage MakeStorage(size_t size_bytes, at::ScalarType unwritten = at::ScalarType::Undefined);
c10::Storage MakeStorage(c10::Storage content, bool exposed = true);  // exposed: others may write its memory

}  // namespace torch_lazy::lazy
