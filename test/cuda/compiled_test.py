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
        return self.attend(*parts).transpose(1, 2).flatten(2)

    def attend(self, *parts):
        return F.scaled_dot_product_attention(*parts, is_causal=True)


class Dropping(Attention):
    """Dropout, and a mask as transformers makes it for Dynamo: CUDA takes attention apart where its rows do not lie side by side."""

    def attend(self, *parts):
        length = parts[0].size(2)
        mask = (torch.arange(length, device=parts[0].device) >= 0).view(1, 1, length, 1).expand(3, 1, length, length)
        if mask.device.type == EAGER:
            mask = mask.contiguous()
        return F.scaled_dot_product_attention(*parts, attn_mask=mask, dropout_p=0.3)


def _losses(make, device, dynamic, lengths):
    """Of a few steps in bfloat16; how many replays and graphs there were."""
    torch.backends.cuda.enable_cudnn_sdp(make is not Dropping)  # which we do not take with dropout, and which draws otherwise
    torch.manual_seed(0)
    model = make().to(device, torch.bfloat16)
    called = torch.compile(model, backend="lazy", dynamic=dynamic) if device == "lazy" else model
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for length in lengths:
        x = torch.randn(3, length, 64, generator=torch.Generator().manual_seed(length)).to(device, torch.bfloat16)
        optimizer.zero_grad()
        loss = called(x).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    metrics = torch_lazy.metrics()
    return losses, metrics["replays"], metrics["graph_replays"]


def _both(make, dynamic, lengths):
    """What ours returns, with losses as eager's."""
    children = [Child(_losses, make, device, dynamic, lengths, **options)
                for device, options in ((EAGER, {}), ("lazy", {"compile": "sync"}))]
    (eager, *_), (lazy, *counts) = (child.result() for child in children)
    torch.testing.assert_close(torch.tensor(lazy), torch.tensor(eager), rtol=1e-2, atol=1e-4)
    return counts


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_attention(dynamic):
    """Of changing length, where CUDA takes flash's or cuDNN's."""
    _both(Attention, dynamic, (16, 16, 24, 16, 24, 32))


def test_dropout_in_attention_is_replayed_with_gradients():
    """With eager's numbers, forward and backward, in a graph of the whole step."""
    replays, graphs = _both(Dropping, False, [16] * 12)
    assert replays >= 2 * 8 and graphs >= 5
