// SPDX-License-Identifier: Apache-2.0
// Packed convolutions on a GPU: cuDNN's convolution with bias, ReLU and what is added before it.
//
// It saves a kernel that reads and writes the result once more, but for some sizes (three channels in, f32 with a sum)
// takes longer than both apart. So forms whose images are of similar sizes are timed both ways before one is first
// used, and what was faster is kept on disk. That is paid from an account (ledger.h). Where deterministic algorithms
// are asked for, a rule decides instead. cuDNN's forward convolutions repeat bit for bit (NVIDIA, cuDNN documentation,
// "Odds and Ends", Reproducibility).
#pragma once

#include "lazy/lower/packed_convolution.h"

namespace torch_lazy::lazy {

// True if cuDNN is there and wanted, and not asked to choose its own algorithms by timing where results are to repeat.
bool HasFusedConvolutions();

// relu(conv(x) + sum? + bias).
struct FusedForm {
  PackedConvolution::Form form;
  bool adds;
  friend bool operator==(const FusedForm&, const FusedForm&) = default;
};

// True if cuDNN does it faster so than by a convolution and a kernel for the rest. By a rule under deterministic
// algorithms; else times it if that is not known yet, and may be tried. Always on an emulator.
bool IsFusedFaster(const FusedForm& fused);

// True if that is known, here or on the disk, or may not be tried.
bool IsKnown(const FusedForm& fused);

// What it takes less; 0 if that was not measured here.
double SecondsSaved(const FusedForm& fused);

// False if a weight or bias of f16 is too large for it, or all of a convolution's are so small that digits are lost.
// Waits for the GPU.
bool KeepDigits(const std::vector<PackedConvolution>& convolutions);

// As RunConvolution (convolutions.h). On an emulator by ATen's calls, of f32.
c10::Storage RunCudnn(const PackedConvolution& convolution, const c10::Storage& x_content, const c10::Storage& sum);

}  // namespace torch_lazy::lazy
