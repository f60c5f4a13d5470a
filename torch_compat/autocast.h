// SPDX-License-Identifier: Apache-2.0
// Operators of CUDA's autocast that PyTorch's lists of them lack.
#pragma once

#include <torch/headeronly/version.h>

#if TORCH_VERSION_MINOR < 14
#define TORCH_LAZY_FORALL_NEW_FP32(_)
#else
#include <ATen/ops/linalg_matrix_sqrth.h>
#define TORCH_LAZY_FORALL_NEW_FP32(_) _(linalg_matrix_sqrth)
#endif
