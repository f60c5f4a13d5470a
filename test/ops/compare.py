# SPDX-License-Identifier: Apache-2.0
"""Compares what an op returned on a device with what eager execution on the CPU returned."""

import math

import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo
from torch.utils import _pytree as pytree


class Mismatch(Exception):
    pass


class Tolerance:
    """What assert_close takes for the tested dtype, or what the op's entry grants PyTorch's own common tests."""

    def __init__(self, op, dtype):
        self.dtype = dtype
        self.arguments = _tolerance(op, dtype)


def compare(actual, expected, *, device, tolerance, values=True):
    """Raises Mismatch unless both are alike. `values=False` compares all but the numbers."""
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return _compare_errors(actual, expected)
    actual_leaves, actual_spec = pytree.tree_flatten(actual)
    expected_leaves, expected_spec = pytree.tree_flatten(expected)
    if actual_spec != expected_spec:
        raise Mismatch(f"structure: {actual_spec} instead of {expected_spec}")
    for a, e in zip(actual_leaves, expected_leaves, strict=True):
        if isinstance(e, torch.Tensor):
            _compare_metadata(a, e, device)
        if not values:
            continue
        try:
            is_tested = isinstance(e, torch.Tensor) and e.dtype == tolerance.dtype
            a = a.cpu() if isinstance(a, torch.Tensor) else a
            torch.testing.assert_close(a, e, equal_nan=True, **(tolerance.arguments if is_tested else {}))
        except AssertionError as error:
            raise Mismatch("values: " + " ".join(str(error).split())) from None


def relative_error(outcome, precise, tolerance):
    """The largest error of an outcome of the tested dtype, relative to what double precision gives; `atol` is free."""
    leaves, precise_leaves = pytree.tree_leaves(outcome), pytree.tree_leaves(precise)
    if len(leaves) != len(precise_leaves) or isinstance(precise, Exception):
        return math.inf
    return max((_leaf_error(a, p, tolerance) for a, p in zip(leaves, precise_leaves, strict=True)), default=0.0)


def _leaf_error(actual, precise, tolerance):
    if not isinstance(actual, torch.Tensor):
        return 0.0 if actual == precise else math.inf
    actual = actual.detach().cpu()
    if actual.dtype != tolerance.dtype:
        return 0.0 if torch.equal(actual, precise) else math.inf
    actual, precise = actual.double(), precise.detach()
    error = ((actual - precise).abs() - tolerance.arguments["atol"]).clamp(min=0) / precise.abs()
    same = (actual == precise) | (actual.isnan() & precise.isnan())
    return error.nan_to_num(math.inf).masked_fill(same, 0).max().item() if error.numel() else 0.0


def _compare_errors(actual, expected):
    if type(actual) is not type(expected):
        raise Mismatch(f"error: {_describe(actual)} instead of {_describe(expected)}")


def _describe(outcome):
    if isinstance(outcome, Exception):
        return f"{type(outcome).__name__}: {' '.join(str(outcome).split())}"
    return "a result"


def _compare_metadata(actual, expected, device):
    if not isinstance(actual, torch.Tensor):
        raise Mismatch(f"a {type(actual).__name__} instead of a tensor")
    if actual.device.type != (device if expected.device.type == "cpu" else expected.device.type):
        raise Mismatch(f"device: {actual.device}")
    properties = ["dtype", "shape", "layout", "requires_grad"]
    if expected.layout == torch.strided:
        properties += ["stride", "is_conj", "is_neg"]
    for name in properties:
        a, e = getattr(actual, name), getattr(expected, name)
        a, e = (a(), e()) if callable(a) else (a, e)
        if a != e:
            raise Mismatch(f"{name}: {a} instead of {e}")


def _tolerance(op, dtype):
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    for decorator in op.decorators:
        if not isinstance(decorator, DecorateInfo) or decorator.cls_name != "TestCommon":
            continue
        for part in decorator.decorators:
            if isinstance(part, toleranceOverride) and dtype in part.d:
                rtol, atol = max(rtol, part.d[dtype].rtol), max(atol, part.d[dtype].atol)
    return {"rtol": rtol, "atol": atol}
