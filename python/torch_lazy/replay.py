# SPDX-License-Identifier: Apache-2.0
"""Functions whose calls on the device are recorded once and replayed from then on."""
import functools
import weakref

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

_ops = torch.ops.torch_lazy


class _Part:
    """A function of tensors that is noted, and replayed once it can be."""

    def __init__(self):
        self._number = _ops.replay_new()
        self.refusals = 0  # for who counts them
        weakref.finalize(self, _ops.replay_free, self._number)

    def run(self, tensors, numbers=()):
        """What the function would return, then what it would leave behind; None: it must be called."""
        done, results = _ops.replay_run(self._number, tensors, numbers)
        return results if done else None

    def note(self, function, tensors, numbers=(), saves=False):
        """Calls the function of no arguments, which returns a list of tensors. (that list, what it leaves behind)"""
        _ops.replay_begin(self._number, tensors)
        try:
            outputs = function()
        except BaseException:
            _ops.replay_abandon(self._number)
            raise
        return outputs, _ops.replay_end(self._number, tensors, numbers, outputs, saves)

    def ready(self):
        return _ops.replay_ready(self._number)

    def refusal(self):
        return _ops.replay_refusal(self._number)


class _Call:
    """All calls of a function whose arguments have one structure."""

    def __init__(self, function, parameters):
        self._function = function
        self._parameters = parameters
        self._forward, self._backward = _Part(), _Part()
        self._structure = None  # of the result

    def __call__(self, arguments, tensors, numbers):
        needs_gradients = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *self._parameters()))
        if needs_gradients:
            outputs = _Differentiable.apply(self, arguments, numbers, len(tensors), *tensors, *self._parameters())
            return tree_unflatten(list(outputs), self._structure)
        outputs = self._forward.run(tensors, numbers)
        if outputs is None:
            outputs, _ = self._forward.note(lambda: self.outputs_of(arguments), tensors, numbers)
        return tree_unflatten(outputs, self._structure)

    def outputs_of(self, arguments):
        args, kwargs = arguments
        outputs, self._structure = tree_flatten(self._function(*args, **kwargs))
        if not all(isinstance(output, torch.Tensor) for output in outputs):
            raise TypeError("make_replayable: the function must return tensors, in whatever structure")
        return outputs

    def refusals(self):
        return [refusal for refusal in (self._forward.refusal(), self._backward.refusal()) if refusal]


class _Differentiable(torch.autograd.Function):
    """A call with gradients: its forward pass is one function, its backward pass another."""

    @staticmethod
    def forward(ctx, call, arguments, numbers, num_tensors, *leaves):
        ctx.call, ctx.num_leaves = call, len(leaves)
        inputs = [leaf.detach() for leaf in leaves]
        results = None
        with torch.enable_grad():  # as when it was noted
            if call._backward.ready():  # else nobody could go back
                results = call._forward.run(inputs, numbers)
        if results is None:
            twins = [leaf.detach().requires_grad_(leaf.requires_grad) for leaf in leaves[:num_tensors]]
            with torch.enable_grad():
                made = functools.partial(call.outputs_of, _replaced(arguments, leaves[:num_tensors], twins))
                outputs, saved = call._forward.note(made, inputs, numbers, saves=True)
            ctx.graph = outputs, [*twins, *leaves[num_tensors:]]
            results = [*(output.detach() for output in outputs), *saved]
            call.num_outputs = len(outputs)
        else:
            ctx.graph = None
        ctx.save_for_backward(*inputs, *results[call.num_outputs :])
        ctx.set_materialize_grads(True)
        return tuple(results[: call.num_outputs])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        call = ctx.call
        needed = ctx.needs_input_grad[4:]
        inputs = [*ctx.saved_tensors, *grads]
        results = call._backward.run(inputs)
        if results is None:
            if ctx.graph is None:
                raise RuntimeError("make_replayable: the backward pass cannot be replayed: " + "; ".join(call.refusals()))
            outputs, leaves = ctx.graph
            wanted = [leaf for leaf, is_needed in zip(leaves, needed, strict=True) if is_needed]
            results, _ = call._backward.note(lambda: _gradients(outputs, wanted, grads), inputs)
        results = iter(results)
        return (None,) * 4 + tuple(next(results) if is_needed else None for is_needed in needed)


def _gradients(outputs, leaves, grads):
    of = [(output, grad) for output, grad in zip(outputs, grads, strict=True) if output.requires_grad]
    return list(
        torch.autograd.grad([o for o, _ in of], leaves, [g for _, g in of], retain_graph=True, materialize_grads=True)
    )


def _replaced(arguments, tensors, twins):
    """The arguments with other tensors in the places of these."""
    leaves, structure = tree_flatten(arguments)
    twin_of = {id(tensor): twin for tensor, twin in zip(tensors, twins, strict=True)}
    return tree_unflatten([twin_of.get(id(leaf), leaf) for leaf in leaves], structure)


def make_replayable(function):
    """A function, or a module, whose calls on the device are recorded once and replayed from then on.

    From the third call on, usually, its Python code does not run: what it did on the device the first times is done again, with
    the tensors it is given. It holds what `torch.cuda.make_graphed_callables` asks for: the function does the same on the device at each
    call, but for the values of its tensors and of its numbers (float); what else it does happens only while it is recorded.
    Every structure of the arguments, and every size of its tensors, is recorded for itself.

    A call is not replayed, and runs as ever, where it could not be right: if the function waits for a value, copies from the host,
    has a shape that depends on data, or uses a number that changes and is no argument. `explain()` says why.

    Gradients reach tensors among the arguments, and parameters of a module; not those of a module that a function merely uses.

        step = torch_lazy.make_replayable(model)
    """
    calls = {}
    is_module = isinstance(function, torch.nn.Module)

    def parameters():
        return [p for p in function.parameters() if p.requires_grad] if is_module else []

    @functools.wraps(function.forward if is_module else function)
    def replayable(*args, **kwargs):
        leaves, structure = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        numbers = [leaf for leaf in leaves if type(leaf) is float]
        fixed = tuple(
            "tensor" if isinstance(leaf, torch.Tensor) else "number" if type(leaf) is float else leaf for leaf in leaves
        )
        key = structure, fixed, is_module and function.training
        if key not in calls:
            calls[key] = _Call(function, parameters)
        return calls[key]((args, kwargs), tensors, numbers)

    return replayable
