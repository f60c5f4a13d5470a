# SPDX-License-Identifier: Apache-2.0
"""Training GPT-2 small (124 M parameters) with AdamW under autocast to bfloat16: 8 sequences of 1024."""

import torch

from workloads.gpt import Gpt, loss_of
from workloads.train import step_of

VOCABULARY, LENGTH, BATCH = 50304, 1024, 8  # GPT-2's 50257, rounded up to a multiple of 128


def make(variant):
    net = Gpt(vocabulary=VOCABULARY, length=LENGTH, width=768, heads=12, layers=12)
    for value in net.parameters():
        if value.dim() > 1:
            torch.nn.init.normal_(value, std=0.02)
    net.head.weight = net.tokens.weight
    net.to(variant.device)
    batches = variant.batches(lambda g: (torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)

    def loss(ids):
        with torch.autocast(variant.device, torch.bfloat16):
            return loss_of(net, ids)

    return step_of(loss, optimizer, batches, variant)
