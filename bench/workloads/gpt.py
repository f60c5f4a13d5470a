# SPDX-License-Identifier: Apache-2.0
"""Training a transformer decoder with AdamW: 4 layers, width 256, 8 heads, 8 sequences of 128."""

import torch
from torch import nn
from torch.nn import functional as F

from workloads.train import step_of

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 1024, 128, 256, 8, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch = x.size(0)
        parts = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (t.view(batch, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for t in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, LENGTH, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        places = torch.arange(LENGTH, device=ids.device)
        return self.head(self.norm(self.layers(self.tokens(ids) + self.positions(places))))


def make(variant):
    net = Gpt().to(variant.device)
    batches = variant.batches(lambda g: (torch.randint(VOCABULARY, (8, LENGTH + 1), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)

    def loss_of(ids):
        logits = net(ids[:, :-1])
        return F.cross_entropy(logits.view(-1, VOCABULARY), ids[:, 1:].reshape(-1))

    return step_of(loss_of, optimizer, batches, variant)
