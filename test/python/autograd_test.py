# SPDX-License-Identifier: Apache-2.0
"""Autograd on the device: whatever a program asks of it, the answer is eager's, and so is the error."""

import pytest
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn.functional as F
import torch_lazy
from outcomes import assert_like_eager
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

CASES = []


def case(function):
    CASES.append(pytest.param(function, id=function.__name__))
    return function


@pytest.mark.parametrize("function", CASES)
def test_like_eager(compile_mode, function):
    assert_like_eager(function)


def leaf(device, *sizes, dtype=torch.float32):
    return (torch.randn(*sizes, dtype=dtype) / 2).to(device).requires_grad_()


def network(device):
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)


# --- Derivatives of derivatives ---


@case
def double_backward(device):
    model, x = network(device), leaf(device, 5, 4)
    (slope,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
    (slope.norm(dim=1) - 1).square().mean().backward()
    return [p.grad for p in model.parameters()], x.grad


@case
def third_derivative(device):
    x = leaf(device, 5)
    y = x.sin() * x.exp()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y


@case
def accumulation_with_graph(device):
    x = leaf(device, 5)
    for _ in range(2):
        x.pow(3).sum().backward(create_graph=True)
    return x.grad, torch.autograd.grad(x.grad.sum(), x)


# --- Hooks ---


@case
def tensor_hooks(device):
    x, seen = leaf(device, 5), []
    y = x * 2
    handle = y.register_hook(lambda g: g * 3)
    y.register_hook(seen.append)
    x.register_hook(lambda g: seen.append(g.sum()))
    (y * y).sum().backward()
    handle.remove()
    x2 = x.grad.clone()
    (x * 2).register_hook(lambda g: None)
    return x2, seen


@case
def hooks_that_change_nothing_but_see_the_first_value(device):
    x = leaf(device, 5)
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()))
    for _ in range(3):
        (x * x).sum().backward()
    return seen, x.grad


@case
def post_accumulate_grad_hooks(device):
    """The optimizer runs inside the backward pass."""
    model = network(device)
    optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        model(torch.randn(5, 4).to(device)).square().sum().backward()
    return list(model.parameters()), [p.grad is None for p in model.parameters()]


@case
def module_hooks(device):
    model, seen = network(device), []
    model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
    model[1].register_forward_hook(lambda module, inputs, output: output + inputs[0])
    model[2].register_full_backward_pre_hook(lambda module, grad: (grad[0] * 0.5,))
    model[3].register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    model(leaf(device, 5, 4)).square().sum().backward()
    return seen, [p.grad for p in model.parameters()]


@case
def hooks_of_nodes(device):
    x, seen = leaf(device, 5), []
    y = (x * 2).exp()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.sum().backward()
    return x.grad, seen


@case
def multi_grad_hook(device):
    x, z, seen = leaf(device, 5), leaf(device, 5), []
    torch.autograd.graph.register_multi_grad_hook((x, z), lambda grads: seen.append(list(grads)))
    (x * z).sum().backward()
    return seen


@case
def a_hook_that_raises(device):
    x = leaf(device, 5)

    def refuse(grad):
        raise ValueError("not today")

    y = x * 2
    y.register_hook(refuse)
    y.sum().backward()


@case
def retain_grad(device):
    x = leaf(device, 5)
    y = x * 2
    y.retain_grad()
    z = y.exp()
    z.retain_grad()
    z.sum().backward()
    return x.grad, y.grad, z.grad, y.is_leaf


# --- Modes ---


@case
def no_grad_and_enable_grad(device):
    x = leaf(device, 5)
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    with torch.set_grad_enabled(False):
        c = x * 4
    return [t.requires_grad for t in (a, b, c)], torch.autograd.grad(b.sum(), x)


@case
def inference_mode(device):
    x = leaf(device, 5)
    with torch.inference_mode():
        y = F.dropout(F.linear(x, torch.ones(5, 5, device=device)), 0.5)
        y.mul_(2)
    return y, y.is_inference(), y.requires_grad, x.is_inference()


@case
def an_inference_tensor_cannot_be_saved(device):
    x = leaf(device, 5)
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    return x * y


@case
def an_inference_tensor_has_no_version(device):
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    return y._version


@case
def an_inference_tensor_is_not_updated_outside(device):
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    y.add_(1)


@case
def anomaly_mode_finds_the_nan(device):
    x = torch.zeros(3).to(device).requires_grad_()
    with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), torch.autograd.detect_anomaly():
        (x.sqrt() * 0).sum().backward()


@case
def anomaly_mode_of_sound_numbers(device):
    x = leaf(device, 3)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        x.exp().sum().backward()
    return x.grad


