# SPDX-License-Identifier: Apache-2.0
"""Compares what a program left on a device with what it left in eager execution."""

import itertools
import re

import torch


def difference(actual, expected, tolerances):
    """A text, or None if there is none. `tolerances`: of the tensors that have been rounded, by name."""
    for number, (a, e) in enumerate(zip(actual.errors, expected.errors, strict=True)):
        if a != e:
            return f"line {number}: {a} instead of {e}"
    if list(actual.variables) != list(expected.variables):
        return f"variables {list(actual.variables)} instead of {list(expected.variables)}"
    actual_tensors, expected_tensors = actual.tensors(), expected.tensors()
    if list(actual_tensors) != list(expected_tensors):
        return f"tensors {list(actual_tensors)} instead of {list(expected_tensors)}"
    for name, e in expected_tensors.items():
        text = _tensor_difference(actual_tensors[name], e, tolerances.get(name, 0))
        if text is not None:
            return f"{name}: {text}"
    for name in expected.variables.keys() & expected_tensors.keys():
        if actual.writes(name) != expected.writes(name):
            return f"{name}: written {actual.writes(name)} times instead of {expected.writes(name)}"
    for name, e in expected.variables.items():
        if not isinstance(e, torch.Tensor) and _plain(actual.variables[name]) != _plain(e):
            return f"{name}: {actual.variables[name]!r} instead of {e!r}"
    for one, other in itertools.combinations(expected_tensors, 2):
        e, a = (_same_storage(tensors[one], tensors[other]) for tensors in (expected_tensors, actual_tensors))
        if a != e:
            return f"{one} and {other} {'share' if a else 'do not share'} a storage"
    return None


def _tensor_difference(a, e, tolerance):
    if a.device.type != "lazy":
        return f"on device {a.device}"
    for name in ("dtype", "shape", "stride", "storage_offset", "requires_grad", "is_leaf"):
        x, y = (value() if callable(value) else value for value in (getattr(a, name), getattr(e, name)))
        if x != y:
            return f"{name} {x} instead of {y}"
    a, e = a.detach().cpu(), e.detach().cpu()
    if torch.equal(a, e) or (tolerance and e.is_floating_point() and torch.allclose(a.double(), e.double(), rtol=tolerance, atol=tolerance)):
        return None
    return f"{a.tolist()} instead of {e.tolist()}"[:500]


def _plain(value):
    """A tensor's repr names its device, and breaks its lines elsewhere for that."""
    return re.sub(r"\s+", " ", re.sub(r",\s*device='(lazy|cuda):0'", "", value)) if isinstance(value, str) else value


def _same_storage(one, other):
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata
