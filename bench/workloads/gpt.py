# SPDX-License-Identifier: Apache-2.0
"""Training a transformer decoder with AdamW: 4 layers, width 256, 8 heads, 8 sequences of 128."""

import torch
from torch import nn
from torch.nn import functional as F

from workloads.train import step_of

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 1024, 128, 256, 8, 4


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Logits for the next of each of `ids`, of shape (batch, at most `length`)."""

    def __init__(self, vocabulary=VOCABULARY, length=LENGTH, width=WIDTH, heads=HEADS, layers=LAYERS):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        places = torch.arange(ids.size(1), device=ids.device)
        return self.head(self.norm(self.layers(self.tokens(ids) + self.positions(places))))


def loss_of(net, ids):
    logits = net(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].reshape(-1))


def make(variant):
    net = Gpt().to(variant.device)
    batches = variant.batches(lambda g: (torch.randint(VOCABULARY, (8, LENGTH + 1), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)
    return step_of(lambda ids: loss_of(net, ids), optimizer, batches, variant)
