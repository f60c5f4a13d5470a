# SPDX-License-Identifier: Apache-2.0
"""A chain of twelve pointwise ops on 2048 x 2048 (8192 on a GPU): GELU by tanh, written out, times a sigmoid gate, and a residual."""

import torch

from workloads.variant import SIDE


def chain(x, y):
    t = torch.tanh((x + x * x * x * 0.044715) * 0.7978845608028654)
    return (t + 1.0) * (x * 0.5) * torch.sigmoid(y) + x


def make(variant):
    inputs = [torch.randn(SIDE, SIDE).to(variant.device) for _ in range(4)]
    function = variant.compile(chain)
    return lambda step: function(inputs[step % 4], inputs[(step + 1) % 4])
