# SPDX-License-Identifier: Apache-2.0
"""A multilayer perceptron trained with Adam."""

import torch
from torch import nn

from programs import Data, LossLog, initialize, schedule


def train(options):
    net = nn.Sequential(nn.Linear(64, 320), nn.ReLU(), nn.Linear(320, 320), nn.Tanh(), nn.Linear(320, 10))
    initialize(net, options)
    optimizer = torch.optim.Adam(net.parameters())
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 1e-3, step)
        optimizer.zero_grad()
        x = data.normal(160, 64)
        loss = nn.functional.cross_entropy(net(x), x[:, :10].argmax(1))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
