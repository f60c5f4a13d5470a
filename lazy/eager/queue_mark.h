// SPDX-License-Identifier: Apache-2.0
// A place in a GPU's queue, and what can be read once the GPU has come to it.
#pragma once

#include <optional>

#include <c10/core/Event.h>
#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

// On the host, where all is done at once, it marks nothing.
class QueueMark {
 public:
  // Behind what the calling thread's stream was asked to do.
  QueueMark();

  // Until the GPU has come to it. The host's other threads go on.
  void Wait() const;

  // The host's copy of a content that was there at the mark, and is not written since. Waits for the mark alone.
  c10::Storage Read(const c10::Storage& content) const;

 private:
  std::optional<c10::Event> event_;
};

}  // namespace torch_lazy::lazy
