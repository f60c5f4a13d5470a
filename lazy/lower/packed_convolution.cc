// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/packed_convolution.h"

#include "lazy/eager/memory.h"

namespace torch_lazy::lazy {

c10::Storage ContentOf(const at::Tensor& made, const Geometry& geometry) {
  if (made.storage_offset() == 0 && made.is_contiguous(at::MemoryFormat::ChannelsLast)) return made.storage();
  c10::Storage content = NewContent(SizeBytes(geometry));
  Alias(content, geometry).copy_(made);
  return content;
}

}  // namespace torch_lazy::lazy
