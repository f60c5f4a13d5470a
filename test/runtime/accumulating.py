# SPDX-License-Identifier: Apache-2.0
"""Training in which weights stay for six steps: gradients are accumulated."""

import pytest
import torch


def accumulate(net, lazy_net, x):
    """Twelve steps of both, whose losses must agree; `x`: in the dtype of `net`, on the CPU."""
    lazy_dtype = next(lazy_net.parameters()).dtype
    both = [(net, x), (lazy_net, x.to(lazy_dtype).to("lazy"))]
    optimizers = [torch.optim.SGD([p for p in each.parameters() if p.requires_grad], 0.01) for each, _ in both]
    for step in range(12):
        losses = []
        for (each, images), optimizer in zip(both, optimizers, strict=True):
            loss = each(images).square().mean()
            loss.backward()
            if step % 6 == 5:
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
