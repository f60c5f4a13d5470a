// SPDX-License-Identifier: Apache-2.0
// How operators run that have no kernel of their own on the CPU, or one that takes fewer dtypes than an accelerator's.
//
// Rows name them (lazy/ops/row.h). Each is an ordinary function of its file, made a runner (runner.h).
#pragma once

#include <ATen/core/stack.h>

namespace torch_lazy::device {

// linear.cc
void RunLinearBackward(torch::jit::Stack* stack);

// convolution.cc
void RunConvolution(torch::jit::Stack* stack);
void RunConvolutionBackward(torch::jit::Stack* stack);

// recurrent.cc
void RunLstmCell(torch::jit::Stack* stack);
void RunLstmCellBackward(torch::jit::Stack* stack);
void RunGruCell(torch::jit::Stack* stack);
void RunGruCellBackward(torch::jit::Stack* stack);

// by_onednn.cc, cudnn_rnn.cc
void RunOneDnnLayer(torch::jit::Stack* stack);
void RunCudnnRnn(torch::jit::Stack* stack);
void RunCudnnRnnBackward(torch::jit::Stack* stack);

// fused_attention.cc, dropout.cc
void RunAttention(torch::jit::Stack* stack);
void RunAttentionBackward(torch::jit::Stack* stack);
void RunDropout(torch::jit::Stack* stack);

// composites.cc
void RunArange(torch::jit::Stack* stack);

// accelerator_dtypes.cc
void RunHistc(torch::jit::Stack* stack);
void RunTrace(torch::jit::Stack* stack);
void RunAvgPool3d(torch::jit::Stack* stack);
void RunAvgPool3dBackward(torch::jit::Stack* stack);

}  // namespace torch_lazy::device
