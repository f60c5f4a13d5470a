# SPDX-License-Identifier: Apache-2.0
"""Runs a function on device lazy and on the CPU, and compares what comes out: tensors, other values, or an error."""

import pytest
import torch
import torch_lazy  # noqa: F401
from torch import nn
from torch.utils import _pytree as pytree


def leaf(device, *sizes, dtype=torch.float32):
    """Random numbers with a gradient, the same on every device."""
    return (torch.randn(*sizes, dtype=dtype) / 2).to(device).requires_grad_()


def outcome(function, device):
    torch.manual_seed(0)
    try:
        result = function(device)
    except (AssertionError, AttributeError, NameError, TypeError):
        raise  # the function's own fault
    except Exception as error:
        return type(error), str(error)
    return pytree.tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf, result)


def _with_cpus_names(text):
    """Texts name the device, as CUDA's do."""
    for lazy, cpu in (("type='lazy', index=0", "type='cpu'"), ("lazy:0", "cpu"), ("lazyFloatType", "torch.FloatTensor")):
        text = text.replace(lazy, cpu)
    return text


def assert_like_eager(function, *, raises=False, **tolerance):
    """`function` takes a device and returns tensors and values in any structure, or raises, with eager's type and text.
    `raises=None`: eager decides which."""
    expected, actual = outcome(function, "cpu"), outcome(function, "lazy")
    has_raised = isinstance(expected, tuple) and len(expected) == 2 and isinstance(expected[0], type)
    assert raises is None or raises == has_raised, expected
    expected_leaves, structure = pytree.tree_flatten(expected)
    assert pytree.tree_structure(actual) == structure, f"{actual} instead of {expected}"
    for a, e in zip(pytree.tree_leaves(actual), expected_leaves, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, equal_nan=True, **tolerance)
        elif isinstance(e, str):
            assert _with_cpus_names(a) == e
        else:
            assert a == e


class Cases(list):
    """Decorators that collect functions of a device. A test is parametrized with the list: functions, and whether they
    raise."""

    def __call__(self, function, raises=False):
        self.append(pytest.param(function, raises, id=function.__name__))
        return function

    def raises(self, function):
        return self(function, raises=True)


def network(device):
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)
