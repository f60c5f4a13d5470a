# SPDX-License-Identifier: Apache-2.0
"""Training a multilayer perceptron with Adam: 784, 512, 512, 10, batches of 128."""

import torch
from torch import nn

from workloads.train import step_of


def make(variant):
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    net.to(variant.device)
    batches = variant.batches(
        lambda g: (torch.randn(128, 784, generator=g), torch.randint(10, (128,), generator=g))
    )
    optimizer = torch.optim.Adam(net.parameters(), **variant.optimizer)
    return step_of(lambda x, y: nn.functional.cross_entropy(net(x), y), optimizer, batches, variant)
