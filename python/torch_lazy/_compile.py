# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="lazy"): Dynamo's graphs go straight to the device, recorded once and replayed under its guards.

Tensors of the CPU are taken as the device's, on the same memory. Graphs on other devices, for which there are no kernels, run as they are.
"""
import warnings

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from .replay import _Part

_ops = torch.ops.torch_lazy
_TENSOR = object()  # in the place of one


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _is_on_host(value):
    return _is_tensor(value) and value.device.type == "cpu"


class _Graph:
    """A graph of ATen operators as a function of its inputs, which are tensors and sizes."""

    def __init__(self, graph_module, on_host):
        self._graph_module = graph_module
        self._on_host = on_host
        self._parts = {}  # by sizes
        self._results = {}  # by sizes: what is no tensor, in its place
        if on_host:
            self._move_to_device()

    def __call__(self, *args):
        args = [_ops.from_host(arg) if self._on_host and _is_on_host(arg) else arg for arg in args]
        tensors = [arg for arg in args if _is_tensor(arg)]
        sizes = tuple(arg for arg in args if not _is_tensor(arg))
        part = self._parts.setdefault(sizes, _Part())
        made = part.run(tensors)
        if made is None:
            made, _ = part.note(lambda: self._run(args, sizes), tensors)
        made = iter([_ops.to_host(tensor) for tensor in made] if self._on_host else made)
        return [next(made) if result is _TENSOR else result for result in self._results[sizes]]

    def _run(self, args, sizes):
        results = self._graph_module(*args)
        self._results[sizes] = [_TENSOR if _is_tensor(result) else result for result in results]
        return [result for result in results if _is_tensor(result)]

    def _move_to_device(self):
        """What the graph makes on the CPU, it makes on the device."""
        module = self._graph_module
        for node in module.graph.nodes:
            if node.kwargs.get("device") == torch.device("cpu"):
                node.update_kwarg("device", torch.device("lazy"))
            if node.op == "get_attr" and _is_on_host(constant := getattr(module, node.target)):
                setattr(module, node.target, _ops.from_host(constant))
        module.recompile()


def _compile_graph(graph_module, examples):
    devices = {example.device.type for example in examples if _is_tensor(example)}
    if others := devices - {"cpu", "lazy"}:
        names = ", ".join(sorted(others))
        warnings.warn(f'torch.compile(backend="lazy") has no kernels for device {names}: this runs as it is; move it to "lazy" or "cpu"')
        return make_boxed_func(graph_module)
    return make_boxed_func(_Graph(graph_module, on_host=devices == {"cpu"}))


lazy = aot_autograd(fw_compiler=_compile_graph, bw_compiler=_compile_graph)
register_backend(lazy, name="lazy")
