# SPDX-License-Identifier: Apache-2.0
"""Short traces that are waited for, and run op by op, are recorded a while and no more: then calls run at once."""

import concurrent.futures
import ctypes
import functools
import random

import pytest
import torch
import torch_lazy

from child import in_child

TRACES = 32  # so many in a row before calls run at once, and 8 between two times: lazy/trace/at_once.h
LONG = 100  # calls, more than those of a short trace


def _short(x, turn):
    return ((x * turn).tanh() + 1)[0].item()


def _long(x, turn):
    for _ in range(LONG):
        x = x + turn
    return x[0].item()


def _new(first, x, turn):
    chosen, y = random.Random(first + turn), x[0]
    for _ in range(LONG):
        y = y + x[chosen.randrange(4)]
    return y.item()


def _counts():
    metrics = torch_lazy.metrics()
    return metrics["traces_run"], metrics["calls_immediate"]


def _run(turns):
    """For each (function, times): traces that were run, and calls that ran at once. The values are eager's."""
    twin = torch.ones(4)
    x = twin.to("lazy")
    counts = []
    for function, times in turns:
        before = _counts()
        values = [function(x, turn) for turn in range(times)]
        counts.append(tuple(after - first for after, first in zip(_counts(), before)))
        assert values == [function(twin, turn) for turn in range(times)]
    return counts


def _run_deterministic(turns):
    torch.use_deterministic_algorithms(True)
    return _run(turns)


def test_after_so_many_traces_calls_run_at_once():
    turns = [(_short, TRACES), (_short, 171), (_short, 8), (_short, 342), (_short, 8)]
    assert in_child(_run, turns, compile="off") == [(TRACES, 0), (0, 3 * 171), (8, 0), (0, 3 * 342), (8, 0)]


@pytest.mark.parametrize("options", [{"compile": "sync"}, {"compile": "off", "disable": "at_once"},
                                     {"compile": "off", "compare": "1"}])
def test_with_these_options_all_calls_are_recorded(options):
    assert in_child(_run, [(_short, 3 * TRACES)], **options) == [(3 * TRACES, 0)]


def test_deterministic_traces_are_recorded():
    assert in_child(_run_deterministic, [(_short, 3 * TRACES)], compile="async") == [(3 * TRACES, 0)]


def test_long_traces_are_recorded():
    assert in_child(_run, [(_long, 2 * TRACES)], compile="off") == [(2 * TRACES, 0)]


def test_long_traces_that_are_new_each_time_run_at_once():
    turns = [(functools.partial(_new, 1000 * k), times) for k, times in enumerate((16, 6, 2, 11, 2))]
    expected = [(16, 0), (0, 6 * LONG), (2, 0), (0, 11 * LONG), (2, 0)]
    assert in_child(_run, turns, compile="off") == expected
    known_among_them = [(functools.partial(_new, 0), 15), (functools.partial(_new, 0), 1), (functools.partial(_new, 1000), 15)]
    assert in_child(_run, known_among_them, compile="off") == [(15, 0), (1, 0), (15, 0)]


def test_long_ways_to_the_next_wait_are_recorded_soon():
    turns = [(_short, TRACES), (_short, 2), (_long, 1), (_long, 5), (_short, 2 * TRACES), (_short, 1)]
    expected = [(TRACES, 0), (0, 6), (0, LONG), (2, 3 * LONG), (2 * TRACES, 0), (0, 3)]
    assert in_child(_run, turns, compile="off") == expected


def test_a_long_way_after_many_short_ones_runs_at_once():
    """Games of 40 moves, an update after each. Recorded are the first 32 moves, then moves up to an update, less and less often."""
    games = [turn for _ in range(40) for turn in ((_short, 40), (_long, 1))]
    counts = in_child(_run, games, compile="off")
    assert sum(at_once for _, at_once in counts) == 7887  # of 8800
    assert sum(updates for updates, _ in counts[1::2]) == 4


