# SPDX-License-Identifier: Apache-2.0
"""Calls that pass autograd by (device/no_grad.h): what it would have done for them all the same.

Each is made in a loop: at first it is unknown, then the one that is expected next.
"""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

STEPS = 6


def on_both(function):
    """What the function of a device returns at each step, on the CPU and on ours."""
    return [[function(device) for _ in range(STEPS)] for device in ("cpu", "lazy")]


def values(device):
    return torch.tensor([1.0, 2.0, 3.0], device=device)


@torch.no_grad()
def _versions(device):
    x, y = values(device), values(device).requires_grad_()
    seen = [x._version]
    for call in (lambda: x.mul_(2.0), lambda: x.add_(y), lambda: x.addcmul_(x, y), lambda: y.sub_(x), lambda: x.zero_(),
                 lambda: torch._foreach_mul_([x, y], 2.0), lambda: torch._foreach_add_([x, y], [y, x])):
        call()
        seen += [x._version, y._version]
    return seen, x.tolist(), y.tolist()


def test_versions_are_counted():
    expected, ours = on_both(_versions)
    assert ours == expected
    assert len(set(expected[0][0])) > 5


def _modified(device):
    x = values(device).requires_grad_()
    saved = x * 2.0
    product = saved * saved
    with torch.no_grad():
        saved.mul_(3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    return saved.tolist()


def test_modified_saved_tensors_are_noticed():
    expected, ours = on_both(_modified)
    assert ours == expected


@torch.no_grad()
def _tangents(device):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(values(device), torch.ones(3, device=device))
        y = x.sin().mul(x).add(1.0)
        y.mul_(2.0)
        return forward_ad.unpack_dual(y).tangent.cpu(), y.cpu()


def test_tangents_are_carried():
    expected, ours = on_both(_tangents)
    torch.testing.assert_close(ours, expected)


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def _seen_by_mode(device):
    x = values(device)
    with Names() as mode:
        y = x.mul(2.0).sin_()
        y.add_(x)
    return mode.names, y.cpu()


def test_modes_see_the_calls():
    expected, ours = on_both(_seen_by_mode)
    torch.testing.assert_close([values for _, values in ours], [values for _, values in expected])
    assert [names for names, _ in ours] == [names for names, _ in expected]


def _inference(device):
    with torch.inference_mode():
        x = values(device)
        x.mul_(2.0)
    with torch.no_grad():
        y = values(device).requires_grad_()
        y.add_(x)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            x.add_(y)
    return x.tolist(), y.tolist()


def test_inference_tensors_are_not_written():
    expected, ours = on_both(_inference)
    assert ours == expected


def _gradients(device):
    x = values(device).requires_grad_()
    with torch.no_grad():
        y = x.mul(2.0)
    z = (x.mul(2.0) * y).sum()
    z.backward()
    with torch.no_grad():
        x.sub_(x.grad)
    return y.requires_grad, z.requires_grad, x.grad.tolist(), x.tolist()


def test_gradients_are_recorded_where_they_are_wanted():
    expected, ours = on_both(_gradients)
    assert ours == expected


@torch.no_grad()
def _transformed(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    batched = torch.func.vmap(lambda row: row.mul(2.0).add(row))(x)
    value, tangent = torch.func.jvp(lambda t: t.sin().mul(t), (x,), (torch.ones_like(x),))
    gradient = torch.func.grad(lambda t: t.mul(t).sum())(x)
    turned = torch.view_as_complex(torch.ones(3, 2, device=device)).conj().mul(2.0)
    return [t.cpu() for t in (batched, value, tangent, gradient)], turned.tolist()


def test_transforms_see_the_calls():
    expected, ours = on_both(_transformed)
    torch.testing.assert_close([t for t, _ in ours], [t for t, _ in expected])
    assert [t for _, t in ours] == [t for _, t in expected]


def _without_need(device):
    """Gradients are recorded, and no argument asks for one."""
    x, index = values(device), torch.tensor([2, 0], device=device)
    versions = []
    for call in (lambda: x.mul_(2.0), lambda: x.add_(x), lambda: x[index].neg(), lambda: x[:1].sub_(x[1:2]), lambda: x.zero_()):
        call()
        versions.append(x._version)
    y = values(device).add(1.0)
    return versions, x.tolist(), y.tolist(), y.requires_grad, y.is_leaf


def test_calls_whose_arguments_need_no_gradient():
    expected, ours = on_both(_without_need)
    assert ours == expected


def _views_of_a_leaf(device):
    leaf = values(device).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        leaf[:2].mul_(2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        leaf.add_(1.0)
    base = values(device)
    view = base[:2]
    base.mul_(leaf)  # the view has a gradient from now on
    tripled = view.mul(3.0)
    tripled.sum().backward()
    index = torch.tensor([2, 0, 2], device=device)
    picked, = torch.autograd.grad(leaf[index].square().sum(), leaf)
    return tripled.requires_grad, leaf.grad.tolist(), picked.tolist(), tripled.tolist()


def test_views_may_need_the_gradient_of_their_base():
    expected, ours = on_both(_views_of_a_leaf)
    assert ours == expected


def _tangents_without_need(device):
    with forward_ad.dual_level():
        base = values(device)
        view = base[:2]
        base.copy_(forward_ad.make_dual(values(device), torch.ones(3, device=device)))
        y = view.mul(2.0).add(1.0)
        return forward_ad.unpack_dual(y).tangent.tolist(), y.tolist()


def test_tangents_are_carried_where_gradients_are_recorded():
    expected, ours = on_both(_tangents_without_need)
    assert ours == expected
