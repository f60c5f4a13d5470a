# SPDX-License-Identifier: Apache-2.0
"""Checks one entry of op_db on a device: every sample, every form, forward and backward."""

import concurrent.futures
import itertools
import json

import torch
from torch.utils import _pytree as pytree

from compare import Mismatch, Tolerance, compare, is_as_precise
from exclusions import HOST_ARGUMENTS, compares_values
from inputs import INPUTS
from replicate import Replica, names_device

FORMS = ["function", "inplace", "out"]


def check(op, *, dtype, device, mode, forms, inputs, max_samples, eager="cpu"):
    """The number of calls compared, and for "forward" and, where calls have gradients, "backward" the first Mismatch or
    None."""
    torch.manual_seed(0)
    samples = op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"))
    cases = []
    # As a list first, since a generator may change a sample that it has handed out.
    for index, sample in enumerate(list(itertools.islice(samples, max_samples))):
        sample = INPUTS[inputs](sample)
        for form in forms:
            if _has_form(op, sample, form):
                expected = _outcome(op, sample, form, eager)
                if form == "function" or not isinstance(expected["forward"], Exception):
                    cases.append((index, sample, form, expected))
    actual = _run_all(op, cases, device, mode)
    first = dict.fromkeys(phase for *_, expected in cases for phase in expected)
    for (index, sample, form, expected), outcome in zip(cases, actual, strict=True):
        settings = {"device": _device_of_results(sample, device), "eager": eager, "tolerance": Tolerance(op, dtype)}
        for phase in expected:
            try:
                compare(outcome.get(phase), expected[phase], values=compares_values(op, eager), **settings)
            except Mismatch as mismatch:
                if not _is_precise(outcome, expected, op, sample, form, **settings):
                    first[phase] = first[phase] or Mismatch(f"{form}, {inputs} sample {index}, {phase}: {mismatch}")
    return {"calls": len(cases), **first}


def _is_precise(outcome, expected, op, sample, form, *, device, eager, tolerance):
    """Whether the outcome differs from eager's in numbers only, and these are right.

    Where large terms cancel, eager's error is above the tolerance; double precision tells how large it is.
    """
    precise = _outcome(op, sample.transform(lambda leaf: to_double(leaf, tolerance.dtype)), form, eager)
    try:
        compare(outcome, expected, device=device, eager=eager, tolerance=tolerance, values=False)
    except Mismatch:
        return False
    return is_as_precise(outcome, expected, precise, tolerance)


def to_double(leaf, dtype):
    """A tensor of this dtype, or the dtype itself as an argument, in double precision; all else as it is."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return leaf
    double = torch.complex128 if dtype.is_complex else torch.float64
    if leaf is dtype:
        return double
    if not isinstance(leaf, torch.Tensor) or leaf.dtype != dtype:
        return leaf
    return leaf.detach().to(double).requires_grad_(leaf.requires_grad)


def _run_all(op, cases, device, mode):
    """All calls are recorded, then cut once. Compiled: anew until no part of it is interpreted, nor run at once for the
    first time only."""
    if mode == "at_once":  # a thread that has not recorded yet: it comes to that soonest
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            return list(thread.map(lambda case: _outcome_at_once(op, case[1], case[2], device), cases))
    immediate_before = None
    for _ in range(1 if mode == "interpreted" else 5):
        before = _metrics(device)
        outcomes = [_outcome(op, sample, form, device) for _, sample, form, _ in cases]
        _sync(device)
        interpreted, immediate = (b - a for a, b in zip(before, _metrics(device), strict=True))
        if interpreted == 0 and immediate in (0, immediate_before):
            break
        immediate_before = immediate
    return outcomes


def _outcome_at_once(op, sample, form, device):
    """After so many short traces with a wait each that calls run at once: lazy/trace/at_once.h."""
    one = torch.ones((), device=device)
    while True:
        _, before = _metrics(device)
        one.add(1).item()
        if _metrics(device)[1] > before:
            return _outcome(op, sample, form, device)


def _sync(device):
    if device.startswith("lazy"):
        torch.ops.torch_lazy.sync()


def _metrics(device):
    """How many traces were interpreted, and how many calls were run at once, so far."""
    metrics = json.loads(torch.ops.torch_lazy.metrics()) if device.startswith("lazy") else {}
    return metrics.get("traces_interpreted", 0), metrics.get("calls_immediate", 0)


def _device_of_results(sample, device):
    """A factory that is told no device makes its result on the CPU."""
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return device if any(isinstance(leaf, torch.Tensor) or names_device(leaf) for leaf in leaves) else "cpu"


def _has_form(op, sample, form):
    if form == "inplace":
        return op.inplace_variant is not None and not sample.broadcasts_input
    return form == "function" or op.supports_out


def _outcome(op, sample, form, device):
    """What the call returns, forward and backward, or the errors it raises."""
    torch.manual_seed(1)
    replica = Replica(device)
    tensor, keywords = replica.of(sample.input), replica.of(sample.kwargs)
    arguments = sample.args if op.name in HOST_ARGUMENTS else replica.of(sample.args)
    try:
        if form == "out":
            return {"forward": _call_out(op, tensor, arguments, keywords)}
        if form == "inplace":
            result = op.inplace_variant(tensor.clone(), *arguments, **keywords)
        else:
            result = op(tensor, *arguments, **keywords)
    except Exception as error:
        return {"forward": error}
    if not replica.leaves:
        return {"forward": result}
    try:
        return {"forward": result, "backward": gradients(sample.output_process_fn_grad(result), replica.leaves)}
    except Exception as error:
        return {"forward": result, "backward": error}


def _call_out(op, tensor, arguments, keywords):
    with torch.no_grad():
        out = pytree.tree_map(torch.ones_like, op(tensor, *arguments, **keywords))  # not empty, since eager leaves some unwritten
        op(tensor, *arguments, **keywords, out=out)
    return out


def gradients(result, leaves):
    """For random cotangents that are the same on every device."""
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not outputs:
        return []
    generator = torch.Generator().manual_seed(2)
    cotangents = [_cotangent(out, generator) for out in outputs]
    return torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)


def _cotangent(out, generator):
    """Of the same numbers in single and double precision."""
    dtype = torch.complex64 if out.is_complex() else torch.float32
    return torch.randn(out.shape, dtype=dtype, generator=generator).to(device=out.device, dtype=out.dtype)
