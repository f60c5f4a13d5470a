# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation in turn: parameters that stay for some runs are taken for constants, and are none after the next update."""

import torch
from programs import Data, LossLog, initialize
from torch import nn

EACH = 12  # steps of training, then batches of evaluation


def train(options):
    layers = [[nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()] for channels in (3, 16, 16)]
    net = nn.Sequential(*sum(layers, []), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    initialize(net, options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        net.train(step // EACH % 2 == 0)
        images, classes = data.normal(4, 3, 16, 16), data.integers(10, 4)
        with torch.set_grad_enabled(net.training):
            loss = nn.functional.cross_entropy(net(images), classes)
        if net.training:
            optimizer.zero_grad()
            loss.backward()
        loss.item()  # the update is a trace of its own, and so is each evaluation
        if net.training:
            optimizer.step()
        log.add(loss)
    return log.values()
