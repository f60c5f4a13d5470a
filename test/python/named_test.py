# SPDX-License-Identifier: Apache-2.0
"""Tensors with named dimensions: names travel, are refused and are left out as on the CPU."""

import pytest
import torch
import torch_lazy

pytestmark = pytest.mark.skipif(not hasattr(torch.Tensor, "rename"), reason="PyTorch has names until 2.12")

CALLS = {
    "a batch of products": lambda x, y, b: torch.bmm(x.rename("B", "N", "C"), x.rename("B", "C", "D")),
    "a comparison": lambda x, y, b: x > 1,
    "a copy": lambda x, y, b: b.copy_(x[0]),
    "a copy from and to the host": lambda x, y, b: (x.cpu(), x.cpu().to(x.device)),
    "a draw": lambda x, y, b: torch.bernoulli(x / 4),
    "a gradient": lambda x, y, b: x.rename(None).requires_grad_().rename("B", "N", "C").sum("C").rename(None).sum(),
    "a product": lambda x, y, b: x[0] @ y,
    "a sum of names and none": lambda x, y, b: x + b,
    "a type": lambda x, y, b: x.double(),
    "a view": lambda x, y, b: x.flatten(["N", "C"], "F") * 2,
    "an activation": lambda x, y, b: x.relu(),
    "aligned": lambda x, y, b: x.align_to("C", "B", "N") + 1,
    "in place": lambda x, y, b: b.add_(x[0]),
    "into a tensor": lambda x, y, b: torch.add(x, 1, out=torch.empty(0, device=x.device)),
    "joined": lambda x, y, b: torch.cat([x, x], "N"),
    "left out": lambda x, y, b: x.rename(None) + 1,
    "masked": lambda x, y, b: x.masked_fill(x > 1, 0),
    "reduced": lambda x, y, b: (x.sum("N"), *x.max("C")),
    "refused: masked by other names": lambda x, y, b: x.masked_fill((x > 1).rename("A", "B", "C"), 0),
    "refused: other names": lambda x, y, b: x + x.rename("B", "C", "N"),
    "refused: unsupported": lambda x, y, b: x.cumsum(0).tril(),
}


def outcome(name, device):
    torch.manual_seed(0)
    x = (torch.arange(8.0).view(2, 2, 2) / 2).to(device).rename("B", "N", "C")
    y = torch.ones(2, 2, device=device, names=("C", "D"))
    try:
        results = CALLS[name](x, y, torch.ones(2, 2, device=device))
    except RuntimeError as error:
        return str(error).replace("lazy:0", "cpu")
    results = results if isinstance(results, tuple) else (results,)
    return [(result.names, result.rename(None).tolist()) for result in results]


@pytest.mark.filterwarnings("ignore:Named tensors")
@pytest.mark.parametrize("name", CALLS)
def test_equals_the_cpu(name):
    cpu = outcome(name, "cpu")
    assert isinstance(cpu, str) == name.startswith("refused")
    for _ in range(2):  # the second time the calls are known
        assert outcome(name, "lazy") == cpu


@pytest.mark.filterwarnings("ignore:Named tensors")
def test_names_are_not_expected_of_tensors_without():
    for names in (None, ("N", "C"), None, ("N", "D"), None):
        x = torch.ones(2, 2, device="lazy").refine_names(*names) if names else torch.ones(2, 2, device="lazy")
        assert (x * 2).names == (names or (None, None))
        torch_lazy.sync()
