# SPDX-License-Identifier: Apache-2.0
"""A loop that looks at a value after every few calls and goes on differently."""

import torch

ROUNDS = 50


def make(variant):
    batches = variant.batches(lambda g: (torch.randn(64, generator=g), torch.randn(64, 64, generator=g) / 8))

    def step(index):
        x, weights = batches(index)
        for _ in range(ROUNDS):
            y = torch.tanh(weights @ x)
            if y.sum() > 0:
                x = x + 0.1 * y
            else:
                x = x * 0.9 - 0.1 * y
            if x.abs().max() > 4:
                x = x / 2
        return x

    return step
