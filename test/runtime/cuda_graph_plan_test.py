# SPDX-License-Identifier: Apache-2.0
"""Plans replayed as graphs, emulated by backend stand_in: what storages hold, when, and where.

The graphs read and write fixed addresses; nothing may tell but the count of replays. CUDA's own part, capturing, is in
test/cuda.
"""

import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from child import in_child  # noqa: E402
from step_programs import ALL, STEPS  # noqa: E402


def _run(program):
    results = program()
    return results, torch_lazy.metrics()["graph_replays"]


@pytest.mark.parametrize("program", ALL)
def test_what_it_computes(program):
    expected, replays = in_child(_run, program, compile="sync", disable="graphs")
    assert replays == 0
    results, replays = in_child(_run, program, compile="sync")
    assert results == expected
    few_steps = program.__name__ in ("two_threads", "drops_what_it_made")  # too few for a graph
    assert replays == 0 if few_steps else replays > STEPS / 2


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)).to("lazy")


def _captured_at_the_third_run():
    net, x = _net(), torch.ones(2, 8, device="lazy")
    replays = []
    with torch.no_grad():
        for _ in range(6):
            y = net(x)
            torch_lazy.sync()
            del y
            replays.append(torch_lazy.metrics()["graph_replays"])
    return replays


def test_captured_at_the_third_run():
    assert in_child(_captured_at_the_third_run, compile="sync") == [0, 0, 0, 1, 2, 3]  # the first step learns shapes


def _trained_and_filled():
    """Deterministic algorithms fill what `empty` gives: nothing that is overwritten, and otherwise anew in each run."""
    torch.use_deterministic_algorithms(True)
    net, x = _net(), torch.ones(2, 8, device="lazy")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    replays, sums = [], []
    for _ in range(8):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        torch_lazy.sync()
    replays.append(torch_lazy.metrics()["graph_replays"])
    with torch.no_grad():
        for _ in range(8):
            y = torch.empty(2, 8, device="lazy")
            y[0] = 1.0
            sums.append(net(torch.nan_to_num(y, nan=2.0)).sum())
            y.fill_(3.0)
            torch_lazy.sync()
    replays.append(torch_lazy.metrics()["graph_replays"] - replays[0])
    return replays, [total.item() for total in sums]


def test_what_is_filled():
    (trained, filled), sums = in_child(_trained_and_filled, compile="sync")
    assert trained > 0 and filled == 0
    assert sums == pytest.approx([sums[0]] * len(sums), rel=1e-5)  # the first runs before its shapes are known, op by op


def _replays_of_steps(deterministic):
    """Memory that a call's `out=` overwrites (arange), and that is written by views of it (gradients of images, channels last)."""
    torch.use_deterministic_algorithms(deterministic)
    table = nn.Embedding(8, 8).to("lazy")
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3)).to("lazy").to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD([*table.parameters(), *net.parameters()], 0.1, momentum=0.9)
    for _ in range(8):
        optimizer.zero_grad()
        image = torch.ones(2, 3, 8, 8).to("lazy").to(memory_format=torch.channels_last)
        places = torch.arange(8, device="lazy")
        (net(image).square().mean() + table(places).square().mean()).backward()
        optimizer.step()
        torch_lazy.sync()
    return torch_lazy.metrics()["graph_replays"]


def test_steps_under_deterministic_algorithms_have_graphs():
    replays = [in_child(_replays_of_steps, is_deterministic, compile="sync") for is_deterministic in (False, True)]
    assert replays == [4, 4]


def _held_results():
    """Every result that is held keeps its value, and the address that somebody has been told."""
    net = _net()
    held, addresses = [], []
    with torch.no_grad():
        for step in range(8):
            y = net(torch.full((2, 8), float(step), device="lazy"))
            torch_lazy.sync()
            held.append(y)
            addresses.append(y.data_ptr() if step % 2 else None)
        values = [y.tolist() for y in held]
        moved = [y.data_ptr() for y, address in zip(held, addresses, strict=True) if address is not None]
        return values, moved == [a for a in addresses if a is not None], torch_lazy.metrics()["graph_replays"]


def test_held_results():
    expected, same, replays = in_child(_held_results, compile="sync", disable="graphs")
    assert same and replays == 0
    values, same, replays = in_child(_held_results, compile="sync")
    assert values == expected and same
    assert replays == 8 - 3


