// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/graph_result.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <typeinfo>

#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"
#include "lazy/host/run_thread.h"

namespace torch_lazy::lazy {
namespace {

// A content that was lent once. Whether it still is, the deleter says, which changes when it moves out; what it was
// made as never does, so no lock is needed to see that other contents are not lent.
class LentStorage final : public c10::StorageImpl {
  using StorageImpl::StorageImpl;
};

bool WasLent(const c10::Storage& content) {
  return content && typeid(*content.unsafeGetStorageImpl()) == typeid(LentStorage);
}

// What a result that somebody holds is given.
struct Tenancy {
  std::shared_ptr<c10::Storage> memory;  // the CUDA graph's
  std::thread::id thread;                // of the program, that replays it
  int lane;
};

void LetGo(void* context) { delete static_cast<Tenancy*>(context); }

std::atomic<bool> have_several_threads{false};  // such results

void NoteThread(std::thread::id thread) {
  static std::atomic<std::thread::id> first{};
  std::thread::id none;
  if (first.load(std::memory_order_relaxed) == thread) return;
  if (!first.compare_exchange_strong(none, thread)) have_several_threads = true;
}

// Held while a content that others may hold moves out, or is asked where it lies. No other lock of this library is
// asked for meanwhile.
std::unique_lock<std::mutex> LockTenancies() {
  static auto* const lock = new std::mutex;
  return have_several_threads.load(std::memory_order_relaxed) ? std::unique_lock<std::mutex>(*lock)
                                                              : std::unique_lock<std::mutex>();
}

const Tenancy& TenancyOf(const c10::Storage& content) {
  return *static_cast<const Tenancy*>(content.data_ptr().get_context());
}

void MoveOutLocked(c10::StorageImpl* content) {
  c10::DataPtr& pointer = content->_mutable_data_ptr_no_checks();
  if (pointer.get_deleter() != &LetGo) return;
  c10::Storage memory = NewContent(content->nbytes());
  CopyContent(memory, c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(content)), content->nbytes());
  content->set_data_ptr_noswap(std::move(memory.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
}

bool IsAnotherThreads(const c10::Storage& content) {
  if (!WasLent(content)) return false;
  const auto lock = LockTenancies();
  return IsLent(content) && TenancyOf(content).thread != ProgramThread();
}

}  // namespace

c10::Storage CudaGraphResult::Lend(int lane) {
  const size_t size_bytes = memory_->nbytes();
  const std::thread::id thread = ProgramThread();
  NoteThread(thread);
  c10::Storage content(c10::make_intrusive<LentStorage>(
      c10::StorageImpl::use_byte_size_t(), size_bytes,
      c10::DataPtr(memory_->mutable_data(), new Tenancy{memory_, thread, lane}, &LetGo, memory_->device()),
      memory_->allocator(), /*resizable=*/true));
  tenant_ = c10::weak_intrusive_ptr<c10::StorageImpl>(content.getWeakStorageImpl());
  return content;
}

void CudaGraphResult::Vacate() {
  if (const c10::intrusive_ptr<c10::StorageImpl> tenant = tenant_.lock()) MoveOut(tenant.get());
}

bool IsLent(const c10::Storage& content) { return WasLent(content) && content.data_ptr().get_deleter() == &LetGo; }

int LaneOf(const c10::Storage& content) {
  if (!WasLent(content)) return kMainStream;
  const auto lock = LockTenancies();
  return IsLent(content) ? TenancyOf(content).lane : kMainStream;
}

c10::Storage MemoryOf(const c10::Storage& content) {
  if (!WasLent(content)) return content;
  const auto lock = LockTenancies();
  return IsLent(content) ? *TenancyOf(content).memory : content;
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
