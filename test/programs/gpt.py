# SPDX-License-Identifier: Apache-2.0
"""A small transformer decoder trained with AdamW and clipped gradients."""

import torch
from torch import nn
from torch.nn import functional as F

from programs import Data, LossLog, initialize, schedule

VOCABULARY, LENGTH, WIDTH, HEADS = 96, 48, 64, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

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
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(Layer(), Layer())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        places = torch.arange(LENGTH, device=ids.device)
        return self.head(self.norm(self.layers(self.tokens(ids) + self.positions(places))))


def train(options):
    net = initialize(Gpt(), options)
    optimizer = torch.optim.AdamW(net.parameters())
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 1e-3, step)
        optimizer.zero_grad()
        ids = data.integers(VOCABULARY, 8, LENGTH + 1)
        logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.view(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        log.add(loss)
    return log.values()
