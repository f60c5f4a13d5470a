# SPDX-License-Identifier: Apache-2.0
"""Places where PyTorch's Python code mistakes our device; each patch says why, and a test holds each.

What a version of PyTorch lacks is left alone.
"""
import functools
import operator

import torch
import torch._lazy
import torch._subclasses.meta_utils
from torch.utils.dlpack import DLDeviceType

from .control import sync


def _is_lazy(value):
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def _dlpack_device(original, tensor):
    # PyTorch compares the device's type with the literal "privateuse1", which no renamed device has, and takes all pinned
    # memory for CUDA's.
    if _is_lazy(tensor):
        return (DLDeviceType.kDLExtDev, tensor.device.index or 0)
    kind, index = original(tensor)
    if kind == DLDeviceType.kDLCUDAHost and not torch.cuda.is_available():
        kind = DLDeviceType.kDLCPU
    return (kind, index)


def _call_graph(original, compiler, graph, inputs):
    # Inductor has no code for the device, and needs none: the calls of the graph are recorded and compiled like any other.
    if any(_is_lazy(node.meta.get("example_value")) for node in graph.graph.nodes) or any(map(_is_lazy, inputs)):
        return graph.forward
    return original(compiler, graph, inputs)


def _named_backend(original, wrapper, backend, *args, **kwargs):
    # Backends are registered with Dynamo, whose import takes seconds: not before someone asks for ours.
    if backend == "lazy":
        from . import _compile as _  # noqa: F401
    return original(wrapper, backend, *args, **kwargs)


def _mark_step(original, device="", wait=False):
    # torch.testing marks a step of the TorchScript lazy backend for any device of the name "lazy".
    sync()


_REPLACED = {
    "Tensor.__dlpack_device__": _dlpack_device,
    "_TorchCompileInductorWrapper.__call__": _call_graph,
    "_TorchCompileWrapper.__init__": _named_backend,
    "_lazy.mark_step": _mark_step,
}

# They treat a list of device types as special, and by "lazy" they mean the TorchScript lazy backend.
_FORGETTING = (
    "Tensor.__deepcopy__",  # copies would lose what tensors share, strides and offsets
    "_subclasses.meta_utils.MetaConverter.__call__",  # there would be no fake tensors, for torch.compile and torch.export
    "_subclasses.meta_utils.MetaConverter.meta_tensor",  # the same, where functional tensors wrap ours
    "_subclasses.meta_utils.MetaTensorDescriber.describe_tensor",
)


def _replace(owner, name, replacement):
    original = getattr(owner, name)

    @functools.wraps(original)
    def replaced(*args, **kwargs):
        return replacement(original, *args, **kwargs)

    setattr(owner, name, replaced)


def _forget_lazy(function):
    def forgotten(constant):
        if isinstance(constant, tuple):
            return tuple(map(forgotten, constant))
        return "TorchScript lazy" if constant == "lazy" else constant

    function.__code__ = function.__code__.replace(co_consts=tuple(map(forgotten, function.__code__.co_consts)))


def _find(path):
    """The owner of what `path` names in torch, and its last name; None where there is no such thing."""
    owner, name = path.rsplit(".", 1)
    try:
        owner = operator.attrgetter(owner)(torch)
    except AttributeError:
        return None
    return (owner, name) if hasattr(owner, name) else None


def apply():
    for path, replacement in _REPLACED.items():
        if found := _find(path):
            _replace(*found, replacement)
    for path in _FORGETTING:
        if found := _find(path):
            _forget_lazy(getattr(*found))