def _views_and_writes(device, turns):
    """Calls of many forms, on memory that they share."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(6, 8, generator=generator) for _ in range(4)]
    table, bias, weight, picks = (tensor.to(device) for tensor in (*given[:3], torch.tensor([4, 0, 2])))
    weight.requires_grad_()
    spectrum = torch.complex(given[2], given[3]).to(device)
    values = []
    for turn in range(turns):
        row = table[turn % 6]
        row.mul_(0.5).add_(bias[0], alpha=turn % 3)
        table[:, 1:3].copy_(bias[:, 2:4])
        table.t()[5].zero_()
        same = table.clone()
        rows = torch.cat([table[picks], same[:2]])
        mask = rows > 0
        values.append(rows[mask].sum().item())
        table[picks] = bias[:3]
        values.append(torch.where(mask, rows, rows.exp()).amax().item())
        values.append((spectrum.conj() * spectrum * torch.tensor(1 + 2j).conj()).real.sum().item())
        loss = (torch.nn.functional.linear(rows, weight).tanh() ** 2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad = None
        values.append(loss.item())
        halves = torch.nn.functional.layer_norm(table, (8,)).to(torch.float64).split(4, dim=1)
        values += [half.sum().item() for half in halves]
        with torch.inference_mode():
            values.append((bias @ bias.t()).softmax(-1)[0, turn % 6].item())
    return values, table.cpu(), weight.detach().cpu()


def _compare(program, turns):
    """How many calls ran at once. The values, and the tensors after them, are eager's."""
    before = _counts()[1]
    ours = program("lazy", turns)
    at_once = _counts()[1] - before
    theirs = program("cpu", turns)
    assert ours[0] == theirs[0]
    assert all(torch.equal(a, b) for a, b in zip(ours[1:], theirs[1:], strict=True))
    return at_once


def test_values_are_eagers():
    assert in_child(_compare, _views_and_writes, 60, compile="off") > 1000


def _boxed(device, turns):
    """Calls that come boxed: new results, several of them, lists, views, writes, and results that are not dense."""
    generator = torch.Generator().manual_seed(0)
    table, other, weight = (torch.randn(4, 6, generator=generator).to(device) for _ in range(3))
    weight.requires_grad_()
    values = []
    for turn in range(turns):
        turned = table.roll(turn, 1)
        least, where = turned.cummin(1)
        values.append((least + where).sum().item())
        version = table._version
        same = table.hypot_(other)
        assert same is table and table._version == version + 1
        table.lerp_(other, 0.5)
        parts = torch.split_with_sizes_copy(table, [2, 1, 3], dim=1)
        values += [part.sum().item() for part in parts]
        parts[0].zero_()
        values.append(table.sum().item())
        values.append(torch.empty(6, 6, device=device).copysign_(table[:1]).isfinite().numel())
        values.append(table.relu().to_sparse().values().sum().item())
        loss = (weight.logit(0.1) * table.remainder(2)).square().mean()
        loss.backward()
        values += [loss.item(), weight.grad.sum().item()]
        weight.grad = None
        with pytest.raises(IndexError):
            table.cummin(2)
    return values, table.cpu()


def test_boxed_calls_give_eagers_values():
    assert in_child(_compare, _boxed, 80, compile="off") > 500


def _fail_at_once():
    _run([(_short, TRACES + 2)])
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        torch.ones(3, device="lazy").index_select(0, torch.tensor([7], device="lazy"))
    return _run([(_short, 2)])


def test_a_call_that_fails_says_so_at_once():
    assert in_child(_fail_at_once, compile="off") == [(0, 6)]


def _set_option_at_once():
    counts = _run([(_short, TRACES), (_short, 2)])
    torch_lazy.set_option("compile", "sync")
    return counts + _run([(_short, 3)])


def test_an_option_holds_from_the_next_call_on():
    assert in_child(_set_option_at_once, compile="off") == [(TRACES, 0), (0, 6), (3, 0)]


def _mix_devices():
    _run([(_short, TRACES + 2)])
    here, there = torch.ones(3, device="lazy:0"), torch.ones(3, device="lazy:1")
    assert (here + 1)[0].item() == (there + 1)[0].item() == 2
    before = _counts()[1]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        here + there
    return _counts()[1] - before


