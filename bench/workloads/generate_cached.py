# SPDX-License-Identifier: Apache-2.0
"""Sampling from a small transformer that keeps keys and values: 64 more tokens, each read before the next, over a growing cache."""

import torch
from torch.nn import functional as F

from workloads.gpt import Gpt

VOCABULARY, TOKENS, HEADS = 256, 64, 8


def attend(layer, x, past):
    """The layer's output of one token, and keys and values with its own; `past` None: there are none."""
    batch, length, width = x.shape
    parts = layer.qkv(layer.norm1(x)).chunk(3, 2)
    q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in parts)
    if past is not None:
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
    attended = F.scaled_dot_product_attention(q, k, v)
    x = x + layer.out(attended.transpose(1, 2).reshape(batch, length, width))
    return x + layer.down(F.gelu(layer.up(layer.norm2(x)))), (k, v)


def make(variant):
    net = Gpt(vocabulary=VOCABULARY, length=TOKENS + 1, width=256, heads=HEADS, layers=4).to(variant.device).eval()
    batches = variant.batches(lambda g: (torch.randint(VOCABULARY, (1, 1), generator=g),))

    @torch.no_grad()
    def step(index):
        (token,) = batches(index)
        caches = [None] * len(net.layers)
        tokens = []
        for place in range(TOKENS):
            x = net.tokens(token) + net.positions.weight[place]
            for k, layer in enumerate(net.layers):
                x, caches[k] = attend(layer, x, caches[k])
            token = net.head(net.norm(x))[:, -1].argmax(-1, keepdim=True)
            tokens.append(token.item())
        return tokens

    return step
