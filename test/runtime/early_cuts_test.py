# SPDX-License-Identifier: Apache-2.0
"""Loops that read a value at each step: on a GPU, their steps begin while they are recorded. Note [Early cuts] in lazy/cuts/early_cuts.h."""

import functools
import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from child import in_child  # noqa: E402

LAYERS, ROWS, WIDTH = 36, 4, 8
LARGE = 1 << 26  # 256 MiB of float32: the step is large


def _traces_run():
    return torch_lazy.metrics()["traces_run"]


def trains(steps, reads, layers=LAYERS):
    """(losses that were read; traces that ran in each step: before its backward pass, before the read at its end, and in all)"""
    weights = [nn.Parameter(torch.full((WIDTH,), 1 + 0.01 * k, device="lazy")) for k in range(layers)]
    optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9)
    inputs = [torch.full((ROWS, WIDTH), 0.1 * (k + 1), device="lazy") for k in range(2)]
    one = torch.ones(1, device="lazy")
    losses, counts = [], []
    for step in range(steps):
        before = _traces_run()
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        x = inputs[step % 2]
        for weight in weights:
            x = torch.tanh(x * weight)
        loss = x.square().mean()
        if reads == "before backward":
            losses.append(loss.item())
        forward = _traces_run() - before
        loss.backward()
        optimizer.step()
        recorded = _traces_run() - before
        if reads == "after the step" or (reads == "every fourth" and step % 4 == 3):
            losses.append(loss.item())
        counts.append((forward, recorded, _traces_run() - before))
    return losses, counts


@pytest.mark.parametrize("reads", ["after the step", "before backward"])
def test_a_step_begins_while_it_is_recorded(reads):
    losses, counts = in_child(trains, 12, reads, compile="off")
    assert losses == in_child(trains, 12, reads, compile="off", disable="early")[0]
    forward, recorded, traces = counts[-1]
    assert counts[-4:] == [counts[-1]] * 4
    assert 1 <= forward < recorded and 4 <= traces <= 6
    if reads == "after the step":
        assert recorded == traces - 1


@pytest.mark.parametrize("reads, layers", [("never", LAYERS), ("every fourth", LAYERS), ("after the step", 8)])
def test_others_stay_whole(reads, layers):
    losses, counts = in_child(trains, 12, reads, layers, compile="off")
    assert (losses, counts) == in_child(trains, 12, reads, layers, compile="off", disable="early")
    assert sum(traces for _, _, traces in counts[4:]) <= 8 + 1


def counts_early_reads(steps, reads):
    """(losses that were read; values that were read early, in all, after each step)"""
    torch.manual_seed(0)
    net, counts = nn.Sequential(*[part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]).to("lazy"), []
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    x, one, losses = torch.ones(ROWS, WIDTH, device="lazy"), torch.ones(1, device="lazy"), []
    for _ in range(steps):
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        if reads == "loss":
            losses.append(loss.item())
        elif reads == "a number that follows":
            losses.append((loss * 2).tolist())
        elif reads == "a truth value that follows":
            losses.append(1.0 if torch.isnan(loss.detach()) or torch.isinf(loss.detach()) or loss > 1e6 else loss.detach())
        else:
            losses.append(next(iter(net.parameters())).sum().item())
        counts.append(torch_lazy.metrics()["early_reads"])
    return [float(loss) for loss in losses], counts


@pytest.mark.parametrize("reads, early", [("loss", 1), ("a truth value that follows", 1), ("a number that follows", 0), ("a parameter", 0)])
def test_a_value_of_an_early_part_is_read_early(reads, early):
    losses, counts = in_child(counts_early_reads, 12, reads, compile="sync")
    assert [after - before for before, after in zip(counts[7:], counts[8:], strict=False)] == [early] * 4
    late, none = in_child(counts_early_reads, 12, reads, compile="sync", disable="early")
    assert none == [0] * 12
    assert losses == pytest.approx(late, rel=1e-5)


