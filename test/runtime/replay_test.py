# SPDX-License-Identifier: Apache-2.0
"""Replayed functions do what their calls would have done, do not run their Python code, and are refused where that cannot be."""

import pytest
import torch
import torch_lazy
from torch import nn
from torch_lazy import make_replayable

from replaying import compile_mode, replays  # noqa: F401


class Counted:
    """A function that counts how often its code runs."""

    def __init__(self, function):
        self.function, self.runs = function, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.function(*args, **kwargs)


def numbers(*sizes, seed=0):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def same(result, expected):
    torch.testing.assert_close(result.cpu(), expected)
    assert result.stride() == expected.stride()


def expect_replayed(function, calls, *, code_runs, to_cpu=lambda value: value):
    """Calls the function with each of the arguments, on the device and on the CPU."""
    counted = Counted(function)
    replayed = make_replayable(counted)
    before = replays()
    for arguments in calls:
        on_device = [a.to("lazy") if isinstance(a, torch.Tensor) else a for a in arguments]
        result, expected = replayed(*on_device), function(*arguments)
        for r, e in zip(result if isinstance(result, tuple) else [result], expected if isinstance(expected, tuple) else [expected], strict=True):
            same(r, e)
        for a, b in zip(on_device, arguments, strict=True):
            if isinstance(b, torch.Tensor):
                same(a, b)
    assert counted.runs == code_runs
    assert replays() - before == len(calls) - code_runs


def warm(function, *arguments):
    """Learns the shapes, so that no call is cut inside."""
    for _ in range(2):
        function(*[a.to("lazy") if isinstance(a, torch.Tensor) else a for a in arguments])
        torch_lazy.sync()


def test_steps_that_fit_only_once_end_where_they_begin_again():
    """Not where a trace is full."""
    torch_lazy.set_option("max_trace_bytes", "100000")
    try:
        weight = torch.zeros(4096, device="lazy")
        forward = make_replayable(lambda x: (x - weight).square() * 2)
        update = make_replayable(lambda y: weight.add_(y * 0.25))
        for step in range(12):
            if step == 7:
                torch_lazy.reset_metrics()
            update(forward(torch.ones(4096, device="lazy")))
        assert torch_lazy.metrics()["cuts"] == {"step": 5}
        assert torch_lazy.metrics()["trace_misses"] == 0
        expected = torch.zeros(())
        for _ in range(12):
            expected = expected + 0.5 * (1 - expected).square()
        torch.testing.assert_close(weight.cpu(), expected.expand(4096))
    finally:
        torch_lazy.set_option("max_trace_bytes", "0")


def test_a_function_of_tensors():
    def function(x, y):
        return (x * y + 1).tanh(), x.sum(0)

    warm(function, numbers(3, 4), numbers(4))
    expect_replayed(function, [(numbers(3, 4, seed=k), numbers(4, seed=k + 9)) for k in range(6)], code_runs=2)


def test_every_size_is_noted_for_itself():
    def function(x):
        return x.softmax(-1) @ x.mT

    warm(function, numbers(3, 4))
    expect_replayed(function, [(numbers(n, 4, seed=k),) for k, n in enumerate([3, 3, 5, 3, 5, 5, 3])], code_runs=4)


def test_arguments_written_in_place():
    def function(x, y):
        x.mul_(2).add_(y)
        return x.relu()

    warm(function, numbers(5), numbers(5))
    expect_replayed(function, [(numbers(5, seed=k), numbers(5, seed=k + 9)) for k in range(5)], code_runs=2)


def test_a_result_that_is_an_argument_or_lies_on_one():
    def function(x):
        return x.add_(1), x[1:], x.t()

    warm(function, numbers(3, 3))
    expect_replayed(function, [(numbers(3, 3, seed=k),) for k in range(5)], code_runs=2)
    replayed, x = make_replayable(function), numbers(3, 3).to("lazy")
    for _ in range(4):
        result, part, _ = replayed(x)
        assert result is x or result.data_ptr() == x.data_ptr()
        part.zero_()
        same(x[1:], torch.zeros(2, 3))


def test_results_that_share_memory():
    def function(x):
        y = x * 2
        return y, y[1:]

    warm(function, numbers(4))
    replayed = make_replayable(function)
    for k in range(5):
        x = numbers(4, seed=k)
        y, part = replayed(x.to("lazy"))
        part.zero_()
        same(y, torch.cat([x[:1] * 2, torch.zeros(3)]))


def test_two_arguments_on_one_storage_are_another_case():
    def function(x, y):
        x.add_(1)
        return y * 2

    warm(function, numbers(4), numbers(4))
    replayed = make_replayable(function)
    for k in range(4):
        replayed(numbers(4).to("lazy"), numbers(4).to("lazy"))
    x = numbers(4)
    on_device = x.to("lazy")
    same(replayed(on_device, on_device), (x + 1) * 2)


def test_numbers_that_are_arguments():
    def function(x, rate):
        return x.mul(rate)

    warm(function, numbers(4), 0.5)
    expect_replayed(function, [(numbers(4, seed=k), 0.5 + k) for k in range(6)], code_runs=2)


