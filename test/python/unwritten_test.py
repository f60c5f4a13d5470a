# SPDX-License-Identifier: Apache-2.0
"""Under deterministic algorithms what `torch.empty` gives is filled, as eager's; what is overwritten unread costs nothing."""

import pytest
import torch
import torch_lazy

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.float8_e5m2]
OTHERS = [torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.fixture(autouse=True)
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def equal(got, wanted):
    return torch.equal(got.cpu().contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8))


@pytest.mark.parametrize("dtype", FLOATS + OTHERS, ids=str)
@pytest.mark.parametrize("make", [lambda *a, **k: torch.empty(*a, **k), lambda *a, **k: torch.empty_strided(a, (1, 3), **k),
                                  lambda *a, **k: torch.empty_like(torch.ones(a, **k)), lambda *a, **k: torch.ones(1, **k).new_empty(a)],
                         ids=["empty", "strided", "like", "new"])
def test_what_is_read_is_eagers(make, dtype):
    assert equal(make(3, 5, dtype=dtype, device="lazy"), make(3, 5, dtype=dtype))


def written_in_part(device):
    x = torch.empty(4, 6, device=device)
    x[1] = 2.0
    x[:, 2:4].copy_(torch.arange(8.0).view(4, 2))
    return x


def read_by_calls(device):
    x = torch.empty(4, 6, device=device)
    return torch.nan_to_num(x, nan=7.0) + torch.empty(6, dtype=torch.int32, device=device)


def made_and_dropped(device):
    x = torch.empty(64, device=device)
    y = x.isnan().sum() + torch.ones(1, device=device)
    del x
    return y


PROGRAMS = [written_in_part, read_by_calls, made_and_dropped]


@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_find_it_filled(program, compile_mode):
    for _ in range(5):
        assert equal(program("lazy"), program("cpu"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_replays_find_it_filled(program, compile_mode):
    replayed = torch_lazy.make_replayable(lambda: program("lazy"))
    for _ in range(5):
        assert equal(replayed(), program("cpu"))


def test_a_graph_finds_it_filled(compile_mode):
    weight = torch.eye(6, device="lazy")

    def step(device, weight):
        x = torch.empty(4, 6, device=device)
        x[1] = 2.0
        for _ in range(4):  # as many steps as a plan with a graph has
            x = torch.nan_to_num(x, nan=1.0) @ weight
        return x

    for _ in range(8):
        assert equal(step("lazy", weight), step("cpu", torch.eye(6)))


def test_filled_is_decided_when_it_is_made():
    x = torch.empty(3, device="lazy")
    torch.use_deterministic_algorithms(False)
    assert x.isnan().all()


def test_growing_is_filled():
    x, y = torch.ones(2, device="lazy"), torch.ones(2)
    assert equal(x.resize_(5), y.resize_(5))


@pytest.mark.parametrize("overwrite", [lambda x: x.zero_(), lambda x: x.fill_(3), lambda x: x.copy_(torch.ones(())), lambda x: torch.ones(8, 8, out=x)],
                         ids=["zero", "fill", "copy", "out"])
def test_what_is_overwritten_costs_nothing(overwrite):
    recorded = []
    for is_filled in False, True:
        torch.utils.deterministic.fill_uninitialized_memory = is_filled
        torch_lazy.sync()
        before = torch_lazy.metrics()["calls_recorded"]
        overwrite(torch.empty(8, 8, device="lazy")).sum().item()
        recorded.append(torch_lazy.metrics()["calls_recorded"] - before)
    assert recorded[0] == recorded[1]


def test_calls_do_not_fill_what_they_overwrite(compile_mode):
    image, weight = torch.ones(2, 3, 8, 8, device="lazy"), torch.ones(4, 3, 3, 3, device="lazy")
    fills = []
    for is_filled in False, True:
        torch.utils.deterministic.fill_uninitialized_memory = is_filled
        for _ in range(3):  # the first steps are run op by op
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                torch.nn.functional.conv2d(image, weight).relu().sum().item()
        fills.append(sum(event.count for event in profile.key_averages() if event.key == "aten::fill_"))
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert fills[0] == fills[1]


def test_what_comes_from_the_host_is_not_filled_before():
    host = torch.arange(6.0).view(2, 3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        x = host.to("lazy")
        part = torch.empty(2, 3, device="lazy")
        whole = torch.empty(3, 2, device="lazy").t().copy_(host)
    assert not any(event.key == "aten::fill_" for event in profile.key_averages())
    part[:, 1].copy_(host[:, 0])
    wanted = torch.empty(2, 3)
    wanted[:, 1] = host[:, 0]
    assert equal(x, host) and equal(whole, host) and equal(part, wanted)