def refuses(steps, bad):
    """(of each step, whether its loss is NaN or infinite; values that were read early): one step's input is `bad` at one place."""
    torch.manual_seed(0)
    net = nn.Sequential(*[part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]).to("lazy")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    one, found = torch.ones(1, device="lazy"), []
    inputs = [torch.ones(ROWS, WIDTH) for _ in range(steps)]
    inputs[steps - 2][0, 0] = bad
    for x in inputs:
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        loss = (net(x.to("lazy")) + x.to("lazy")).square().mean()
        loss.backward()
        optimizer.step()
        found.append(not torch.isfinite(loss))
    return found, torch_lazy.metrics()["early_reads"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_loss_is_found_early(bad, tmp_path):
    for uncut in (3, 2):  # steps; a process that finds on disk where to cut begins one step sooner
        found, early = in_child(refuses, 12, bad, compile="sync", cache_dir=str(tmp_path))
        assert found == [False] * 10 + [True, True]  # its gradients leave bad weights
        assert early == 12 - uncut


def _net(layers):
    """Layers alike, with products, so that a part has launches enough for a CUDA graph."""
    layers = [part for _ in range(layers) for part in (nn.Linear(32, 32, bias=False), nn.LayerNorm(32), nn.Tanh())]
    return nn.Sequential(nn.Linear(32, 32), *layers), [torch.randn(64, 32)]


class _Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def _convolutions(layers):
    """The same of convolutions, on images that lie elsewhere at each step."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *[_Residual(8) for _ in range(layers)]), list(torch.randn(4, 2, 3, 8, 8))


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)


def _replays(steps, make, layers, reads="after the step", exceptional=lambda step: False, models=1, optimizer_of=_sgd):
    """Losses; of each step, the traces that it ran and the replays of CUDA graphs. Models take turns."""
    torch.manual_seed(0)
    nets, (inputs, *_) = zip(*(make(layers) for _ in range(models)), strict=True)
    nets, inputs = [net.to("lazy") for net in nets], [x.to("lazy") for x in inputs]
    optimizers = [optimizer_of(net.parameters()) for net in nets]
    one = torch.ones(1, device="lazy")
    losses, counts = [], []
    for step in range(steps):
        before = torch_lazy.metrics()
        one.expand(LARGE).neg()
        net, optimizer = nets[step % models], optimizers[step % models]
        optimizer.zero_grad()
        x = inputs[step % len(inputs)]
        loss = net(x * 1 if exceptional(step) else x).square().mean()
        if reads == "before backward":
            losses.append(loss.item())
        loss.backward()
        optimizer.step()
        if reads == "after the step":
            losses.append(loss.item())
        after = torch_lazy.metrics()
        counts.append((after["traces_run"] - before["traces_run"], after["graph_replays"] - before["graph_replays"]))
    return losses, counts


# What a part leaves lies where its CUDA graph has put it, and the next part's reads it there.
@pytest.mark.parametrize("layers, parts", [(30, 4), (90, 8), (120, 9)])
def test_parts_have_cuda_graphs_at_once(layers, parts, tmp_path):
    losses, counts = in_child(_replays, 7, _net, layers, compile="sync", cache_dir=str(tmp_path))
    assert [replays for _, replays in counts] == [0, 0, 0, 0, 0, parts, parts]
    whole, _ = in_child(_replays, 7, _net, layers, compile="sync", disable="early")
    assert losses == pytest.approx(whole, rel=1e-5)


def test_a_second_process_begins_early_at_once(tmp_path):
    """It cuts its third step, and the first process its fourth. One that has not waited at each step does not follow."""
    first, second, third = (in_child(_replays, 7, _net, 30, compile="sync", cache_dir=str(tmp_path)) for _ in range(3))
    assert [counts[2] for _, counts in (first, second, third)] == [(1, 0), (4, 0), (4, 0)]
    assert [replays for _, replays in second[1]] == [0, 0, 0, 0, 4, 4, 4]
    assert second == third and second[0] == pytest.approx(first[0], rel=1e-4)
    of_adam = functools.partial(_replays, 7, _net, 30, optimizer_of=torch.optim.Adam)  # whose second step is like all later ones
    counts = [in_child(of_adam, compile="sync", cache_dir=str(tmp_path))[1] for _ in range(2)]
    assert [replays for _, replays in counts[0]] == [0, 0, 0, 0, 4, 4, 4]
    assert [replays for _, replays in counts[1]] == [0, 0, 0, 4, 4, 4, 4]
    others = in_child(trains, 12, "every fourth", compile="off", cache_dir=str(tmp_path))
    assert in_child(trains, 12, "after the step", compile="off", cache_dir=str(tmp_path))[1][3][2] > 1
    assert others == in_child(trains, 12, "every fourth", compile="off", cache_dir=str(tmp_path))


def _holds_results(steps):
    """Losses, and what former steps' results were when later steps had begun; traces that ran beside the program. CUDA graphs move such results."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    net, (x,) = _net(60)
    net, x = net.to("lazy"), x.to("lazy")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    one = torch.ones(1, device="lazy")
    held, seen, losses = [], [], []
    for step in range(steps):
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        hidden = net[:60](x)
        held.append((hidden, hidden.detach().mean()))
        loss = net[60:](hidden).square().mean()
        if step > 2:
            result, mean = held.pop(0)
            seen.append((result.detach().cpu().mean().item(), mean.item()))  # this step's first parts are running
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, seen, torch_lazy.metrics()["traces_ahead"]


def test_what_replays_move_is_what_it_was():
    """That each use waits for such a replay is tested in test/lazy/run_ahead_test.cc."""
    losses, seen, ahead = in_child(_holds_results, 30, compile="sync")
    assert ahead > 30
    assert (losses, seen, 0) == in_child(_holds_results, 30, compile="sync", overlap="0")
    assert all(whole == pytest.approx(mean, abs=1e-6) for whole, mean in seen)


def _deterministic(steps, make, layers):
    torch.use_deterministic_algorithms(True)
    return _replays(steps, make, layers)


def test_deterministic_runs_are_the_same_cold_and_warm(tmp_path):
    cold, warm = (in_child(_deterministic, 7, _net, 30, cache_dir=str(tmp_path)) for _ in range(2))
    assert cold == warm


# Each part has a CUDA graph for each model. Where steps are cut is kept on disk, and a process that finds it there cuts from the
# first wait on: so both begin with nothing there.
@pytest.mark.parametrize("layers, parts", [(30, 4), (90, 8)])
def test_parts_of_two_models_in_turn_have_cuda_graphs(layers, parts, tmp_path):
    arguments = (14, _net, layers, "after the step", lambda step: False, 2)
    losses, counts = in_child(_replays, *arguments, compile="sync", cache_dir=str(tmp_path / "graphs"))
    assert counts[8:] == [(parts, parts)] * 6
    assert losses == in_child(_replays, *arguments, compile="sync", disable="graphs", cache_dir=str(tmp_path / "none"))[0]


# Read before the backward pass, parts hand their results on in a circle: one of them is captured before what it reads has
# a place of its own, and again after that. Nothing else is captured again for it.
def test_parts_in_a_circle_have_cuda_graphs():
    losses, counts = in_child(_replays, 14, _convolutions, 24, "before backward", compile="sync")
    assert counts[-5:] == [(4, 4)] * 5
    whole, _ = in_child(_replays, 14, _convolutions, 24, "before backward", compile="sync", disable="early")
    assert losses == pytest.approx(whole, rel=1e-5)


# A step's forward pass is a trace of another kind, once, and its results lie elsewhere. The part that reads them there is launched, and
# leaves its own results where its CUDA graph would: the next step finds all that it knows.
def test_an_exception_costs_its_step_alone():
    arguments = (40, _convolutions, 24, "before backward", lambda step: step == 30)
    losses, counts = in_child(_replays, *arguments, compile="sync")
    assert [replays for _, replays in counts[20:]] == [4] * 10 + [0] + [4] * 9
    whole, _ = in_child(_replays, *arguments, compile="sync", disable="early")
    assert losses == pytest.approx(whole, rel=1e-4)