def test_a_number_that_begins_to_change():
    def function(x, rate):
        return x.mul(rate)

    warm(function, numbers(4), 0.5)
    expect_replayed(function, [(numbers(4, seed=k), 0.5 if k < 4 else k / 7) for k in range(8)], code_runs=3)


def test_a_number_that_changes_and_is_no_argument():
    state = {"rate": 0.0}

    def function(x):
        state["rate"] += 0.5
        return x.mul(state["rate"])

    replayed = make_replayable(function)
    x = numbers(4)
    for _ in range(2):
        replayed(x.to("lazy"))
    for k in range(4):
        before = state["rate"]
        same(replayed(x.to("lazy")), x * (before + 0.5))
    assert "aten::mul.Tensor, was" in torch_lazy.explain() or "aten::mul.Scalar, was" in torch_lazy.explain()
    assert "and is no argument" in torch_lazy.explain()


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda x: x * x.sum().item(), "it does at once: item"),
        (lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=x.device), "it does at once: copy from host"),
        (lambda x: x[x > 0], "it does at once: aten::index.Tensor"),
    ],
    ids=["value", "host", "shape"],
)
def test_refused(function, reason):
    replayed = make_replayable(function)
    for k in range(12):
        x = numbers(3, seed=k)
        same(replayed(x.to("lazy")), function(x))
    (told,) = {line for line in torch_lazy.explain().splitlines() if line.startswith("not replayed:") and reason in line}


def test_captured_tensors():
    weight = numbers(4).to("lazy")

    def function(x):
        return x * weight

    warm(function, numbers(4))
    counted = Counted(function)
    replayed = make_replayable(counted)
    for k in range(5):
        weight.add_(1)
        x = numbers(4, seed=k)
        same(replayed(x.to("lazy")), x * weight.cpu())
    assert counted.runs == 2
    weight.data = numbers(4, seed=77).to("lazy")  # another storage: noted anew
    for k in range(4):
        x = numbers(4, seed=k)
        same(replayed(x.to("lazy")), x * weight.cpu())


def test_random_numbers():
    def function(x):
        return torch.nn.functional.dropout(x, 0.5)

    warm(function, numbers(50))
    counted = Counted(function)
    replayed = make_replayable(counted)
    torch.manual_seed(3)
    results = [replayed(numbers(50).to("lazy")).cpu() for _ in range(5)]
    torch.manual_seed(3)
    for result in results:
        torch.testing.assert_close(result, function(numbers(50)))
    assert counted.runs == 2


def test_a_whole_training_step():
    def train(device, wrap):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        counted = Counted(step)
        step = wrap(counted)
        losses = [step(numbers(5, 4, seed=k).to(device), numbers(5, 2, seed=k + 50).to(device)).item() for k in range(12)]
        return losses, counted.runs, [p.grad.cpu() for p in net.parameters()]

    expected, _, expected_grads = train("cpu", lambda step: step)
    losses, runs, grads = train("lazy", make_replayable)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected))  # as float32, which they were
    torch.testing.assert_close(grads, expected_grads)
    assert runs <= 5


def traces():
    return torch_lazy.metrics()["traces_run"]


def steps_between_calls(functions, device, reads=lambda k: True):
    """What some steps compute that call two functions among calls of their own, one of them twice."""
    first, second = functions
    weight, held = numbers(3, 4, seed=99).to(device), []
    for k in range(9):
        x = numbers(3, 4, seed=k).to(device)
        y = first(x * 2, weight)
        z = second(y + 1)
        w = first(z, y)
        weight.mul_(0.5).add_(w)
        held.append(weight + z)
        if reads(k):
            held[-1] = held[-1].cpu()
    return [value.cpu() for value in held]


def two_functions():
    def first(x, y):
        y.add_(x)
        return (x * y).tanh().sum(0, keepdim=True).expand(3, 4).contiguous()

    return Counted(first), Counted(lambda x: (x.relu() + x.sigmoid()).softmax(-1))


def test_a_replay_joins_the_calls_around_it():
    steps_between_calls(two_functions(), "lazy")  # learns shapes
    functions = two_functions()
    replayed = [make_replayable(function) for function in functions]
    expected = steps_between_calls(two_functions(), "cpu")
    for result, e in zip(steps_between_calls(replayed, "lazy"), expected, strict=True):
        same(result, e)
    assert [function.runs for function in functions] == [2, 2]
    before = traces(), replays()
    steps_between_calls(replayed, "lazy")
    assert (traces() - before[0], replays() - before[1]) == (9, 27)
    for result, e in zip(steps_between_calls(replayed, "lazy", reads=lambda k: k == 4), expected, strict=True):
        same(result, e)  # several steps in one trace, cut where it is found to hold them


