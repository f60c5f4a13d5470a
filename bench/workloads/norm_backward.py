# SPDX-License-Identifier: Apache-2.0
"""Layer norm, then softmax, on 2048 x 2048 (8192 on a GPU), forward and backward."""

import torch

from workloads.variant import SIDE


def make(variant):
    inputs = [torch.randn(SIDE, SIDE).to(variant.device).requires_grad_() for _ in range(2)]
    upstream = [torch.randn(SIDE, SIDE).to(variant.device) for _ in range(2)]
    weight, bias = (torch.randn(SIDE).to(variant.device).requires_grad_() for _ in range(2))

    def norm(x):
        return torch.softmax(torch.nn.functional.layer_norm(x, (SIDE,), weight, bias), -1)

    function = variant.compile(norm)

    def step(index):
        x = inputs[index % 2]
        return torch.autograd.grad(function(x), (x, weight, bias), upstream[index % 2])

    return step
