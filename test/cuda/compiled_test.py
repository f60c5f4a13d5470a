# SPDX-License-Identifier: Apache-2.0
"""torch.compile with our backend: what is asked of fake tensors is what CUDA would answer."""

import pytest
import torch
import torch_lazy  # noqa: F401
from torch import nn
from torch.nn import functional as F

from devices import EAGER, Child


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(64, 192)

    def forward(self, x):
        parts = [part.unflatten(-1, (2, 32)).transpose(1, 2) for part in self.rows(x).split(64, -1)]
        return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)


def _losses(device, dynamic):
    """Of a few steps of changing length, in bfloat16, where CUDA takes flash's or cuDNN's attention."""
    torch.manual_seed(0)
    model = Attention().to(device, torch.bfloat16)
    called = torch.compile(model, backend="lazy", dynamic=dynamic) if device == "lazy" else model
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for length in (16, 16, 24, 16, 24, 32):
        x = torch.randn(3, length, 64, generator=torch.Generator().manual_seed(length)).to(device, torch.bfloat16)
        optimizer.zero_grad()
        loss = called(x).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_attention(dynamic):
    children = [Child(_losses, device, dynamic) for device in (EAGER, "lazy")]
    eager, lazy = (child.result() for child in children)
    torch.testing.assert_close(torch.tensor(lazy), torch.tensor(eager), rtol=1e-2, atol=1e-4)
