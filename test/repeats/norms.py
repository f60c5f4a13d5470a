# SPDX-License-Identifier: Apache-2.0
"""Batch norm and layer norm: sums in both directions, so that each way of summing shows in the loss."""

import torch
from programs import Data, LossLog, initialize
from torch import nn


def train(options):
    net = nn.Sequential(nn.Linear(24, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 80), nn.LayerNorm(80), nn.Linear(80, 1))
    initialize(net, options)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data, log = Data(options), LossLog(options)
    for _ in range(options.steps):
        x = data.normal(80, 24)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), x[:, :3].sin().sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
