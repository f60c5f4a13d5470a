// SPDX-License-Identifier: Apache-2.0
// Packed convolutions by the library that does them here: cuDNN or oneDNN.
#pragma once

#include "lazy/lower/packed_convolution.h"

namespace torch_lazy::lazy {

// True if cuDNN is to do them, with ReLU; else oneDNN.
bool PacksForCudnn();

// True if that library is there and wanted.
bool CanPackConvolutions();

// Gives the convolution its weight, of a content of [c, ...], and its bias, of one of [c], or null if there is none.
void Pack(const c10::Storage& weight_content, const c10::Storage& bias_content, PackedConvolution* convolution);

// The content of the result: new memory, or without ReLU `sum`, if it is not null, with the convolution added.
c10::Storage RunConvolution(const PackedConvolution& convolution, const c10::Storage& x_content,
                            const c10::Storage& sum);

}  // namespace torch_lazy::lazy
