# SPDX-License-Identifier: Apache-2.0
"""Training a small residual network with SGD and momentum: 32 images of 32 x 32, three stages."""

import torch
from torch import nn

from workloads.train import step_of


def conv(inputs, outputs, stride):
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = conv(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 1), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if inputs == outputs else conv(inputs, outputs, stride)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


def make(variant):
    net = nn.Sequential(
        conv(3, 32, 1), nn.BatchNorm2d(32), nn.ReLU(),
        Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    ).to(variant.device)
    batches = variant.batches(
        lambda g: (torch.randn(32, 3, 32, 32, generator=g), torch.randint(10, (32,), generator=g))
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **variant.optimizer)
    return step_of(lambda x, y: nn.functional.cross_entropy(net(x), y), optimizer, batches, variant)
