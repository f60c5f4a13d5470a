// SPDX-License-Identifier: Apache-2.0
// The cells of LSTM and GRU, as device/eager_overrides/recurrent.cc computes them, and the whole nets of cuDNN and
// oneDNN (device/eager_overrides/cudnn_rnn.cc, device/eager_overrides/by_onednn.cc).
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool LstmCell(ShapeCall& call);
bool LstmCellBackward(ShapeCall& call);
bool GruCell(ShapeCall& call);
bool GruCellBackward(ShapeCall& call);
bool CudnnRnn(ShapeCall& call);
bool CudnnRnnBackward(ShapeCall& call);
bool OneDnnLayer(ShapeCall& call);
bool OneDnnLayerBackward(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
