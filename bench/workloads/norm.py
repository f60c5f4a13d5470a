# SPDX-License-Identifier: Apache-2.0
"""Layer norm, then softmax, on 2048 x 2048 (8192 on a GPU)."""

import torch

from workloads.variant import SIDE


def make(variant):
    inputs = [torch.randn(SIDE, SIDE).to(variant.device) for _ in range(4)]
    weight, bias = (torch.randn(SIDE).to(variant.device) for _ in range(2))

    def norm(x):
        return torch.softmax(torch.nn.functional.layer_norm(x, (SIDE,), weight, bias), -1)

    function = variant.compile(norm)
    return lambda step: function(inputs[step % 4])
