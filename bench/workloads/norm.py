# SPDX-License-Identifier: Apache-2.0
"""Layer norm, then softmax, on 2048 x 2048."""

import torch


def make(variant):
    inputs = [torch.randn(2048, 2048).to(variant.device) for _ in range(4)]
    weight, bias = (torch.randn(2048).to(variant.device) for _ in range(2))

    def norm(x):
        return torch.softmax(torch.nn.functional.layer_norm(x, (2048,), weight, bias), -1)

    function = variant.compile(norm)
    return lambda step: function(inputs[step % 4])