# --- Functions of one's own ---


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3 * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2 * ctx.factor, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Several(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, (x > y), x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, product, _, total):
        x, y = ctx.saved_tensors
        grads = [0 * x, 0 * y]
        if product is not None:
            grads = [grads[0] + product * y, grads[1] + product * x]
        if total is not None:
            grads = [grad + total for grad in grads]
        return tuple(grads)

    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y = ctx.saved_tensors
        return x_t * y + x * y_t, None, x_t + y_t


@case
def custom_function(device):
    x = leaf(device, 5)
    (first,) = torch.autograd.grad(Cube.apply(x, 2.0).sum(), x, create_graph=True)
    return first, torch.autograd.grad(first.sum(), x)


@case
def custom_function_in_place(device):
    x = leaf(device, 5)
    y = x.exp()
    InPlace.apply(y)
    y.square().sum().backward()
    return x.grad, y, y._version


@case
def custom_function_of_several_results(device):
    x, y = leaf(device, 5), leaf(device, 5)
    product, larger, total = Several.apply(x, y)
    forward = torch.func.jvp(lambda a, b: Several.apply(a, b)[0], (x, y), (y, x))[1]
    mapped = torch.func.vmap(Several.apply)(x, y)
    return larger, torch.autograd.grad(product.sum(), (x, y)), torch.autograd.grad(total.sum(), (x, y)), forward, mapped


@case
def custom_operator(device):
    x = leaf(device, 5)
    twice_sine(x).sum().backward()
    return x.grad


@torch.library.custom_op("torch_lazy_test::twice_sine", mutates_args=())
def twice_sine(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


twice_sine.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].cos(),
                             setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))


# --- What is kept for the backward pass ---


def with_checkpoints(use_reentrant):
    def checkpoints(device):
        model, x = network(device), leaf(device, 5, 4)
        for _ in range(2):
            h = checkpoint(model[:2], x, use_reentrant=use_reentrant)
            checkpoint(model[2:], h, use_reentrant=use_reentrant).square().sum().backward()
        return x.grad, [p.grad for p in model.parameters()]

    checkpoints.__name__ = f"checkpoints_{'re' if use_reentrant else 'not_re'}entrant"
    return checkpoints


case(with_checkpoints(True))
case(with_checkpoints(False))


@case
def reentrant_backward(device):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x.exp() * ctx.x
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                ctx.y.backward(grad)
            return ctx.x.grad

    x = leaf(device, 5)
    for _ in range(3):
        Inner.apply(Inner.apply(x * 0.3)).sum().backward()
    return x.grad


@case
def saved_tensor_hooks(device):
    x, packed = leaf(device, 5), []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.cpu()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor.to(device)):
        y = (x.exp() * x).sin().sum()
    y.backward()
    return x.grad, packed


@case
def saved_on_cpu(device):
    model, x = network(device), leaf(device, 5, 4)
    with torch.autograd.graph.save_on_cpu():
        loss = model(x).square().sum()
    loss.backward()
    return x.grad, [p.grad for p in model.parameters()]


@case
def a_saved_tensor_that_was_written(device):
    x = leaf(device, 5)
    y = x.exp()
    z = y.sin()
    y.add_(1)
    z.sum().backward()


@case
def a_saved_tensor_whose_view_was_written(device):
    x = leaf(device, 6)
    y = x.exp()
    z = y.sin()
    y.view(2, 3)[0].zero_()
    z.sum().backward()


@case
def allowed_writes_of_saved_tensors(device):
    x = leaf(device, 5)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        z = y.sin()
        y.add_(1)
        z.sum().backward()
    return x.grad


@case
def a_graph_is_used_once(device):
    x = leaf(device, 5)
    y = x.exp().sum()
    y.backward()
    y.backward()


@case
def a_leaf_is_not_written(device):
    leaf(device, 5).add_(1)


@case
def a_view_of_a_leaf_is_not_written(device):
    leaf(device, 6).view(2, 3)[0].zero_()


@case
def one_of_many_views_is_not_written(device):
    x = leaf(device, 6) * 1
    x.unbind()[0].zero_()


@case
def no_gradient_is_known(device):
    torch.ones(3, device=device).sum().backward()


@case
def only_scalars_have_one_gradient(device):
    leaf(device, 3).exp().backward()


@case
def an_unused_leaf(device):
    x, y = leaf(device, 3), leaf(device, 3)
    return torch.autograd.grad(x.sum(), (x, y), allow_unused=True)[1], torch.autograd.grad(x.sum(), (x, y))


@case
def a_gradient_of_the_wrong_shape(device):
    x = leaf(device, 3)
    x.exp().backward(torch.ones(4, device=device))


