# SPDX-License-Identifier: Apache-2.0
"""Random programs: what a line is, and running them on a device."""

import copy
import functools
import re
import weakref
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from grammar import KINDS


@dataclass(frozen=True)
class Line:
    kind: str
    text: str

    @functools.cached_property
    def names(self):
        return frozenset(re.findall(r"\b[tn]\d+\b", self.text))

    @functools.cached_property
    def code(self):
        return compile(self.text, "<line>", "exec")

    def __getstate__(self):
        return {"kind": self.kind, "text": self.text}


class Invalid(Exception):
    """A program that this tester has nothing to say about."""


class Machine:
    """Variables on a device. `errors`: per line that has run, the type of its exception, or None."""

    def __init__(self, device, made=lambda tensor: tensor):
        self.errors = []
        self.born = {}  # name -> the tensor and its version when it got the name
        self.variables = {}
        self.globals = {
            "torch": torch, "F": F, "copy": copy, "checkpoint": checkpoint, "device": device, "made": made,
            "sync": torch.ops.torch_lazy.sync if device == "lazy" else lambda: None,
        }

    def run(self, line):
        try:
            exec(line.code, self.globals, self.variables)
            self.errors.append(None)
        except Exception as error:
            self.errors.append(type(error).__name__)
        for name in line.names:
            tensor = self.variables.get(name)
            if isinstance(tensor, torch.Tensor) and self._named(name) is not tensor:
                self.born[name] = weakref.ref(tensor), tensor._version

    def _named(self, name):
        return self.born[name][0]() if name in self.born else None

    def writes(self, name):
        """How often the tensor was written since it got the name. A fresh result may have been written before."""
        return self.variables[name]._version - self.born[name][1]

    def tensors(self):
        """Name -> tensor, gradients included."""
        tensors = {name: value for name, value in self.variables.items() if isinstance(value, torch.Tensor)}
        grads = {f"{name}.grad": value.grad for name, value in tensors.items() if value.is_leaf and value.grad is not None}
        return tensors | grads


class Watch:
    """Follows a program on the CPU, to know which numbers are exact and which have been rounded, and how often.

    Raises Invalid where rounding would decide something, or grow.
    """

    MAX_ROUNDINGS = 3
    MAX_EXACT = 128  # multiples of a quarter up to here: products of two, summed 32 times, are exact in float32
    MAX_ROUNDED = 1e3
    TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}

    def __init__(self, machine):
        self.machine = machine
        self.roundings = {}  # storage -> how often its numbers have been rounded
        self.tolerances = {}  # storage -> of the least precise type in which they were

    def of(self, tensor):
        return self.roundings.get(tensor.untyped_storage()._cdata, 0)

    def tolerance(self, tensor):
        return self.tolerances.get(tensor.untyped_storage()._cdata, 0)

    def allows(self, line):
        tensors = self.machine.tensors()
        level = max((self.of(tensor) for tensor in self._read(line, tensors)), default=0)
        kind = KINDS[line.kind]
        return level + kind.rounds <= self.MAX_ROUNDINGS and (kind.smooth or level == 0)

    def run(self, line):
        """Runs the line on the machine."""
        if not self.allows(line):
            raise Invalid
        before = self.machine.tensors()
        versions = {name: tensor._version for name, tensor in before.items()}
        read = self._read(line, before)
        level = max((self.of(tensor) for tensor in read), default=0) + KINDS[line.kind].rounds
        tolerance = max((self.tolerance(tensor) for tensor in read), default=0)
        self.machine.run(line)
        if self.machine.errors[-1] is not None and "_foreach_" in line.text:
            raise Invalid  # eager has written the tensors before the one that raises
        try:
            after = self.machine.tensors()
        except RuntimeError:
            raise Invalid from None  # a view that autograd no longer lets anybody look at
        reached = {tensor.untyped_storage()._cdata for tensor in read + self._read(line, after)}
        roundings, tolerances = {}, {}
        for name, tensor in after.items():
            key = tensor.untyped_storage()._cdata
            if key not in reached:
                roundings[key], tolerances[key] = self.of(tensor), self.tolerance(tensor)
                continue
            is_touched = name not in before or before[name] is not tensor or versions[name] != tensor._version
            values = tensor.detach().double()
            now = max(roundings.get(key, 0), self.of(tensor), level if is_touched else 0)
            roundings[key] = max(now, 0 if self._is_exact(tensor, values) else 1)
            if roundings[key]:
                tolerances[key] = max(
                    tolerances.get(key, 0), self.tolerance(tensor), tolerance if is_touched else 0,
                    self.TOLERANCE.get(tensor.dtype, 0))
            self._check_size(tensor, values, roundings[key])
        self.roundings, self.tolerances = roundings, tolerances

    def _read(self, line, tensors):
        """A backward pass reads what its graph has kept, which may be anything."""
        if line.kind == "gradient":
            return list(tensors.values())
        return [tensor for name, tensor in tensors.items() if name.split(".")[0] in line.names]

    def _is_exact(self, tensor, values):
        if not tensor.is_floating_point():
            return True
        quarters = values * 4
        return torch.equal(quarters, quarters.round()) and float(_largest(values)) <= self.MAX_EXACT

    def _check_size(self, tensor, values, rounded):
        if tensor.numel() > 4000 or tensor.untyped_storage().nbytes() > 64000:
            raise Invalid
        if not bool(values.isfinite().all()) or (rounded and float(_largest(values)) > self.MAX_ROUNDED):
            raise Invalid


def _largest(values):
    return values.abs().max() if values.numel() > 0 else 0


def ready(tensor):
    """The tensor, computed: what follows starts from given storages."""
    if tensor.device.type == "lazy":
        torch.ops.torch_lazy.sync()
    return tensor


def roomy(tensor):
    """The same as the first part of a larger storage."""
    return ready(torch.cat([tensor.flatten(), tensor.new_ones(5)])[:tensor.numel()].view(tensor.shape))


def run(lines, device, **how):
    torch.manual_seed(0)
    machine = Machine(device, **how)
    for line in lines:
        machine.run(line)
    return machine


def has_race(lines):
    """Whether CUDA's kernel of a list would write one storage twice at once, so that eager's numbers change from run to run."""
    machine = Machine("cpu")
    for line in lines:
        tensors = machine.tensors()
        storages = [tensors[name].untyped_storage()._cdata for name in re.findall(r"\bt\d+\b", line.text) if name in tensors]
        if "_foreach_" in line.text and len(set(storages)) < len(storages):
            return True
        machine.run(line)
    return False


def tolerances(lines):
    """Name -> tolerance, of the tensors that are not exact at the program's end. May raise Invalid."""
    torch.manual_seed(0)
    watch = Watch(Machine("cpu"))
    for line in lines:
        watch.run(line)
    return {name: watch.tolerance(tensor) for name, tensor in watch.machine.tensors().items() if watch.of(tensor) > 0}
