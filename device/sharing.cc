// SPDX-License-Identifier: Apache-2.0
// The memory of storages, for Python's multiprocessing: a storage's content is a CPU storage, which processes can
// share.
#include <torch/library.h>

#include "device/fork.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/geometry.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

at::Tensor Bytes(c10::Storage content) {
  const auto size_bytes = static_cast<int64_t>(content.nbytes());
  return lazy::Alias(content, {.dtype = at::kByte, .sizes = {size_bytes}, .strides = {1}});
}

// All bytes of the tensor's storage, on the CPU. The caller may move them elsewhere, so that the address is asked for
// anew.
at::Tensor MemoryOf(const at::Tensor& tensor) {
  CheckFork();
  lazy::LazyStorageImpl* storage = lazy::LazyStorageImpl::Of(tensor);
  TORCH_CHECK(storage != nullptr,
              "lazy: memory that came from elsewhere cannot be shared with other processes; clone it");
  c10::Storage content = lazy::Sync(storage, "sharing", /*writes=*/true);
  storage->Arm();
  storage->Expose();
  return Bytes(std::move(content));
}

// A lazy tensor of bytes over the storage of a CPU tensor.
at::Tensor OverMemory(const at::Tensor& bytes) {
  CheckFork();
  TORCH_CHECK(bytes.is_cpu(), "lazy: expected memory of the CPU, got ", bytes.device());
  const auto size_bytes = static_cast<int64_t>(bytes.storage().nbytes());
  return lazy::MakeTensor(lazy::MakeStorage(bytes.storage()), at::kByte, {size_bytes}, {1});
}

TORCH_LIBRARY_FRAGMENT(torch_lazy, m) {
  m.def("memory_of(Tensor tensor) -> Tensor", &MemoryOf);
  m.def("over_memory(Tensor bytes) -> Tensor", &OverMemory);
}

}  // namespace
}  // namespace torch_lazy::device
