# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="lazy"): Dynamo's graphs go straight to the device, recorded once and replayed under its guards.

Tensors of the eager device that ours stands on, the CPU or a GPU, are taken as the device's, on the same memory. Graphs on other
devices, for which there are no kernels, run as they are.
"""
import itertools
import unittest.mock
import warnings

import torch
from functorch.compile import make_boxed_func
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend
from torch._dynamo.variables.optimizer import OptimizerVariable

from ._compatibility import _replace
from .replay import _Call, _Part

_ops = torch.ops.torch_lazy
_MOST_REFUSALS = 8  # of a function that cannot be replayed, before it is just called


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _is_eager(value):
    return _is_tensor(value) and value.device.type == _ops.eager_device()


class _Sizes:
    """All calls with the same sizes, by which a graph is specialised."""

    def __init__(self):
        self.part = _Part()
        self.numbers = []  # what is no tensor among the results
        self.places = []  # of each result among the arguments, these numbers and the tensors that were made, in this order

    def note_results(self, results, args):
        """The tensors that were made; arguments among the results, as autograd keeps them, and sizes are noted beside."""
        made, self.numbers = [], [result for result in results if not _is_tensor(result)]
        argument = {id(arg): index for index, arg in enumerate(args) if _is_tensor(arg)}
        numbers, tensors = itertools.count(len(args)), itertools.count(len(args) + len(self.numbers))
        self.places = []
        for result in results:
            if not _is_tensor(result):
                self.places.append(next(numbers))
            elif id(result) in argument:
                self.places.append(argument[id(result)])
            else:
                self.places.append(next(tensors))
                made.append(result.detach())  # autograd is around the graph: a view of a parameter is a result like any other
        return made


class _Graph:
    """A graph of ATen operators as a function of a list of its inputs, which are tensors and sizes."""

    def __init__(self, graph_module, is_eager):
        self._boxed_call = True  # AOTAutograd looks here whether the function takes a list
        self._graph_module = graph_module
        self._is_eager = is_eager
        self._places_of_sizes = None
        self._calls = {}  # by sizes
        if is_eager:
            self._move_to_device()

    def __call__(self, given):
        if self._places_of_sizes is None:
            self._places_of_sizes = [place for place, arg in enumerate(given) if not _is_tensor(arg)]
        args = [_ops.from_eager(arg) if _is_eager(arg) else arg for arg in given] if self._is_eager else given
        tensors = [arg for arg in args if _is_tensor(arg)] if self._places_of_sizes else args
        sizes = tuple([args[place] for place in self._places_of_sizes])
        call = self._calls.get(sizes)
        if call is None:
            call = self._calls[sizes] = _Sizes()
        made = call.part.run(tensors) if call.part.refusals < _MOST_REFUSALS else self._run(args, call)
        if made is None:
            made, _ = call.part.note(lambda: self._run(args, call), tensors)
            call.part.refusals += bool(call.part.refusal())
        if self._is_eager:
            made = [_ops.to_eager(tensor) for tensor in made]
        results = [*given, *call.numbers, *made]
        given.clear()  # whose last owner may be the list
        return [results[place] for place in call.places]

    def _run(self, args, call):
        return call.note_results(self._graph_module(*args), args)

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
    return _Graph(graph_module, is_eager=devices == {eager})


# What the graphs write in place they write themselves, not AOTAutograd after them.
_through_aot_autograd = aot_autograd(fw_compiler=_compile_graph, bw_compiler=_compile_graph, keep_inference_input_mutations=True)


class _DynamoGraph:
    """A graph as Dynamo has it, as a function of its inputs; autograd sees one node, or none. `constants`: tensors that it holds, an
    optimizer's parameters and state."""

    def __init__(self, graph_module, constants, has_gradients):
        self._graph_module = graph_module
        self._has_gradients = has_gradients
        self._constants = constants
        self._places_of_sizes = None
        self._calls = {}  # by sizes

    def __call__(self, *args):
        if self._places_of_sizes is None:
            self._places_of_sizes = [place for place, arg in enumerate(args) if not _is_tensor(arg)]
        sizes = tuple([args[place] for place in self._places_of_sizes])
        call = self._calls.get(sizes)
        if call is None:
            call = self._calls[sizes] = _Call(self._graph_module, held=self._constants)
        return call.flat((args, {}), [arg for arg in args if _is_tensor(arg)] if sizes else args, has_gradients=self._has_gradients)


