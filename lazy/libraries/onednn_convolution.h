// SPDX-License-Identifier: Apache-2.0
// Packed convolutions on the host, by oneDNN.
#pragma once

#include "lazy/lower/packed_convolution.h"

namespace torch_lazy::lazy {

// True if oneDNN is there and wanted, and would compute in f32.
bool HasOneDnnConvolutions();

// The weight in the order that oneDNN wants for such images.
at::Tensor PackForOneDnn(const PackedConvolution::Form& form, const at::Tensor& weight);

// As RunConvolution (convolutions.h).
c10::Storage RunOneDnn(const PackedConvolution& convolution, const c10::Storage& x_content, const c10::Storage& sum);

}  // namespace torch_lazy::lazy
