# SPDX-License-Identifier: Apache-2.0
"""A multilayer perceptron under autocast: on a GPU, 16-bit values of the weights are kept from step to step."""

import torch
from programs import Data, LossLog, initialize, schedule
from torch import nn


def train(options):
    net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 16))
    initialize(net, options)
    optimizer = torch.optim.Adam(net.parameters())
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 1e-3, step)
        optimizer.zero_grad()
        x = data.normal(128, 64)
        with torch.autocast(torch.device(options.device).type, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x).float(), x[:, :16].argmax(1))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
