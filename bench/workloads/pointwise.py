# SPDX-License-Identifier: Apache-2.0
"""A chain of twelve pointwise ops on 2048 x 2048."""

import torch


def chain(x, y):
    h = torch.relu(x * y + x)
    h = ((h - y) * 0.5).abs()
    h = (h + 1.0).sqrt().clamp(max=3.0)
    return -(h * x) + y


def make(variant):
    inputs = [torch.randn(2048, 2048).to(variant.device) for _ in range(4)]
    function = variant.compile(chain)
    return lambda step: function(inputs[step % 4], inputs[(step + 1) % 4])
