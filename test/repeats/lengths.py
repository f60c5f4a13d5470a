# SPDX-License-Identifier: Apache-2.0
"""Batches of shuffled lengths: plans are shared by sizes, and made for those that come first."""

import random

import torch
from programs import Data, LossLog, initialize
from torch import nn

VOCABULARY, WIDTH = 64, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.key, self.query, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.norm(self.tokens(ids))
        scores = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        return self.head(x + scores.softmax(2) @ self.value(x))


def train(options):
    net = initialize(Net(), options)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    data, log = Data(options), LossLog(options)
    lengths = random.Random(4)
    for _ in range(options.steps):
        ids = data.integers(VOCABULARY, 6, lengths.randrange(9, 40))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
