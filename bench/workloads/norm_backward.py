# SPDX-License-Identifier: Apache-2.0
"""Layer norm, then softmax, on 2048 x 2048, forward and backward."""

import torch


def make(variant):
    inputs = [torch.randn(2048, 2048).to(variant.device).requires_grad_() for _ in range(2)]
    upstream = [torch.randn(2048, 2048).to(variant.device) for _ in range(2)]
    weight, bias = (torch.randn(2048).to(variant.device).requires_grad_() for _ in range(2))

    def norm(x):
        return torch.softmax(torch.nn.functional.layer_norm(x, (2048,), weight, bias), -1)

    function = variant.compile(norm)

    def step(index):
        x = inputs[index % 2]
        return torch.autograd.grad(function(x), (x, weight, bias), upstream[index % 2])

    return step