def _lay_out_masks(graph_module):
    """Masks of attention that Dynamo sees, where models leave them out otherwise, lie side by side: of expanded ones, CUDA takes
    attention apart."""
    laid_out = {}
    for node in graph_module.graph.find_nodes(op="call_function", target=torch._C._nn.scaled_dot_product_attention):
        mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
        value = getattr(mask, "meta", {}).get("example_value")
        if not _is_tensor(value) or value.stride(-1) == 1:
            continue
        if mask not in laid_out:
            with graph_module.graph.inserting_before(node):
                laid_out[mask] = graph_module.graph.call_method("contiguous", (mask,))
        node.replace_input_with(mask, laid_out[mask])
    if laid_out:
        graph_module.recompile()


def _as_it_is(graph_module):
    """The graph if its calls can be recorded as they are, else None: tensors of our device only, of which none that needs gradients is
    written if a result has them, and new results, none of which lies on another. Constants that need gradients, an optimizer's parameters,
    only where none are recorded."""
    nodes = graph_module.graph.nodes
    if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in nodes):
        return None
    inputs = [node.meta.get("example_value") for node in nodes if node.op == "placeholder"]
    tensors = [value for value in inputs if _is_tensor(value)]
    if not all(isinstance(value, FakeTensor) and value.device.type == "lazy" and value.layout == torch.strided for value in tensors):
        return None
    constants = [value for node in nodes if node.op == "get_attr" and _is_tensor(value := getattr(graph_module, node.target))]
    if any(value.device.type != "lazy" for value in constants):
        return None
    is_grad_off = not torch.is_grad_enabled() and not any(node.target is torch._C._set_grad_enabled for node in nodes)
    if any(value.requires_grad for value in constants) and not is_grad_off:
        return None
    if not tensors or len(tensors) + sum(isinstance(value, torch.SymInt) for value in inputs) != len(inputs):
        return None
    before = [(value._version, value.grad_fn) for value in tensors]
    mode, grad_mode = tensors[0].fake_mode, torch.is_grad_enabled()
    # As Dynamo ran it: some kernels of ATen's, padding's for one, take numbers alone, and Python has others for sizes that are none.
    with mode, enable_python_dispatcher(), unittest.mock.patch.object(mode, "allow_non_fake_inputs", True), torch.set_grad_enabled(grad_mode):
        results = graph_module(*inputs)
    if not all(_is_tensor(result) and result.device.type == "lazy" and result.layout == torch.strided for result in results):
        return None
    has_gradients = any(result.requires_grad for result in results)
    for value, (version, grad_fn) in zip(tensors, before, strict=True):
        if value.grad_fn is not grad_fn or (has_gradients and value.requires_grad and value._version != version):
            return None
    tensors += constants
    storages = [StorageWeakRef(value.untyped_storage()) for value in (*tensors, *results)]
    if len(set(storages[len(tensors) :]) - set(storages[: len(tensors)])) != len(results):
        return None
    return _DynamoGraph(graph_module, constants, has_gradients)


def lazy(graph_module, examples, **options):
    if _ops.eager_device() == "cuda":
        _lay_out_masks(graph_module)
    return _as_it_is(graph_module) or _through_aot_autograd(graph_module, examples, **options)


def _set_capturable(original, optimizer, tx):
    # Counters of steps on the host would be no part of a replay. Dynamo moves those of optimizers that have not run to the device,
    # of CUDA's parameters.
    for group in optimizer.value.param_groups:
        if "capturable" in group and all(p.device.type == "lazy" and p not in optimizer.value.state for p in group["params"]):
            group["capturable"] = True
    return original(optimizer, tx)


if hasattr(OptimizerVariable, "_set_capturable"):
    _replace(OptimizerVariable, "_set_capturable", _set_capturable)
register_backend(lazy, name="lazy")
