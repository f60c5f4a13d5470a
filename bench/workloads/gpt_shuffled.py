# SPDX-License-Identifier: Apache-2.0
"""Training a small transformer over texts of 32 to 127 tokens in any order, with AdamW; each loss is read."""

import random

import torch

from workloads.gpt import Gpt, loss_of
from workloads.train import step_of

VOCABULARY, BATCH, LENGTHS = 64, 8, range(32, 128)


def make(variant):
    net = Gpt(vocabulary=VOCABULARY, length=max(LENGTHS), width=128, heads=4, layers=2).to(variant.device)
    batches = variant.batches(lambda g: torch.randint(VOCABULARY, (BATCH, max(LENGTHS) + 1), generator=g).split(BATCH))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, **variant.optimizer)
    order = random.Random(0)
    lengths = []

    def of_some_length(index):
        if not lengths:  # each comes once before any comes again
            lengths.extend(order.sample(LENGTHS, len(LENGTHS)))
        (ids,) = batches(index)
        return (ids[:, : lengths.pop() + 1],)

    step = step_of(lambda ids: loss_of(net, ids), optimizer, of_some_length, variant)
    return lambda index: step(index).item()
