# SPDX-License-Identifier: Apache-2.0
"""A small residual network with batch norm, trained with SGD and momentum."""

import torch
from torch import nn

from programs import Data, LossLog, initialize, schedule


def conv(inputs, outputs, stride):
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = conv(inputs, outputs, stride)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = conv(outputs, outputs, 1)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if inputs == outputs else conv(inputs, outputs, stride)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


def train(options):
    net = nn.Sequential(
        conv(3, 16, 1), Block(16, 16, 1), Block(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 3)
    )
    initialize(net, options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 0.05, step)
        optimizer.zero_grad()
        x = data.normal(32, 3, 16, 16)
        loss = nn.functional.cross_entropy(net(x), x.mean((2, 3)).argmax(1))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