def _fed_back():
    """From the seventh step on, a step reads what the one before has left, and last of all."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)).to("lazy")
    x, values = torch.ones(2, 8, device="lazy"), []
    with torch.no_grad():
        for step in range(16):
            y = net(x) + x
            torch_lazy.sync()
            if step >= 7:
                x = y
            values.append(y.tolist())
    return values, torch_lazy.metrics()["graph_replays"]


def test_results_that_the_next_run_reads():
    expected, _ = in_child(_fed_back, compile="sync", disable="graphs")
    values, replays = in_child(_fed_back, compile="sync")
    assert values == expected
    assert replays == 16 - 3


def _bytes_live(elements, is_held):
    """After each step, whose wide result is held by the first ones only."""
    weight, held, live = torch.zeros(elements, device="lazy"), None, []
    for step, holds in enumerate(is_held):
        hidden = torch.relu(torch.full((elements,), step + 1.0, device="lazy") - weight)
        weight.add_(hidden.sum() / elements)
        held = hidden if holds else None
        del hidden
        torch_lazy.sync()
        live.append(torch_lazy.metrics()["bytes_live"])
    return live, _captures_and_replays()[0]


def test_the_memory_of_a_graph_that_kept_more_than_is_needed_is_let_go():
    elements, held = 1 << 18, [True] * 6
    narrow, captures = in_child(_bytes_live, elements, [False] * 14, compile="sync")
    assert captures == 1
    live, captures = in_child(_bytes_live, elements, held + [False] * 8, compile="sync")
    assert captures == 2  # with the result and without
    assert live[len(held) - 1] == narrow[-1] + 4 * elements
    assert live[-1] == narrow[-1]


def _parameters_that_move():
    net, x = _net(), torch.ones(2, 8, device="lazy")
    results = []
    with torch.no_grad():
        for step in range(12):
            if step in (5, 8):
                for value in net.parameters():
                    value.data = value.data * 0.5  # new memory
            y = net(x)
            torch_lazy.sync()
            results.append(y.tolist())
    return results, torch_lazy.metrics()["graph_replays"]


def test_parameters_that_move_are_captured_anew():
    expected, _ = in_child(_parameters_that_move, compile="sync", disable="graphs")
    results, replays = in_child(_parameters_that_move, compile="sync")
    assert results == expected
    assert replays == 12 - 3 - 2  # steps that write parameters are other traces


def _numbers_change():
    """An optimizer's numbers are no part of a graph."""
    net = _net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    losses = []
    for step in range(12):
        optimizer.zero_grad()
        loss = net(torch.full((2, 8), step / 12, device="lazy")).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, torch_lazy.metrics()["graph_replays"]


def test_numbers_change():
    expected, _ = in_child(_numbers_change, compile="sync", disable="graphs")
    losses, replays = in_child(_numbers_change, compile="sync")
    assert losses == expected
    assert replays == 12 - 3


def _accumulated_gradients():
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    norms = []
    for step in range(32):  # until graphs read what others, replayed once more, have left
        net(torch.full((2, 8), step / 32, device="lazy")).square().mean().backward()
        if step % 4 == 3:
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.1).item())
            optimizer.step()
            optimizer.zero_grad()
        torch_lazy.sync()
    return norms, [value.tolist() for value in net.parameters()], torch_lazy.metrics()["graph_replays"]


def test_accumulated_gradients():
    *expected, _ = in_child(_accumulated_gradients, compile="sync", disable="graphs")
    *results, replays = in_child(_accumulated_gradients, compile="sync")
    assert results == expected
    assert replays == 32 - 7  # two runs of each of its three traces, and a first step


def _calls_of_aten(changes):
    """Attention and convolution are ATen's, with optional numbers among their arguments."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 8, 8).to("lazy")
    weight = torch.randn(4, 4, 3, 3).to("lazy")
    results = []
    for step in range(8):
        y = torch.nn.functional.conv2d(x * (step + 1), weight, padding=1)
        y = torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=1 / (step + 1) if changes else None)
        results.append(y.tanh().sum().item())
    return results, torch_lazy.metrics()["graph_replays"]


@pytest.mark.parametrize("changes", [False, True])
def test_calls_of_aten(changes):
    expected, _ = in_child(_calls_of_aten, changes, compile="sync", disable="graphs")
    results, replays = in_child(_calls_of_aten, changes, compile="sync")
    assert results == expected
    assert replays == (1 if changes else 8 - 3)


def _dropout():
    """As a GPU's is recorded: numbers of the generator that the next step does not draw again."""
    net = _net()
    results = []
    for step in range(12):
        x = torch.full((2, 8), 1.0 + step, device="lazy", requires_grad=True)
        y = net[:3](x)
        with torch.no_grad():
            dropped, mask = torch.ops.torch_lazy.dropout(y, 0.5, 2.0, 2**31, 2**62 + 7, 4 * step, 256, 4, [0, 1])
            torch.ops.aten.native_dropout_backward(y, mask, 2.0)
        net[4](dropped).sum().backward()
        torch_lazy.sync()
        results.append((mask.tolist(), dropped.tolist()))
    return results, torch_lazy.metrics()["graph_replays"]


def test_dropout():
    interpreted, _ = in_child(_dropout, compile="off")
    expected, _ = in_child(_dropout, compile="sync", disable="graphs")
    results, replays = in_child(_dropout, compile="sync")
    masks = [mask for mask, _ in results]
    assert results == expected and masks == [mask for mask, _ in interpreted]
    assert len(set(map(str, masks))) == len(masks) and replays > 6


def _captures_and_replays():
    metrics = torch_lazy.metrics()
    return metrics["efforts"]["cuda_graphs"]["tried"], metrics["graph_replays"]


