# SPDX-License-Identifier: Apache-2.0
"""Training a GRU written by hand with Adam: 16 time steps, 32 sequences, width 64."""

import torch
from torch import nn

from workloads.train import step_of

TIMES, BATCH, WIDTH = 16, 32, 64


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.hidden = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        h = torch.zeros(BATCH, WIDTH, device=x.device)
        for inputs in x.unbind(0):
            a, b = self.inputs(inputs).chunk(3, 1), self.hidden(h).chunk(3, 1)
            reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
            h = (1 - update) * torch.tanh(a[2] + reset * b[2]) + update * h
        return self.head(h).squeeze(1)


def make(variant):
    net = Gru().to(variant.device)
    batches = variant.batches(
        lambda g: (torch.randn(TIMES, BATCH, WIDTH, generator=g), torch.randn(BATCH, generator=g))
    )
    optimizer = torch.optim.Adam(net.parameters(), **variant.optimizer)
    return step_of(lambda x, y: nn.functional.mse_loss(net(x), y), optimizer, batches, variant)