@pytest.mark.parametrize("option", ["max_trace_ops", "max_known_ops"])
def test_replays_that_are_cut_within_and_known_traces_that_are_forgotten(option):
    functions = two_functions()
    replayed = [make_replayable(function) for function in functions]
    steps_between_calls(replayed, "lazy")
    expected, runs = steps_between_calls(two_functions(), "cpu"), [function.runs for function in functions]
    default = {"max_trace_ops": "16384", "max_known_ops": "524288"}[option]
    try:
        for limit in 3, 5, 7:
            torch_lazy.set_option(option, str(limit))
            before = traces()
            for result, e in zip(steps_between_calls(replayed, "lazy"), expected, strict=True):
                same(result, e)
            assert traces() - before > 9 or option == "max_known_ops"
    finally:
        torch_lazy.set_option(option, default)
    assert [function.runs for function in functions] == runs


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_module_with_gradients(dropout):
    def train(device, wrap):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2)).to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        counted = Counted(net.forward)
        net.forward = counted
        model = wrap(net)
        losses = []
        for k in range(12):
            optimizer.zero_grad()
            loss = (model(numbers(5, 4, seed=k).to(device)) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, counted.runs

    expected, _ = train("cpu", lambda net: net)
    losses, runs = train("lazy", make_replayable)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
    assert runs <= 5


def test_two_calls_before_their_backward_passes():
    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    on_device = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    on_device.load_state_dict(net.state_dict())
    model = make_replayable(on_device.to("lazy"))
    for k in range(6):
        x, y = numbers(2, 3, seed=k), numbers(2, 3, seed=k + 20)
        net.zero_grad()
        on_device.zero_grad()
        (net(x) * net(y)).sum().backward()
        (model(x.to("lazy")) * model(y.to("lazy"))).sum().backward()
        for ours, theirs in zip(on_device.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


def test_gradients_of_arguments():
    def function(x, y):
        return (x * y).sin()

    replayed = make_replayable(function)
    for k in range(6):
        leaves = [numbers(4, seed=k).requires_grad_(), numbers(4, seed=k + 30).requires_grad_()]
        twins = [leaf.detach().to("lazy").requires_grad_() for leaf in leaves]
        expected = torch.autograd.grad(function(*leaves).sum(), leaves)
        for ours, theirs in zip(torch.autograd.grad(replayed(*twins).sum(), twins), expected, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)


def test_torch_compile_leaves_other_devices_alone():
    torch._dynamo.reset()
    compiled = torch.compile(nn.Linear(4, 8, device="meta"), backend="lazy")
    before = replays()
    with pytest.warns(UserWarning, match="no kernels for device meta"):
        for rows in 3, 3, 5, 7:
            result = compiled(torch.empty(rows, 4, device="meta"))
            assert (result.device.type, result.shape) == ("meta", (rows, 8))
    assert replays() == before


@pytest.mark.parametrize("device", ["lazy", "cpu"])
def test_torch_compile_with_our_backend(device):
    torch._dynamo.reset()
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    compiled_net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    compiled_net.load_state_dict(net.state_dict())
    compiled = torch.compile(compiled_net.to(device), backend="lazy")
    before = replays()
    for k in range(6):
        x = numbers(3, 4, seed=k)
        net.zero_grad()
        compiled_net.zero_grad()
        net(x).square().sum().backward()
        result = compiled(x.to(device))
        result.square().sum().backward()
        assert result.device.type == device
        torch.testing.assert_close(result.cpu(), net(x))
        for ours, theirs in zip(compiled_net.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad)
    assert replays() > before


@pytest.mark.parametrize("device", ["lazy", "cpu"])
def test_both_passes_of_a_compiled_model_are_replayed(device):
    """What the forward pass keeps of its arguments, and of their views, is no reason to run it again."""
    losses = {}
    for is_compiled in False, True:
        torch.manual_seed(0)
        torch._dynamo.reset()
        net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).to(device if is_compiled else "cpu")
        called = torch.compile(net, backend="lazy") if is_compiled else net
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses[is_compiled] = []
        for step in range(10):
            optimizer.zero_grad()
            before = replays()
            loss = called(numbers(4, 6, seed=step).to(net[0].weight.device)).square().mean()
            loss.backward()
            if is_compiled and step >= 6:
                assert replays() - before == 2
            optimizer.step()
            losses[is_compiled].append(loss.item())
    torch.testing.assert_close(losses[True], losses[False], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["lazy", "cpu"])
def test_a_compiled_function_may_return_its_argument(device):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (x, x * 2), backend="lazy")
    for k in range(6):
        x = numbers(3, seed=k).to(device)
        same_x, double = compiled(x)
        assert same_x is x and double.device.type == device
        torch.testing.assert_close(double.cpu(), x.cpu() * 2)


def test_a_graph_with_a_counter_on_the_host_is_just_called():
    torch._dynamo.reset()

    @torch.compile(backend="lazy")
    def count(x, steps):
        steps += 1
        return x * 2 + steps

    steps, x = torch.zeros(()), torch.ones(3).to("lazy")
    results = [count(x, steps).tolist() for _ in range(12)]
    assert results == [[2.0 + step] * 3 for step in range(1, 13)] and steps.item() == 12
