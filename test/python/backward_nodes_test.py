# SPDX-License-Identifier: Apache-2.0
"""Nodes of a backward pass that run one after the other without the engine between them: which do, and that nobody can tell."""

import threading

import pytest
import torch
import torch_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

LINKS = 10  # of a chain, two nodes each


def chain(x, links=LINKS):
    for _ in range(links):
        x = torch.tanh(x * 2)
    return x


def leaf():
    return torch.linspace(-1, 1, 6).to("lazy").requires_grad_()


def gradient_of_chain(links=LINKS):
    x = torch.linspace(-1, 1, 6).requires_grad_()
    return torch.autograd.grad(chain(x, links).sum(), x)[0]


def in_a_row(run):
    before = torch_lazy.metrics()["nodes_in_a_row"]
    run()
    return torch_lazy.metrics()["nodes_in_a_row"] - before


def test_all_but_the_first():
    x = leaf()
    y = chain(x).sum()
    assert in_a_row(y.backward) == 2 * LINKS + 1  # sum's comes after the engine's own root; the last is the leaf's
    torch.testing.assert_close(x.grad.cpu(), gradient_of_chain())


def test_gradients_asked_for():
    x = leaf()
    y = chain(x).sum()
    found = []
    assert in_a_row(lambda: found.extend(torch.autograd.grad(y, x))) == 2 * LINKS + 1
    torch.testing.assert_close(found[0].cpu(), gradient_of_chain())


def test_twice_differentiable():
    x = leaf()
    first, = torch.autograd.grad(chain(x, 2).sum(), x, create_graph=True)
    assert in_a_row(first.sum().backward) == 9
    c = torch.linspace(-1, 1, 6).requires_grad_()
    torch.autograd.grad(chain(c, 2).sum(), c, create_graph=True)[0].sum().backward()
    torch.testing.assert_close(x.grad.cpu(), c.grad)


def test_a_hook_knows_its_node():
    x, seen = leaf(), []
    y = chain(x)
    y.register_hook(lambda g: seen.append((torch._C._current_autograd_node().name(), torch.is_grad_enabled())))
    z = chain(y).sum()
    # The hooked tanh's is the engine's, and so is what comes after it.
    assert in_a_row(z.backward) == 4 * LINKS + 1 - 2
    assert seen == [("TanhBackward0", False)]


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_hooks_of_nodes(register):
    x, seen = leaf(), []
    y = chain(x)
    getattr(y.grad_fn, register)(lambda *gradients: seen.append(torch._C._current_autograd_node().name()))
    assert in_a_row(chain(y).sum().backward) == 4 * LINKS + 1 - 2
    assert seen == ["TanhBackward0"]


def test_hooks_of_leaves_and_kept_gradients():
    x, seen = leaf(), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(torch._C._current_autograd_node().name()))
    y = chain(x)
    y.retain_grad()
    assert in_a_row(y.sum().backward) == 2 * LINKS + 1 - 3  # y's, what comes after it, and the leaf's
    assert seen == ["torch::autograd::AccumulateGrad"]
    torch.testing.assert_close(y.grad.cpu(), torch.ones(6))


class LeavesGradModeOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        torch.set_grad_enabled(True)
        return g * 1


