# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps from the forward pass: checkpoints, saved tensors and their versions, views, and its errors."""

import functools
import threading

import pytest
import torch
import torch.nn.functional as F
from outcomes import Cases, assert_like_eager, leaf, network
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

case = Cases()


@pytest.mark.parametrize("function,raises", case)
def test_like_eager(compile_mode, function, raises):
    assert_like_eager(function, raises=raises)


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
def nested_checkpoints(device):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.Tanh()).to(device), leaf(device, 5, 4)

    def inner(y):
        return checkpoint(model, y, use_reentrant=False)

    checkpoint(lambda y: inner(inner(y)).sin(), x, use_reentrant=False).sum().backward()
    return x.grad, [p.grad for p in model.parameters()]


@case
def selective_checkpoint(device):
    model, x = network(device), leaf(device, 5, 4)
    contexts = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    checkpoint(model, x, use_reentrant=False, context_fn=contexts).sum().backward()
    return x.grad, [p.grad for p in model.parameters()]


@case.raises
def a_checkpoint_that_does_other_things_the_second_time(device):
    times = []

    def changing(y):
        times.append(1)
        return (y if len(times) == 1 else y[:2]).sin()

    checkpoint(changing, leaf(device, 5), use_reentrant=False).sum().backward()


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


@case.raises
def a_saved_tensor_that_was_written(device):
    x = leaf(device, 5)
    y = x.exp()
    z = y.sin()
    y.add_(1)
    z.sum().backward()


@case.raises
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
def a_graph_is_kept(device):
    x = leaf(device, 5)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward(inputs=[x])
    return x.grad


@case
def threads_that_share_a_leaf(device):
    x = leaf(device, 4)
    losses = [(x * k).exp().sum() for k in range(4)]
    team = [threading.Thread(target=loss.backward) for loss in losses]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join(timeout=120)
    return x.grad


@case
def gradients_between_devices(device):
    x = torch.randn(5).requires_grad_()
    ((x.to(device) * 2).cpu().exp().to(device).half().double() * 3).sum().backward()
    return x.grad, x.grad.device


@case
def sparse_gradients(device):
    table = leaf(device, 6, 3)
    optimizer = torch.optim.SparseAdam([table], lr=0.1)
    for _ in range(2):
        F.embedding(torch.tensor([1, 2, 1], device=device), table, sparse=True).sum().backward()
    optimizer.step()
    return table, table.grad.is_sparse, table.grad.to_dense()


@case
def layouts_of_gradients(device):
    image = torch.randn(2, 3, 4, 4).to(device).contiguous(memory_format=torch.channels_last).requires_grad_()
    F.conv2d(image, torch.randn(5, 3, 3, 3).to(device)).sum().backward()
    weight = torch.randn(3, 4).to(device).t().requires_grad_()
    for _ in range(2):
        (torch.randn(2, 4).to(device) @ weight).sum().backward()
    return image.grad, image.grad.stride(), weight.grad, weight.grad.stride()


@case
def layers_without_features(device):
    torch.manual_seed(2)
    model, x = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10]).to(device), leaf(device, 6, 8)
    model(x, torch.tensor([0, 5, 12, 3, 19, 7]).to(device)).loss.backward()
    return x.grad, [p.grad for p in model.parameters()]


@case.raises
def a_graph_is_used_once(device):
    x = leaf(device, 5)
    y = x.exp().sum()
    y.backward()
    y.backward()


@case.raises
def a_leaf_is_not_written(device):
    leaf(device, 5).add_(1)


@case.raises
def a_view_of_a_leaf_is_not_written(device):
    leaf(device, 6).view(2, 3)[0].zero_()


@case.raises
def one_of_many_views_is_not_written(device):
    x = leaf(device, 6) * 1
    x.unbind()[0].zero_()


@case.raises
def no_gradient_is_known(device):
    torch.ones(3, device=device).sum().backward()


@case.raises
def only_scalars_have_one_gradient(device):
    leaf(device, 3).exp().backward()


@case.raises
def an_unused_leaf(device):
    x, y = leaf(device, 3), leaf(device, 3)
    return torch.autograd.grad(x.sum(), (x, y), allow_unused=True)[1], torch.autograd.grad(x.sum(), (x, y))


@case.raises
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
