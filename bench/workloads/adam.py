# SPDX-License-Identifier: Apache-2.0
"""Adam alone, over 64 parameters of 256 x 256."""

import torch


def make(variant):
    parameters = [torch.nn.Parameter(torch.randn(256, 256).to(variant.device)) for _ in range(64)]
    gradients = [[torch.randn(256, 256).to(variant.device) for _ in parameters] for _ in range(2)]
    optimizer = torch.optim.Adam(parameters, **variant.optimizer)
    update = variant.compile_update(optimizer.step)

    def step(index):
        for parameter, gradient in zip(parameters, gradients[index % 2], strict=True):
            parameter.grad = gradient
        with torch.enable_grad():
            update()

    return step