@case
def versions(device):
    x = torch.zeros(4, 4, device=device)
    seen = [x._version]
    for write in (lambda: x.add_(1), lambda: x[0].zero_(), lambda: x.copy_(torch.ones(4, 4)), lambda: torch.add(x, 1, out=x),
                  lambda: x.t().mul_(2), lambda: x.detach().add_(1), lambda: x.data.add_(1), lambda: x.uniform_(),
                  lambda: torch._foreach_add_([x], 1), lambda: x.view(16).index_fill_(0, torch.tensor([1], device=device), 2),
                  lambda: F.dropout(x, 0.5, inplace=True), lambda: F.relu(x, inplace=True), lambda: x.requires_grad_(False),
                  lambda: F.embedding(torch.tensor([1], device=device), x, max_norm=1.0),
                  lambda: F.batch_norm(torch.ones(2, 4, device=device), x[0], x[1], training=True)):
        write()
        seen.append(x._version)
    return seen


@case
def writes_through_views(device):
    x = leaf(device, 4, 4)
    y = x * 2
    y[1:3, ::2] = 7
    y.t()[0].mul_(3)
    y.diagonal().add_(x.sum())
    y.view(16)[5:9].exp_()
    (y * torch.arange(16.0, device=device).view(4, 4)).sum().backward()
    return x.grad, y, y._version, y.is_leaf


# --- Forward mode and torch.autograd.functional ---


@case
def forward_mode(device):
    x, t = torch.randn(5, 4).to(device), torch.randn(5, 4).to(device)
    model = network(device)
    with fwAD.dual_level():
        y = fwAD.unpack_dual(model(fwAD.make_dual(x, t)))
    return y.primal, y.tangent


@case
def forward_mode_of_parameters(device):
    model, x = network(device), torch.randn(5, 4).to(device)
    values = {name: p.detach() for name, p in model.named_parameters()}
    tangents = {name: torch.ones_like(p) for name, p in values.items()}
    return torch.func.jvp(lambda v: torch.func.functional_call(model, v, (x,)), (values,), (tangents,))


@case
def forward_over_reverse(device):
    x, t = leaf(device, 5), torch.randn(5).to(device)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        (slope,) = torch.autograd.grad(F.linear(dual, dual.view(1, 5).expand(3, 5)).sin().sum(), x, create_graph=True)
        return fwAD.unpack_dual(slope).tangent


@case
def functional(device):
    def f(x, y):
        return (x.exp() * y).sum(0)

    inputs = torch.randn(3, 4).to(device), torch.randn(3, 4).to(device)
    v = torch.randn(4).to(device)
    A = torch.autograd.functional
    return (A.jacobian(f, inputs), A.jacobian(f, inputs, vectorize=True), A.hessian(lambda x: (x**3).sum(), inputs[0]),
            A.vjp(f, inputs, v), A.jvp(f, inputs, inputs), A.vhp(lambda x: (x**3).sum(), inputs[0], inputs[1]),
            A.hvp(lambda x: (x**3).sum(), inputs[0], inputs[1]),
            A.jacobian(f, inputs, vectorize=True, strategy="forward-mode"))


@case
def batched_gradients(device):
    x = leaf(device, 5)
    y = x.exp() * x
    return torch.autograd.grad(y, x, torch.eye(5).to(device), is_grads_batched=True)


# --- What is recorded whole, in every dtype that eager takes ---


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128]
# Eager rounds after each part of the double backward, and has kernels of oneDNN for the LSTM in float32.
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}, torch.bfloat16: {"rtol": 0.05, "atol": 0.5},
             torch.float16: {"rtol": 0.05, "atol": 0.2}, torch.complex64: {"rtol": 1e-5, "atol": 1e-4}}

