// SPDX-License-Identifier: Apache-2.0
// Content of storages: CPU memory from the backend's pool.
#pragma once

#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

// An uninitialised CPU storage whose memory comes from, and returns to, the pool.
c10::Storage NewContent(size_t size_bytes);

}  // namespace torch_lazy::lazy
