# SPDX-License-Identifier: Apache-2.0
"""Compares what an op returned on a device with what eager execution on the CPU returned."""

import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo
from torch.utils import _pytree as pytree


class Mismatch(Exception):
    pass


class Tolerance:
    """What assert_close takes for the tested dtype, or what the entry grants PyTorch's own common tests."""

    def __init__(self, entry, dtype, tests="TestCommon"):
        self.dtype = dtype
        self.arguments = _tolerance(entry, dtype, tests)


def compare(actual, expected, *, device, tolerance, values=True, eager="cpu"):
    """Raises Mismatch unless both are alike. `values=False` compares all but the numbers."""
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return _compare_errors(actual, expected)
    actual_leaves, actual_spec = pytree.tree_flatten(actual)
    expected_leaves, expected_spec = pytree.tree_flatten(expected)
    if actual_spec != expected_spec:
        raise Mismatch(f"structure: {actual_spec} instead of {expected_spec}")
    for a, e in zip(actual_leaves, expected_leaves, strict=True):
        if isinstance(e, torch.Tensor):
            _compare_metadata(a, e, device, eager)
        if not values:
            continue
        try:
            is_tested = isinstance(e, torch.Tensor) and e.dtype == tolerance.dtype
            a, e = (leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf for leaf in (a, e))
            torch.testing.assert_close(a, e, equal_nan=True, **(tolerance.arguments if is_tested else {}))
        except AssertionError as error:
            raise Mismatch("values: " + " ".join(str(error).split())) from None


def is_as_precise(actual, expected, precise, tolerance, neighbours=()):
    """Whether each number is within tolerance of eager's, or of what double precision gives; or differs from one of them
    by no more than twice eager's worst error in the same tensor and the tolerance of the call's largest number.

    `neighbours`: what eager gives for inputs that differ in their last digits. By how much these results differ is what
    rounding does here, and an error of twice as much is granted."""
    leaves = [pytree.tree_leaves(outcome) for outcome in (actual, expected, precise)]
    near = [pytree.tree_leaves(outcome) for outcome in neighbours]
    if len({len(each) for each in leaves + near}) > 1:
        return False
    scale = max((_largest(leaf) for leaf in leaves[2]), default=0.0)
    return all(_leaf_is_as_precise(*each, scale, tolerance, [leaf[k] for leaf in near])
               for k, each in enumerate(zip(*leaves, strict=True)))


def _leaf_is_as_precise(actual, expected, precise, scale, tolerance, near):
    if not isinstance(actual, torch.Tensor):
        return actual == precise
    actual, expected, precise = actual.detach().cpu(), expected.detach().cpu(), precise.detach().cpu()
    if actual.dtype != tolerance.dtype:
        return any(_is_close(actual, reference) for reference in (expected, precise))
    actual, expected = actual.to(precise.dtype), expected.to(precise.dtype)
    limit = min(2 * _largest(expected - precise), tolerance.arguments["rtol"] * scale)
    limit = max([limit, *(2 * _largest(leaf.detach().to(precise.dtype) - expected) for leaf in near)])
    good = torch.zeros_like(actual, dtype=torch.bool)
    for reference in (expected, precise):
        good |= torch.isclose(actual, reference, equal_nan=True, **tolerance.arguments)
        good |= (actual - reference).abs() <= limit
    return bool(good.all())


def _is_close(actual, reference):
    """As assert_close of `actual`'s type; numbers that are no fractions are equal."""
    rtol, atol = torch.testing._comparison.default_tolerances(actual.dtype)
    return actual.shape == reference.shape and bool(torch.isclose(actual.to(reference.dtype), reference, rtol, atol, equal_nan=True).all())


def _largest(leaf):
    if not isinstance(leaf, torch.Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
        return 0.0
    finite = leaf.detach().abs().nan_to_num(0, 0, 0)
    return finite.max().item() if finite.numel() else 0.0


def _compare_errors(actual, expected):
    if type(actual) is not type(expected):
        raise Mismatch(f"error: {_describe(actual)} instead of {_describe(expected)}")


def _describe(outcome):
    if isinstance(outcome, Exception):
        return f"{type(outcome).__name__}: {' '.join(str(outcome).split())}"
    return "a result"


def _compare_metadata(actual, expected, device, eager):
    if not isinstance(actual, torch.Tensor):
        raise Mismatch(f"a {type(actual).__name__} instead of a tensor")
    wanted = torch.device(device) if expected.device.type == eager else expected.device
    if actual.device.type != wanted.type or wanted.index not in (None, actual.device.index):
        raise Mismatch(f"device: {actual.device}")
    properties = ["dtype", "shape", "layout", "requires_grad"]
    if expected.layout == torch.strided:
        properties += ["stride", "is_conj", "is_neg"]
    for name in properties:
        a, e = getattr(actual, name), getattr(expected, name)
        a, e = (a(), e()) if callable(a) else (a, e)
        if a != e:
            raise Mismatch(f"{name}: {a} instead of {e}")


def _tolerance(entry, dtype, tests):
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    for decorator in entry.decorators:
        if not isinstance(decorator, DecorateInfo) or decorator.cls_name != tests:
            continue
        for part in decorator.decorators:
            if isinstance(part, toleranceOverride) and dtype in part.d:
                rtol, atol = max(rtol, part.d[dtype].rtol), max(atol, part.d[dtype].atol)
    return {"rtol": rtol, "atol": atol}
