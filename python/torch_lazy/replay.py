# SPDX-License-Identifier: Apache-2.0
"""Functions whose calls on the device are recorded once and replayed from then on."""
import functools
import weakref

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

_ops = torch.ops.torch_lazy


class _Part:
    """A function of tensors that is noted, and replayed once it can be."""

    ANY, FORWARD, BACKWARD = range(3)  # which pass it is, if one of a pair

    def __init__(self, which=ANY, held=()):
        """`held`: tensors whose storages the function uses, and `.data =` may change."""
        self._number = _ops.replay_new_pass(which)
        _ops.replay_watch(self._number, held)
        self.refusals = 0  # for who counts them
        weakref.finalize(self, _ops.replay_free, self._number)

    def run(self, tensors, numbers=()):
        """What the function would return, then what it would leave behind; None: it must be called."""
        done, results = _ops.replay_run(self._number, tensors, numbers)
        return results if done else None

    def note(self, function, tensors, numbers=(), draws=(), saves=False):
        """Calls the function of no arguments, which returns a list of tensors. (that list, what it leaves behind)

        `draws`: those of the forward pass, if this is the backward pass."""
        _ops.replay_begin(self._number, tensors)
        try:
            outputs = function()
        except BaseException:
            _ops.replay_abandon(self._number)
            raise
        return outputs, _ops.replay_end(self._number, tensors, numbers, draws, outputs, saves)

    def run_before(self, backward, tensors, numbers=()):
        """The results of this forward pass, with their way back; None: it must be called."""
        done, results = _ops.replay_apply(self._number, backward._number, tensors, numbers)
        return results if done else None

    def case(self):
        return _ops.replay_case(self._number)

    def draws(self):
        """What the last call has drawn for calls that are recorded."""
        return _ops.replay_draws(self._number)

    def pair(self, case, differentiable):
        """The backward pass of a case may be replayed; of its results, these have gradients."""
        _ops.replay_pair(self._number, case, differentiable)

    def ready(self):
        return _ops.replay_ready(self._number)

    def refusal(self):
        return _ops.replay_refusal(self._number)


class _Call:
    """All calls of a function whose arguments have one structure."""

    def __init__(self, function, parameters=tuple, held=()):
        self._function = function
        self._parameters = parameters
        self._alone, self._forward, self._backward = _Part(held=held), _Part(_Part.FORWARD), _Part(_Part.BACKWARD)
        self._structure = None  # of the result

    def __call__(self, arguments, tensors, numbers):
        return tree_unflatten(self.flat(arguments, tensors, numbers), self._structure)

    def flat(self, arguments, tensors, numbers=(), has_gradients=True):
        leaves = [*tensors, *self._parameters()]
        if has_gradients and torch.is_grad_enabled() and any([leaf.requires_grad for leaf in leaves]):
            results = self._forward.run_before(self._backward, leaves, numbers)
            return _Noted.apply(self, arguments, numbers, len(tensors), *leaves) if results is None else results
        results = self._alone.run(tensors, numbers)
        if results is None:
            results, _ = self._alone.note(lambda: self.outputs_of(arguments), tensors, numbers)
        return results

    def outputs_of(self, arguments):
        args, kwargs = arguments
        outputs, self._structure = tree_flatten(self._function(*args, **kwargs))
        if not all(isinstance(output, torch.Tensor) for output in outputs):
            raise TypeError("make_replayable: the function must return tensors, in whatever structure")
        return outputs

    def note_forward(self, arguments, inputs, numbers):
        """(what it returns, what it leaves behind for the backward pass, the case, what it drew)"""
        outputs, saved = self._forward.note(lambda: self.outputs_of(arguments), inputs, numbers, saves=True)
        return outputs, saved, self._forward.case(), self._forward.draws()

    def note_backward(self, case, outputs, leaves, grads, inputs, numbers, draws):
        of = [output for output in outputs if output.requires_grad]
        grads = _ops.replay_gradients(of, grads, inputs)
        results, _ = self._backward.note(lambda: _gradients(of, leaves, grads), [*inputs, *grads], numbers, draws)
        self._forward.pair(case, [output.requires_grad for output in outputs] if self._backward.ready() else [])
        return results


class _Noted(torch.autograd.Function):
    """A call with gradients that is noted: its forward pass is one function, its backward pass another."""

    @staticmethod
    def forward(ctx, call, arguments, numbers, num_tensors, *leaves):
        twins = [leaf.detach().requires_grad_(leaf.requires_grad) for leaf in leaves[:num_tensors]]
        with torch.enable_grad():
            outputs, saved, ctx.case, ctx.draws = call.note_forward(_replaced(arguments, leaves[:num_tensors], twins), list(leaves), numbers)
        ctx.call, ctx.numbers = call, numbers
        ctx.graph = outputs, [*twins, *leaves[num_tensors:]]
        results = tuple(output.detach() for output in outputs)
        ctx.inputs = [*(leaf.detach() for leaf in leaves), *saved, *(result.detach() for result in results)]
        ctx.mark_non_differentiable(*(result for result, output in zip(results, outputs, strict=True) if not output.requires_grad))
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        outputs, leaves = ctx.graph
        needed = ctx.needs_input_grad[4:]
        wanted = [leaf for leaf, is_needed in zip(leaves, needed, strict=True) if is_needed]
        grads = [grad for grad, output in zip(grads, outputs, strict=True) if output.requires_grad]
        results = iter(ctx.call.note_backward(ctx.case, outputs, wanted, grads, ctx.inputs, ctx.numbers, ctx.draws))
        return (None,) * 4 + tuple(next(results) if is_needed else None for is_needed in needed)


def _gradients(outputs, leaves, grads):
    return list(torch.autograd.grad(outputs, leaves, grads, retain_graph=True, materialize_grads=True))


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