class Notes(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        Notes.seen.append((torch.is_grad_enabled(), g.requires_grad))
        return g * 1


def test_a_function_that_leaves_grad_mode_on():
    x = leaf()
    y = chain(LeavesGradModeOn.apply(chain(Notes.apply(x * 1))))
    Notes.seen.clear()
    y.sum().backward()
    assert Notes.seen == [(False, False)]


def test_a_hook_of_saved_tensors_that_leaves_grad_mode_on():
    def unpack(x):
        torch.set_grad_enabled(True)
        return x

    x = leaf()
    y = chain(Notes.apply(x * 1))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = torch.tanh(y)
    Notes.seen.clear()
    y.sum().backward()
    assert Notes.seen == [(False, False)]


@pytest.mark.skipif(not hasattr(torch.autograd, "enforce_grad_layout_policy"), reason="the mode is of PyTorch 2.13")
@pytest.mark.parametrize("device", ["lazy", "cpu"])
def test_a_hook_of_saved_tensors_that_leaves_the_layout_of_gradients_changed(device):
    def unpack(x):
        torch._C._set_grad_layout_enforcement_enabled(False)
        return x

    x = torch.ones(2, 3, device=device).t().requires_grad_()
    y = x.contiguous() * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = torch.tanh(y)
    try:
        torch.tanh(y * 1).sum().backward()
    finally:
        torch._C._set_grad_layout_enforcement_enabled(True)
    assert x.grad.stride() == x.stride()


@pytest.mark.skipif(not hasattr(torch.autograd, "enforce_grad_layout_policy"), reason="the mode is of PyTorch 2.13")
def test_the_layout_of_gradients_is_that_of_the_pass():
    x = torch.ones(2, 3, device="lazy").t().requires_grad_()
    for enforced in (True, True, False, False, True):
        x.grad = None
        with torch.autograd.enforce_grad_layout_policy(enforced):
            (x.contiguous() * 2).sum().backward()
        assert x.grad.is_contiguous() != enforced
        assert x.grad.tolist() == [[2, 2]] * 3


def test_anomaly_detection_sees_each_node():
    x = leaf()
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        y = chain(x).sum()
        assert in_a_row(y.backward) == 0
        with pytest.raises(RuntimeError, match="SqrtBackward0.*nan"), pytest.warns(UserWarning, match="SqrtBackward0"):
            (torch.sqrt(leaf().detach().mul(0).requires_grad_()) * 0).sum().backward()


def test_a_profiler_sees_each_node():
    y = chain(leaf()).sum()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert in_a_row(y.backward) == 0
    names = [event.name for event in profile.events()]
    assert names.count("autograd::engine::evaluate_function: TanhBackward0") == LINKS


def test_a_dispatch_mode_sees_each_node():
    class Nodes(TorchDispatchMode):
        names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            node = torch._C._current_autograd_node()
            self.names.append(None if node is None else node.name())
            return func(*args, **(kwargs or {}))

    y = chain(leaf()).sum()
    with Nodes() as nodes:
        assert in_a_row(y.backward) == 0
    assert nodes.names.count("MulBackward0") == LINKS


def test_an_error_ends_the_pass_and_no_other():
    x = leaf()
    h = chain(x)
    kept = torch.exp(h)
    y = chain(kept).sum()
    kept.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert x.grad is None
    y = chain(x).sum()
    assert in_a_row(y.backward) == 2 * LINKS + 1
    torch.testing.assert_close(x.grad.cpu(), gradient_of_chain())


def nodes_of(y):
    nodes, left = set(), [y.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            left.extend(next_node for next_node, _ in node.next_functions)
    return nodes


def same(graph, *shapes, all_in_a_row=True):
    """`graph(leaves)` has eager's gradients, and all nodes but the first run one after the other."""
    def gradients(device):
        torch.manual_seed(0)
        leaves = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
        y = graph(leaves)
        nodes = len(nodes_of(y))
        count = in_a_row(y.backward)
        if device == "lazy" and all_in_a_row:
            assert count == nodes - 1
        return [leaf.grad.cpu() for leaf in leaves]

    for found, eager in zip(gradients("lazy"), gradients("cpu"), strict=True):
        torch.testing.assert_close(found, eager, check_stride=not eager.is_sparse)


def test_gradients_that_do_not_fit():
    same(lambda x: (torch.tanh(x[0] + x[1]) * x[2]).sum(), (4, 3), (3,), (1, 1))  # sums over what was broadcast
    same(lambda x: (x[0].to(torch.float16) * 2).sum(), (4, 3))


def test_outputs_that_nothing_comes_from():
    same(lambda x: (x[0].split(2)[1] * x[1]).sum(), (6, 3), (2, 3))


def test_nodes_that_many_paths_lead_to():
    def graph(x):
        h = x[0] * 2
        for _ in range(5):
            h = torch.tanh(h @ x[1] + h)
        return h.sum()

    same(graph, (4, 3), (3, 3))


@pytest.mark.parametrize("hooked", ["first", "middle", "last"])
def test_paths_that_meet_where_one_is_the_engines(hooked):
    seen = []

    def graph(x):
        h = x[0] * 2
        paths = {"first": h * 3, "middle": torch.tanh(h), "last": h + 1}
        paths[hooked].register_hook(lambda g: seen.append(g.device.type))
        return (paths["first"] + paths["middle"] * Notes.apply(h) + paths["last"]).sum()

    same(graph, (4, 3), all_in_a_row=False)
    assert seen == ["lazy", "cpu"]


def test_paths_over_the_cpu():
    def graph(x):
        h = torch.tanh(x[0] * 2)
        on_cpu = torch.sigmoid(h.cpu() * 3).to(h.device)
        return (on_cpu * h).sum()

    same(graph, (4, 3))


def test_sparse_gradients():
    def graph(x):
        rows = torch.tensor([1, 1, 3]).to(x[0].device)
        return (torch.nn.functional.embedding(rows, x[0], sparse=True) * 2).sum()

    same(graph, (5, 3))
    same(lambda x: graph(x) + (x[0] * x[0]).sum(), (5, 3))  # a sparse and a dense one in one sum


def test_hooks_of_leaves_come_in_eagers_order():
    def order(device):
        seen = []
        leaves = [torch.ones(3).to(device).requires_grad_() for _ in range(6)]
        for index, x in enumerate(leaves):
            if index != 2:
                x.register_post_accumulate_grad_hook(lambda _, index=index: seen.append(index))
        torch.stack(leaves).mul(2).sum().backward()
        return seen

    assert order("lazy") == order("cpu")


def test_kept_graphs():
    x = leaf()
    y = chain(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad.cpu(), 2 * gradient_of_chain())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()

def test_passes_within_a_pass():
    x = leaf()
    y = chain(checkpoint(chain, chain(x), use_reentrant=True)).sum()
    assert in_a_row(y.backward) == 3 * 2 * LINKS  # and both leaves, but for the first node of the inner pass and of what follows it
    torch.testing.assert_close(x.grad.cpu(), gradient_of_chain(3 * LINKS))


def test_threads():
    found = []

    def run():
        x = leaf()
        for _ in range(20):
            x.grad = None
            chain(x).sum().backward()
        found.append(x.grad.cpu())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for gradient in found:
        torch.testing.assert_close(gradient, gradient_of_chain())