def _sweeps(sizes, rounds, step):
    """Captures and replays of each round over some sizes."""
    counts = [_captures_and_replays()]
    with torch.no_grad():
        for _ in range(rounds):
            for size in range(1, sizes + 1):
                y = step(size)
                torch_lazy.sync()
                assert y.shape[0] == size + 1
            counts.append(_captures_and_replays())
    return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(counts, counts[1:], strict=False)]


def _sweep_of_a_net(sizes, rounds):
    net = _net()
    return _sweeps(sizes, rounds, lambda size: net(torch.full((size + 1, 8), 0.5, device="lazy")))


def test_a_few_sizes_in_turn_are_captured_soon():
    counts = in_child(_sweep_of_a_net, 32, 8, compile="sync")
    assert counts[-1] == (0, 32) and sum(captures for captures, _ in counts) == 32
    assert counts[4] == (0, 32)


def test_a_long_sweep_is_captured_once_it_came_often():
    """64 sizes: each is captured once, after as many runs as a capture saves twice, and all are kept."""
    counts = in_child(_sweep_of_a_net, 64, 36, compile="sync")
    assert not any(captures for captures, _ in counts[:24])
    assert sum(captures for captures, _ in counts) == 64 and counts[-1] == (0, 64)


COLUMNS, ROOM_FOR = 49152, 24  # 64 rows of them are 12 MB, and beyond 24 graphs no more than 128 MB are kept


def _large_results(offsets, small_steps):
    """Counts of sweeps over 28 large sizes, those of the next offset after so many steps of a small net."""
    wide, net, counts = torch.randn(8, COLUMNS, device="lazy"), _net(), []
    for offset in offsets:

        def step(size, offset=offset):
            x = torch.full((64, 8), float(size), device="lazy") * 2
            return torch.relu(x @ wide[:, : COLUMNS - size - offset])[: size + 1]

        counts.append(_sweeps(28, 6, step))
        with torch.no_grad():
            for _ in range(small_steps):
                y = net(torch.ones(2, 8, device="lazy"))
                torch_lazy.sync()
                del y
    return counts


def test_a_sweep_that_has_no_room_does_not_thrash():
    """What found room stays, and is replayed in each round; the rest runs by launches."""
    (counts,) = in_child(_large_results, [0], 0, compile="sync")
    assert sum(captures for captures, _ in counts) == ROOM_FOR
    assert counts[-2:] == [(0, ROOM_FOR)] * 2


def test_graphs_that_are_used_no_more_make_room():
    first, second = in_child(_large_results, [0, 100], 1100, compile="sync")
    assert first[-1] == (0, ROOM_FOR) and second[-1] == (0, ROOM_FOR - 1)  # the small net has one


def _generate(tokens, texts, cached):
    """Token by token, over a cache that grows, or one that is there and is written in place."""
    torch.manual_seed(0)
    width, most = 16, tokens // texts
    embed, head = torch.randn(32, width).to("lazy"), torch.randn(width, 32).to("lazy")
    out = []
    with torch.no_grad():
        for text in range(texts):
            token = torch.full((1, 1), text % 2, device="lazy")
            cache = torch.zeros(1, most if cached else 0, width, device="lazy")
            place, places = torch.zeros(1, dtype=torch.int64, device="lazy"), torch.arange(most, device="lazy")
            for _ in range(most):
                x = embed[token]
                scores_of_none = 0.0
                if cached:
                    cache.index_copy_(1, place, x)
                    scores_of_none = torch.where(places <= place, 0.0, -torch.inf)
                else:
                    cache = torch.cat([cache, x], 1)
                weights = torch.softmax(x @ cache.transpose(1, 2) + scores_of_none, -1)
                token = ((weights @ cache) @ head).argmax(-1)
                place += 1
                out.append(token.item())
    return out, _captures_and_replays()


@pytest.mark.parametrize("texts", [1, 4, 20])
def test_a_growing_cache_is_not_captured(texts):
    """1,000 tokens. Each length is a plan of its own, which comes again a text later, if at all."""
    _, (captures, replays) = in_child(_generate, 1000, texts, False, compile="sync")
    assert 20 * captures <= replays


def test_a_static_cache_is_replayed():
    _, (captures, replays) = in_child(_generate, 1000, 4, True, compile="sync")
    assert replays > 900 and 20 * captures <= replays


def _changing_sizes():
    net = _net()
    results = []
    with torch.no_grad():
        for step in range(24):
            y = net(torch.full((step % 3 + 1, 8), float(step), device="lazy"))
            torch_lazy.sync()
            results.append(y.tolist())
    return results, torch_lazy.metrics()["graph_replays"]


def test_changing_sizes():
    expected, _ = in_child(_changing_sizes, compile="sync", disable="graphs")
    results, replays = in_child(_changing_sizes, compile="sync")
    assert results == expected
    assert replays == 24 - 3 * 2 - 2  # one step of each of two sizes learns shapes
