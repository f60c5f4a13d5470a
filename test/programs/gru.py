# SPDX-License-Identifier: Apache-2.0
"""A GRU written by hand from matmuls and pointwise ops."""

import torch
from torch import nn

from programs import Data, LossLog, initialize, schedule

INPUTS, HIDDEN = 24, 96


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(3 * HIDDEN, INPUTS))
        self.u = nn.Parameter(torch.empty(3 * HIDDEN, HIDDEN))
        self.bias = nn.Parameter(torch.zeros(3 * HIDDEN))
        self.head = nn.Linear(HIDDEN, 1)

    def cell(self, x, h):
        a = (x @ self.w.t() + self.bias).chunk(3, 1)
        b = (h @ self.u.t()).chunk(3, 1)
        reset = torch.sigmoid(a[0] + b[0])
        update = torch.sigmoid(a[1] + b[1])
        candidate = torch.tanh(a[2] + reset * b[2])
        return (1 - update) * candidate + update * h

    def forward(self, x):
        h = torch.zeros(x.size(1), HIDDEN, device=x.device)
        for inputs in x.unbind(0):
            h = self.cell(inputs, h)
        return self.head(h).squeeze(1)


def train(options):
    net = initialize(Gru(), options)
    optimizer = torch.optim.Adam(net.parameters())
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 2e-3, step)
        optimizer.zero_grad()
        x = data.normal(8, 32, INPUTS)
        loss = nn.functional.mse_loss(net(x), x[:, :, 0].sum(0))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
