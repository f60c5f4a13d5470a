# SPDX-License-Identifier: Apache-2.0
"""torch.func's transforms on the device, on thirty functions, against eager; and derivatives against differences."""

import pytest
import torch
import torch.nn.functional as F
import torch_lazy
from outcomes import assert_like_eager
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import (functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state,
                        vjp, vmap)

WEIGHT = torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4)
CLASSES = torch.tensor([2, 0, 1])


def on(x, constant):
    return constant.to(x.device)


# Functions of one tensor of 3 by 4 numbers between 0.2 and 2.
FUNCTIONS = {
    "add": lambda x: x + x.flip(0), "mul": lambda x: x * x.roll(1), "div": lambda x: 1 / x, "pow": lambda x: x**2.5,
    "exp": torch.exp, "log": torch.log, "sin": torch.sin, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "sqrt": torch.sqrt,
    "atan2": lambda x: torch.atan2(x, x.flip(1)), "clamp": lambda x: x.clamp(0.5, 1.5),
    "where": lambda x: torch.where(x > 1, x, x**2),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3), "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(1, keepdim=True),
    "var": lambda x: x.var(1), "prod": lambda x: x.prod(1), "amax": lambda x: x.amax(1), "cumsum": lambda x: x.cumsum(1),
    "logsumexp": lambda x: x.logsumexp(1), "softmax": lambda x: x.softmax(1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "mm": lambda x: x @ x.t(), "linear": lambda x: F.linear(x, on(x, WEIGHT), on(x, WEIGHT[:, 0])),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, on(x, WEIGHT)), "index": lambda x: x[on(x, CLASSES)],
    "gather": lambda x: x.gather(1, on(x, CLASSES)[:, None]), "scatter": lambda x: x.scatter(0, on(x, CLASSES)[None], 2.0),
    "cat": lambda x: torch.cat([x, x.exp()], 1), "gelu": F.gelu, "layer_norm": lambda x: F.layer_norm(x, (4,), on(x, WEIGHT[0])),
    "group_norm": lambda x: F.group_norm(x, 2), "cross_entropy": lambda x: F.cross_entropy(x, on(x, CLASSES)),
    "conv1d": lambda x: F.conv1d(x[None], on(x, WEIGHT[:, :3, None])), "embedding": lambda x: F.embedding(on(x, CLASSES), x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None] * 2, x[None] + 1),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 2), "det": lambda x: torch.linalg.det(x[:, :3] @ x[:, :3].t()),
    "solve": lambda x: torch.linalg.solve(x[:, :3] + 3 * torch.eye(3, dtype=x.dtype, device=x.device), x[:, 3]),
}

REFUSED_BY_SOME = "attention"  # PyTorch 2.15 has no forward mode of it, and no second derivative: eager refuses, and so must we

TRANSFORMS = {
    "grad": lambda f, x: grad(lambda y: f(y).square().sum())(x),
    "vjp": lambda f, x: vjp(f, x)[1](torch.ones_like(f(x))),
    "jvp": lambda f, x: jvp(f, (x,), (x.flip(0),)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(lambda y: f(y).square().sum())(x),
    "vmap": lambda f, x: vmap(f)(torch.stack([x, x.flip(0), x + 0.25])),
    "vmap of grad": lambda f, x: vmap(grad(lambda y: f(y).square().sum()))(torch.stack([x, x.flip(0)])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_thirty_functions_are_eagers(transform):
    """Compiled where that adds something: the kernels of hundreds of traces take their time."""
    torch_lazy.set_option("compile", "sync" if transform in ("jvp", "vmap of grad") else "off")

    assert len(FUNCTIONS) >= 30
    for name, function in FUNCTIONS.items():

        def result(device, function=function):
            x = (0.2 + 1.8 * torch.rand(3, 4, dtype=torch.float64)).to(device)
            return TRANSFORMS[transform](function, x)

        assert_like_eager(result, raises=None if name == REFUSED_BY_SOME else False, rtol=1e-9, atol=1e-9)
    torch_lazy.set_option("compile", "async")


def test_a_linearized_function_is_eagers(compile_mode):
    def tangent(device):
        x = torch.rand(3, 4, dtype=torch.float64).to(device)
        return linearize(FUNCTIONS["linear"], x)[1](x)

    assert_like_eager(tangent, rtol=1e-9, atol=1e-9)


def network(device):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 2)).double().to(device)


def test_gradients_per_sample_are_eagers(compile_mode):
    def per_sample(device):
        model, x = network(device), torch.randn(5, 4, dtype=torch.float64).to(device)
        parameters = {name: p.detach() for name, p in model.named_parameters()}

        def loss(parameters, sample):
            return functional_call(model, parameters, (sample[None],)).square().sum()

        return vmap(grad_and_value(loss), in_dims=(None, 0))(parameters, x)

    assert_like_eager(per_sample, rtol=1e-9, atol=1e-9)


def test_an_ensemble_is_eagers(compile_mode):
    def ensemble(device):
        models = [network(device) for _ in range(3)]
        parameters, buffers = stack_module_state(models)
        x = torch.randn(5, 4, dtype=torch.float64).to(device)
        return vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(parameters, buffers)

    assert_like_eager(ensemble, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_vmap_draws_eagers_numbers(compile_mode, randomness):
    def drawn(device):
        x = torch.ones(3, 7).to(device)
        return (vmap(lambda y: F.dropout(y, 0.5) + torch.rand_like(y) + torch.randn(7, device=device), randomness=randomness)(x),
                torch.rand(2, device=device))

    assert_like_eager(drawn, rtol=0, atol=0)


def test_vmap_refuses_random_calls_by_default():
    assert_like_eager(lambda device: vmap(lambda y: y + torch.rand_like(y))(torch.ones(3, 2).to(device)), raises=True)


CHECKS = {
    "reverse mode": lambda f, x: gradcheck(f, x, check_batched_grad=True, fast_mode=True),
    "forward mode": lambda f, x: gradcheck(f, x, check_forward_ad=True, fast_mode=True),
    "twice": lambda f, x: gradgradcheck(f, x, fast_mode=True),
    "forward over reverse": lambda f, x: gradgradcheck(f, x, check_fwd_over_rev=True, fast_mode=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_differences(name):
    torch_lazy.set_option("compile", "off")
    for check in CHECKS.values():

        def result(device, check=check):
            x = (0.2 + 1.8 * torch.rand(3, 4, dtype=torch.float64)).to(device).requires_grad_()
            return check(FUNCTIONS[name], x)

        assert_like_eager(result, raises=None if name == REFUSED_BY_SOME else False)
    torch_lazy.set_option("compile", "async")