WHOLE = {
    "linear": lambda d, t: (F.linear, [leaf(d, 2, 3, 4, dtype=t), leaf(d, 5, 4, dtype=t), leaf(d, 5, dtype=t)]),
    "linear without bias": lambda d, t: (F.linear, [leaf(d, 3, 4, dtype=t), leaf(d, 5, 4, dtype=t)]),
    "linear of a vector": lambda d, t: (F.linear, [leaf(d, 4, dtype=t), leaf(d, 5, 4, dtype=t), leaf(d, 5, dtype=t)]),
    "bilinear": lambda d, t: (F.bilinear, [leaf(d, 3, 4, dtype=t), leaf(d, 3, 2, dtype=t), leaf(d, 5, 4, 2, dtype=t)]),
    "conv1d": lambda d, t: (F.conv1d, [leaf(d, 2, 4, 9, dtype=t), leaf(d, 6, 4, 3, dtype=t), leaf(d, 6, dtype=t)]),
    "conv2d": lambda d, t: (lambda *a: F.conv2d(*a, stride=2, padding=1, groups=2),
                            [leaf(d, 2, 4, 6, 6, dtype=t), leaf(d, 6, 2, 3, 3, dtype=t), leaf(d, 6, dtype=t)]),
    "conv_transpose2d": lambda d, t: (F.conv_transpose2d, [leaf(d, 2, 4, 3, 3, dtype=t), leaf(d, 4, 2, 3, 3, dtype=t)]),
    "attention": lambda d, t: (F.scaled_dot_product_attention, [leaf(d, 2, 2, 5, 8, dtype=t) for _ in range(3)]),
    "causal attention": lambda d, t: (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                      [leaf(d, 2, 2, 5, 8, dtype=t) for _ in range(3)]),
    "layer_norm": lambda d, t: (lambda x, *a: F.layer_norm(x, (6,), *a),
                                [leaf(d, 4, 6, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "group_norm": lambda d, t: (lambda x, *a: F.group_norm(x, 2, *a),
                                [leaf(d, 4, 6, 3, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "batch_norm": lambda d, t: (lambda x, *a: F.batch_norm(x, None, None, *a, training=True),
                                [leaf(d, 4, 6, 3, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "instance_norm": lambda d, t: (F.instance_norm, [leaf(d, 4, 6, 5, dtype=t)]),
    "rms_norm": lambda d, t: (lambda x, w: F.rms_norm(x, (6,), w), [leaf(d, 4, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "cross_entropy": lambda d, t: (lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2], device=x.device), label_smoothing=0.1),
                                   [leaf(d, 3, 4, dtype=t)]),
    "embedding": lambda d, t: (lambda w: F.embedding(torch.tensor([[1, 0], [2, 1]], device=w.device), w, padding_idx=0),
                               [leaf(d, 3, 4, dtype=t)]),
    "dropout": lambda d, t: (lambda x: F.dropout(x, 0.4), [leaf(d, 3, 4, dtype=t)]),
    "lstm": lambda d, t: (lambda x, *p: torch.lstm(x, (x.new_zeros(1, 2, 3),) * 2, p, True, 1, 0.0, False, False, False)[0],
                          [leaf(d, 4, 2, 5, dtype=t), leaf(d, 12, 5, dtype=t), leaf(d, 12, 3, dtype=t),
                           leaf(d, 12, dtype=t), leaf(d, 12, dtype=t)]),
    "gru": lambda d, t: (lambda x, *p: torch.gru(x, x.new_zeros(1, 2, 3), p, True, 1, 0.0, False, False, False)[0],
                         [leaf(d, 4, 2, 5, dtype=t), leaf(d, 9, 5, dtype=t), leaf(d, 9, 3, dtype=t),
                          leaf(d, 9, dtype=t), leaf(d, 9, dtype=t)]),
    "foreach": lambda d, t: (lambda x, y: torch._foreach_mul([x, y], [y, x])[0], [leaf(d, 3, dtype=t), leaf(d, 3, dtype=t)]),
    "abs": lambda d, t: (torch.abs, [leaf(d, 3, 4, dtype=t)]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_recorded_whole_has_eagers_gradients(name):
    torch_lazy.set_option("compile", "off")
    for dtype in DTYPES:
        def both(device):
            function, leaves = WHOLE[name](device, dtype)
            y = function(*leaves)
            first = torch.autograd.grad(y.abs().square().sum(), leaves, create_graph=True)
            return y, first, torch.autograd.grad(sum(g.abs().square().sum() for g in first), leaves, allow_unused=True)

        assert_like_eager(both, **TOLERANCE.get(dtype, {}))
    torch_lazy.set_option("compile", "async")


# --- Modes of the program and runs of the device ---


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.calls.append(str(function))
        return function(*arguments, **(keywords or {}))


def test_a_mode_sees_calls_and_not_their_run(compile_mode):
    for scale in (torch.tensor(1.5), torch.tensor(2.5)):
        x = torch.ones(3, device="lazy").add_(1, alpha=2) * scale
        with Log() as log:
            torch.lazy.synchronize()
            y = x + scale
            assert y.data_ptr() != 0
        assert log.calls == ["aten.add.Tensor"]
        assert torch.equal(y.cpu(), scale.expand(3) * 4)


def test_a_transform_does_not_meet_pending_calls(compile_mode):
    x = torch.ones(3, device="lazy") * 2

    def f(y):
        torch.lazy.synchronize()
        return (y * x).sum()

    assert torch.func.vmap(torch.func.grad(f))(torch.ones(4, 3, device="lazy")).tolist() == [[2.0] * 3] * 4
