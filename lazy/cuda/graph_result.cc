// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/graph_result.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <typeinfo>

#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"
#include "lazy/host/lock.h"
#include "lazy/host/run_thread.h"

namespace torch_lazy::lazy {
namespace {

// A content that was a thread's once. Whether it still is, the deleter says, which changes when it moves out; what it
// was made as never does, so no lock is needed to see that other contents are nobody's.
class TenantStorage final : public c10::StorageImpl {
  using StorageImpl::StorageImpl;
};

bool WasTenant(const c10::Storage& content) {
  return content && typeid(*content.unsafeGetStorageImpl()) == typeid(TenantStorage);
}

// What such a content is given.
struct Tenancy {
  std::shared_ptr<c10::Storage> memory;  // the CUDA graph's, or its own
  std::thread::id thread;                // of the program, that replays the CUDA graph, or has sent what lies there
  int lane;
};

// Two functions, by which a content that lies in a home is told from one on a lane.
void LetGo(void* context) { delete static_cast<Tenancy*>(context); }
void Free(void* context) { delete static_cast<Tenancy*>(context); }

// Of one that has not moved out.
bool IsTenants(const c10::DataPtr& pointer) {
  return pointer.get_deleter() == &LetGo || pointer.get_deleter() == &Free;
}

std::atomic<bool> have_several_threads{false};  // such contents

void NoteThread(std::thread::id thread) {
  static std::atomic<std::thread::id> first{};
  std::thread::id none;
  if (first.load(std::memory_order_relaxed) == thread) return;
  if (!first.compare_exchange_strong(none, thread)) have_several_threads = true;
}

// Held while a content that others may hold moves out, or is asked where it lies. No other lock of this library is
// asked for meanwhile.
std::unique_lock<RecursiveLock> LockTenancies() {
  static auto* const lock = new RecursiveLock;
  return have_several_threads.load(std::memory_order_relaxed) ? std::unique_lock<RecursiveLock>(*lock)
                                                              : std::unique_lock<RecursiveLock>();
}

const Tenancy& TenancyOf(const c10::Storage& content) {
  return *static_cast<const Tenancy*>(content.data_ptr().get_context());
}

void MoveOutLocked(c10::StorageImpl* content) {
  c10::DataPtr& pointer = content->_mutable_data_ptr_no_checks();
  if (!IsTenants(pointer)) return;
  c10::Storage memory = NewContent(content->nbytes());
  CopyContent(memory, c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(content)), content->nbytes());
  content->set_data_ptr_noswap(std::move(memory.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
}

bool IsAnotherThreads(const c10::Storage& content) {
  if (!WasTenant(content)) return false;
  const auto lock = LockTenancies();
  return IsTenants(content.data_ptr()) && TenancyOf(content).thread != ProgramThread();
}

c10::Storage MakeTenant(const std::shared_ptr<c10::Storage>& memory, int lane, c10::DeleterFnPtr deleter) {
  const std::thread::id thread = ProgramThread();
  NoteThread(thread);
  return c10::Storage(c10::make_intrusive<TenantStorage>(
      c10::StorageImpl::use_byte_size_t(), memory->nbytes(),
      c10::DataPtr(memory->mutable_data(), new Tenancy{memory, thread, lane}, deleter, memory->device()),
      memory->allocator(), /*resizable=*/true));
}

}  // namespace

c10::Storage CudaGraphResult::Lend(int lane) {
  c10::Storage content = MakeTenant(memory_, lane, &LetGo);
  tenant_ = c10::weak_intrusive_ptr<c10::StorageImpl>(content.getWeakStorageImpl());
  return content;
}

void CudaGraphResult::Vacate() {
  if (const c10::intrusive_ptr<c10::StorageImpl> tenant = tenant_.lock()) MoveOut(tenant.get());
}

c10::Storage MakeOnLane(c10::Storage memory, int lane) {
  return MakeTenant(std::make_shared<c10::Storage>(std::move(memory)), lane, &Free);
}

bool IsLent(const c10::Storage& content) { return WasTenant(content) && content.data_ptr().get_deleter() == &LetGo; }

int LaneOf(const c10::Storage& content) {
  if (!WasTenant(content)) return kMainStream;
  const auto lock = LockTenancies();
  return IsTenants(content.data_ptr()) ? TenancyOf(content).lane : kMainStream;
}

c10::Storage MemoryOf(const c10::Storage& content) {
  if (!WasTenant(content)) return content;
  const auto lock = LockTenancies();
  return IsTenants(content.data_ptr()) ? *TenancyOf(content).memory : content;
}

void MoveOut(c10::StorageImpl* content) {
  const auto lock = LockTenancies();
  MoveOutLocked(content);
}

void TakeFromOtherThread(const c10::Storage& content) {
  if (!have_several_threads.load(std::memory_order_relaxed) || !IsAnotherThreads(content)) return;
  JoinLanes();
  MoveOut(content.unsafeGetStorageImpl());
}

}  // namespace torch_lazy::lazy
