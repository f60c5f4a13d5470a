# SPDX-License-Identifier: Apache-2.0
"""The LSTM module, whose cells are fused operators."""

import torch
from torch import nn

from programs import Data, LossLog, initialize, schedule


class LstmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(24, 64, num_layers=2)
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][-1]).squeeze(1)


def train(options):
    net = initialize(LstmNet(), options)
    optimizer = torch.optim.Adam(net.parameters())
    data, log = Data(options), LossLog(options)
    for step in range(options.steps):
        schedule(optimizer, 2e-3, step)
        optimizer.zero_grad()
        x = data.normal(8, 32, 24)
        loss = nn.functional.mse_loss(net(x), x[:, :, 0].sum(0))
        loss.backward()
        optimizer.step()
        log.add(loss)
    return log.values()
