# SPDX-License-Identifier: Apache-2.0
"""A copy of a matrix of 2048 x 2048 floats (8192 on a GPU): how fast memory is."""

import torch

from workloads.variant import SIDE


def make(variant):
    source, target = (torch.randn(SIDE, SIDE).to(variant.device) for _ in range(2))
    return lambda step: target.copy_(source)
