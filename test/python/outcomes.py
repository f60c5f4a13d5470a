# SPDX-License-Identifier: Apache-2.0
"""Runs a function on device lazy and on the CPU, and compares what comes out: tensors, other values, or an error."""

import torch
import torch_lazy  # noqa: F401
from torch.utils import _pytree as pytree


def outcome(function, device):
    torch.manual_seed(0)
    try:
        result = function(device)
    except Exception as error:
        return type(error), str(error)
    return pytree.tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf, result)


def assert_like_eager(function, **tolerance):
    """`function` takes a device and returns tensors and values in any structure; an error has eager's type and text."""
    expected, actual = outcome(function, "cpu"), outcome(function, "lazy")
    expected_leaves, structure = pytree.tree_flatten(expected)
    assert pytree.tree_structure(actual) == structure, f"{actual} instead of {expected}"
    for a, e in zip(pytree.tree_leaves(actual), expected_leaves, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, equal_nan=True, **tolerance)
        elif isinstance(e, str):
            # Texts name the device, as CUDA's do.
            assert a.replace("lazy:0", "cpu").replace("lazyFloatType", "torch.FloatTensor") == e
        else:
            assert a == e
