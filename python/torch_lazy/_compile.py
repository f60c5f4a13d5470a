# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="lazy"): Dynamo's graphs go straight to the device, recorded once and replayed under its guards.

Tensors of the eager device that ours stands on, the CPU or a GPU, are taken as the device's, on the same memory. Graphs on other
devices, for which there are no kernels, run as they are.
"""
import warnings

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from .replay import _Part

_ops = torch.ops.torch_lazy
_TENSOR = object()  # in the place of one
_MOST_REFUSALS = 8  # of a function that cannot be replayed, before it is just called


class _Argument:
    """In the place of a result that is an argument."""

    def __init__(self, index):
        self.index = index


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _is_eager(value):
    return _is_tensor(value) and value.device.type == _ops.eager_device()


class _Graph:
    """A graph of ATen operators as a function of its inputs, which are tensors and sizes."""

    def __init__(self, graph_module, is_eager):
        self._graph_module = graph_module
        self._is_eager = is_eager
        self._parts = {}  # by sizes
        self._results = {}  # by sizes: what is no tensor, in its place
        if is_eager:
            self._move_to_device()

    def __call__(self, *given):
        args = [_ops.from_eager(arg) if self._is_eager and _is_eager(arg) else arg for arg in given]
        tensors = [arg for arg in args if _is_tensor(arg)]
        sizes = tuple(arg for arg in args if not _is_tensor(arg))
        part = self._parts.setdefault(sizes, _Part())
        made = part.run(tensors) if part.refusals < _MOST_REFUSALS else self._run(args, sizes)
        if made is None:
            made, _ = part.note(lambda: self._run(args, sizes), tensors)
            part.refusals += bool(part.refusal())
        made = iter([_ops.to_eager(tensor) for tensor in made] if self._is_eager else made)
        return [self._result(result, given, made) for result in self._results[sizes]]

    @staticmethod
    def _result(result, given, made):
        if isinstance(result, _Argument):
            return given[result.index]
        return next(made) if result is _TENSOR else result

    def _run(self, args, sizes):
        """What it makes; arguments among its results, as autograd keeps them, and sizes are noted beside."""
        results = self._graph_module(*args)
        places = {id(arg): _Argument(index) for index, arg in enumerate(args) if _is_tensor(arg)}
        kinds = [places.get(id(result), _TENSOR) if _is_tensor(result) else result for result in results]
        self._results[sizes] = kinds
        # Autograd is around the graph, not in it: a view of a parameter is a result like any other.
        return [result.detach() for result, kind in zip(results, kinds, strict=True) if kind is _TENSOR]

    def _move_to_device(self):
        """What the graph makes on the eager device, it makes on ours."""
        module = self._graph_module
        for node in module.graph.nodes:
            if getattr(node.kwargs.get("device"), "type", None) == _ops.eager_device():
                node.update_kwarg("device", torch.device("lazy"))
            if node.op == "get_attr" and _is_eager(constant := getattr(module, node.target)):
                setattr(module, node.target, _ops.from_eager(constant))
        module.recompile()


def _compile_graph(graph_module, examples):
    devices = {example.device.type for example in examples if _is_tensor(example)}
    eager = _ops.eager_device()
    if others := devices - {eager, "lazy"}:
        names = ", ".join(sorted(others))
        warnings.warn(f'torch.compile(backend="lazy") has no kernels for device {names}: this runs as it is; move it to "lazy" or "{eager}"')
        return make_boxed_func(graph_module)
    return make_boxed_func(_Graph(graph_module, is_eager=devices == {eager}))


lazy = aot_autograd(fw_compiler=_compile_graph, bw_compiler=_compile_graph)
register_backend(lazy, name="lazy")
