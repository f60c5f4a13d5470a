# SPDX-License-Identifier: Apache-2.0
"""Steps with several sizes, all of them random: some are equal by accident in each step, others in the next (ir/unify.h)."""

import random

import pytest
import torch

from child import in_child
from counting import counts_by_step

STEPS, EXPERTS, MOST = 40, 12, 20


def _sizes(step):
    return random.Random(step).choices(range(2, MOST), k=EXPERTS)


def _experts(device):
    """Training a mixture of experts whose tokens are random in number; yields the loss of each step."""
    torch.manual_seed(0)
    weights = [torch.randn(5, 7).to(device).requires_grad_() for _ in range(EXPERTS)]
    for step in range(STEPS):
        tokens = [torch.randn(size, 5).to(device) for size in _sizes(step)]
        rows = torch.cat([torch.tanh(x @ w) for x, w in zip(tokens, weights, strict=True)])
        loss = rows.square().mean()
        loss.backward()
        with torch.no_grad():
            for w in weights:
                w -= 0.1 * w.grad
                w.grad = None
        yield loss.item()


def test_no_step_is_without_an_accident():
    assert all(len(set(_sizes(step))) < EXPERTS for step in range(STEPS))


def test_soon_all_steps_have_one_plan():
    seen = counts_by_step(lambda: _experts("lazy"))
    assert seen[8] == seen[-1]


@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_that_plan_is_right(backend):
    losses = in_child(lambda: list(_experts("lazy")), compile="sync", verify=1, backend=backend)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(in_child(lambda: list(_experts("cpu")))))
