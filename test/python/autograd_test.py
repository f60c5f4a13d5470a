# SPDX-License-Identifier: Apache-2.0
"""Autograd on the device: whatever a program asks of it, the answer is eager's, and so is the error."""

import pytest
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn.functional as F
from outcomes import Cases, assert_like_eager, leaf, network
from torch import nn

case = Cases()


@pytest.mark.parametrize("function,raises", case)
def test_like_eager(compile_mode, function, raises):
    assert_like_eager(function, raises=raises)


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


@case.raises
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


@case.raises
def an_inference_tensor_cannot_be_saved(device):
    x = leaf(device, 5)
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    return x * y


@case.raises
def an_inference_tensor_has_no_version(device):
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    return y._version


@case.raises
def an_inference_tensor_is_not_updated_outside(device):
    with torch.inference_mode():
        y = torch.ones(5, device=device)
    y.add_(1)


@case.raises
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
    y = x * 3
    InPlace.apply(y)
    y.square().sum().backward()
    return x.grad, y, y._version


@case
def custom_function_of_several_results(device):
    x, y = leaf(device, 5), leaf(device, 5)
    product, larger, total = Several.apply(x, y)
    forward = torch.func.jvp(lambda a, b: Several.apply(a, b)[0], (x, y), (y, x))[1]
    mapped = torch.func.vmap(Several.apply)(x, y)
    return (larger, torch.autograd.grad(product.sum(), (x, y), retain_graph=True),
            torch.autograd.grad(total.sum(), (x, y)),
            forward, mapped)


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


def test_gradients_without_elements_have_eagers_strides():
    def gradients(device):
        x, weight = leaf(device, 3, 4, 0), leaf(device, 5, 0)
        return torch.autograd.grad(F.linear(x, weight).sum(), (x, weight))

    assert_like_eager(gradients, check_stride=True)