def test_tensors_of_two_devices_are_refused():
    assert in_child(_mix_devices, compile="off", devices="2") == 1


def _write_through_addresses():
    _run([(_short, TRACES + 2)])
    x = torch.ones(4, device="lazy")
    sums = []
    for _ in range(4):
        x.add_(1)
        sums.append(x.sum().item())
        ctypes.memset(x.data_ptr(), 0, 8)
        sums.append((x * 1).sum().item())
        x.untyped_storage().resize_(32)
        x.set_(x.untyped_storage(), 0, (8,)).fill_(1)
        sums.append(x.sum().item())
        x = x[:4].clone()
    return sums, _counts()[1] > 0


def test_writes_through_addresses_are_seen():
    assert in_child(_write_through_addresses, compile="off") == ([8, 4, 8] * 4, True)


def _share_among_threads():
    shared = torch.arange(8.0, device="lazy")

    def work(number):
        values = [((shared * number)[turn % 8] + turn).item() for turn in range(20 * TRACES)]
        return values == [float(turn % 8 * number + turn) for turn in range(20 * TRACES)]

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    return _counts()[1]


def test_threads_share_tensors():
    assert in_child(_share_among_threads, compile="off") > 4 * 10 * TRACES


def _replay_at_once():
    function = torch_lazy.make_replayable(lambda x: (x * 2).sin())
    _run([(_short, TRACES + 2)])
    values = [function(torch.full((4,), float(k), device="lazy"))[0].item() for k in range(6)]
    twin = [(torch.full((4,), float(k)) * 2).sin()[0].item() for k in range(6)]
    return values == twin, torch_lazy.metrics()["replays"]


def test_replays_are_recorded():
    assert in_child(_replay_at_once, compile="off") == (True, 4)


def _by_a_pool(device, turns):
    """Each turn two threads write a row each of a tensor, and this one reads it. Sums, and counts of the last turns."""
    counts = []
    sums = []
    with concurrent.futures.ThreadPoolExecutor(1) as one, concurrent.futures.ThreadPoolExecutor(1) as other:
        for turn in range(turns):
            before = _counts()
            table = torch.zeros(2, 3, device=device)
            for row, thread in enumerate((one, other)):
                thread.submit(lambda row=row: table[row].fill_(turn + row)).result()
                thread.submit(lambda row=row: table[row, 1:].copy_(torch.ones(2))).result()
            sums.append((table * 2).sum().item())
            counts.append(tuple(after - first for after, first in zip(_counts(), before)))
    return sums, counts


def _compare_pools(turns):
    torch.use_deterministic_algorithms(True)
    sums, counts = _by_a_pool("lazy", turns)
    assert sums == _by_a_pool("cpu", turns)[0]
    return counts


@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_a_thread_that_hands_its_writes_on_runs_them_at_once(backend):
    counts = in_child(_compare_pools, 3 * TRACES, backend=backend)
    assert counts[1] == (4, 0)  # traces: the zeros and each row, which the next one's owner ran, and what was read
    # What was read; the fills, since copies from the host are no calls then. The zeros were taken out of their trace.
    assert counts[-1] == (1, 2)


def _pools_that_compute(device, turns):
    """A thread that writes exactly and then computes goes on recording: its next writes join what is pending."""
    sums = []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for turn in range(turns):
            table = torch.zeros(2, 3, device=device)
            pool.submit(lambda: table[0].fill_(turn)).result()
            if turn >= turns // 2:
                pool.submit(lambda: table.add_(1).mul_(0.5)).result()
                pool.submit(lambda: table[1].fill_(3)).result()
            sums.append(table.sum().item())
    return sums


def _compare_pools_that_compute():
    assert _pools_that_compute("lazy", 4 * TRACES) == _pools_that_compute("cpu", 4 * TRACES)
    return torch_lazy.metrics()["calls_immediate_by_op"]["aten::fill_.Scalar"]


def test_other_calls_of_such_a_thread_are_recorded():
    # At once: the first fill of each turn after the first so many, and no other call.
    assert in_child(_compare_pools_that_compute, compile="sync") == 3 * TRACES
