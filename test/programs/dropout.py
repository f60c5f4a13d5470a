# SPDX-License-Identifier: Apache-2.0
"""Dropout, whose masks come from the global generator."""

import torch
from torch import nn

from programs import Data, LossLog, initialize, schedule


def train(options):
    net = nn.Sequential(
        nn.Linear(64, 320), nn.ReLU(), nn.Dropout(0.3), nn.Linear(320, 320), nn.SiLU(), nn.Dropout(0.5),
        nn.Linear(320, 1),
    )
    initialize(net, options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 0.02, step)
        optimizer.zero_grad()
        x = data.normal(160, 64)
        loss = nn.functional.mse_loss(net(x), x.mean(1, keepdim=True))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
