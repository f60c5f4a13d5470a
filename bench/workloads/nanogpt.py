# SPDX-License-Identifier: Apache-2.0
"""Training nanoGPT's character model for CPUs with AdamW: 4 layers, width 128, 4 heads, 12 sequences of 64, 65 characters."""

import torch

from workloads.gpt import Gpt, loss_of
from workloads.train import step_of

CHARACTERS, LENGTH = 65, 64


def make(variant):
    net = Gpt(vocabulary=CHARACTERS, length=LENGTH, width=128, heads=4, layers=4).to(variant.device)
    batches = variant.batches(lambda g: (torch.randint(CHARACTERS, (12, LENGTH + 1), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, **variant.optimizer)
    return step_of(lambda ids: loss_of(net, ids), optimizer, batches, variant)
