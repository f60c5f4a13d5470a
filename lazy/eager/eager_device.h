// SPDX-License-Identifier: Apache-2.0
// The device of PyTorch's that the lazy device stands on: contents are its memory, and its ATen kernels run calls.
#pragma once

#include <optional>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/StreamGuard.h>

namespace torch_lazy::lazy {

// The CPU, or the GPU on which the current device stands (on_host.h).
c10::Device EagerDevice();

// PyTorch's allocator of the GPU in use, which keeps its statistics; null if none is.
c10::DeviceAllocator* GpuAllocator();

// Of the GPU in use.
struct Multiprocessors {
  int64_t count, threads_of_each;
};
Multiprocessors MultiprocessorsOfGpu();

// Copies the first bytes of one content to another: at once on the host, in the current stream's order on a GPU.
void CopyContent(const c10::Storage& to, const c10::Storage& from, size_t size_bytes);

// Of a GPU: which of its streams takes the calling thread's work. 0 on the host.
int64_t CurrentStreamId();

// Of a GPU: the stream itself, and for a scope the one that takes the calling thread's work.
std::optional<c10::Stream> CurrentStream();
class OnStream {
 public:
  explicit OnStream(const std::optional<c10::Stream>& stream) {
    if (stream) guard_.emplace(*stream);
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

// Returns once the GPU has done what was asked of it.
void WaitForEagerDevice();

}  // namespace torch_lazy::lazy
