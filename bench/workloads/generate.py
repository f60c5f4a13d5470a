# SPDX-License-Identifier: Apache-2.0
"""Sampling from a small transformer: 16 more tokens for one sequence, each read before the next is asked for."""

import torch

from workloads.gpt import Gpt

PROMPT, TOKENS = 8, 16


def make(variant):
    net = Gpt(vocabulary=256, length=PROMPT + TOKENS, width=64, heads=4, layers=2).to(variant.device).eval()
    batches = variant.batches(lambda g: (torch.randint(256, (1, PROMPT), generator=g),))

    @torch.no_grad()
    def step(index):
        (ids,) = batches(index)
        for _ in range(TOKENS):
            token = net(ids)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], 1)
            if token.item() == 256:  # the end of a text, which does not come
                break
        return ids

    return step
