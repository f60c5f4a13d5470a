# SPDX-License-Identifier: Apache-2.0
"""Newton's method for a square root, on tensors of one number, read after each iteration."""

import torch

ROUNDS = 20


def make(variant):
    batches = variant.batches(lambda g: (torch.rand((), generator=g) + 1,))

    def step(index):
        (target,) = batches(index)
        x = target.clone()
        for _ in range(ROUNDS):
            change = (x * x - target) / (2 * x)
            x = x - change
            if abs(change.item()) < 1e-12:
                break
        return x

    return step
