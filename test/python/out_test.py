# SPDX-License-Identifier: Apache-2.0
"""`out=` of any dtype, size and layout: eager's result, error type and warnings, the first time and when the call is known."""

import itertools
import warnings

import pytest
import torch
import torch_lazy  # noqa: F401


def numbers(device, *sizes, dtype=torch.float32):
    return torch.arange(1, 1 + torch.Size(sizes).numel(), device=device).reshape(sizes).to(dtype)


OPS = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "exp": lambda x, out: torch.exp(x, out=out),
    "abs": lambda x, out: torch.abs(x, out=out),
    "clamp": lambda x, out: torch.clamp(x, 0, 1, out=out),
    "eq": lambda x, out: torch.eq(x, x, out=out),
    "logical and": lambda x, out: torch.logical_and(x, x, out=out),
    "where": lambda x, out: torch.where(x > 1, x, x, out=out),
    "sum": lambda x, out: torch.sum(x, 1, out=out),
    "mean": lambda x, out: torch.mean(x, 1, out=out),
    "argmax": lambda x, out: torch.argmax(x, 1, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 1, out=out),
    "mm": lambda x, out: torch.mm(x, x.t(), out=out),
    "cat": lambda x, out: torch.cat([x, x], out=out),
    "index_select": lambda x, out: torch.index_select(x, 1, torch.tensor([0, 1], device=x.device), out=out),
    "nonzero": lambda x, out: torch.nonzero(x, out=out),
}
OUTPUTS = {
    "empty": lambda device: torch.empty(0, device=device),
    "other size": lambda device: torch.zeros(7, 2, device=device),
    "other rank": lambda device: torch.zeros(2, device=device),
    "int64": lambda device: torch.zeros(0, dtype=torch.int64, device=device),
    "bool": lambda device: torch.zeros(2, 3, dtype=torch.bool, device=device),
    "double": lambda device: torch.zeros(0, dtype=torch.float64, device=device),
    "complex": lambda device: torch.zeros(0, dtype=torch.complex64, device=device),
    "transposed": lambda device: torch.zeros(3, 2, device=device).t(),
    "expanded": lambda device: torch.zeros(1, 3, device=device).expand(2, 3),
    "part": lambda device: torch.zeros(4, 3, device=device)[1:3],
    "wants a gradient": lambda device: torch.zeros(2, 3, device=device, requires_grad=True),
}


def outcome(op, output, device):
    """What is returned, the type of what is raised, and how often there was a warning of a resize."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = op(numbers(device, 2, 3), output(device))
        except Exception as error:
            return type(error)
    resized = sum("was resized" in str(warning.message) for warning in caught)
    return result.shape, result.stride(), result.dtype, resized, result.tolist()


@pytest.mark.parametrize("name", OPS)
def test_outputs_are_eagers(name):
    for output, _ in itertools.product(OUTPUTS, range(3)):  # run at once, recorded, known
        assert outcome(OPS[name], OUTPUTS[output], "lazy") == outcome(OPS[name], OUTPUTS[output], "cpu"), output
