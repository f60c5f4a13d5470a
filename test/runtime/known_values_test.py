# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that the host reads while other work stays pending (lazy/cuts/known_value.h)."""

import pytest
import torch
import torch_lazy


def _cuts():
    return sum(torch_lazy.metrics()["cuts"].values())


@pytest.fixture(autouse=True)
def all_is_recorded():
    torch_lazy.set_option("compile", "sync")
    yield
    torch_lazy.set_option("compile", "async")


@pytest.fixture
def pending():
    """Work that is recorded and not run, of a dozen calls."""
    x = torch.ones(5, device="lazy")
    torch_lazy.sync()
    torch_lazy.reset_metrics()
    for _ in range(12):
        x = x * 1.5 + 0.5
    return x


@pytest.fixture
def numbers():
    for _ in range(2):  # shapes are learnt
        result = torch.arange(7, device="lazy") * 3
        (result * 2 + 1).add_(result)
        result[3:5] = result[1:3]
        result.copy_(torch.arange(7, device="lazy") * 3)
        result[2] = 6
        torch_lazy.sync()
    return result


def test_what_was_there_before_is_read(numbers, pending):
    assert [numbers[k].item() for k in range(7)] == [0, 3, 6, 9, 12, 15, 18]
    assert numbers.tolist() == [0, 3, 6, 9, 12, 15, 18] and int(numbers[2]) == 6
    assert _cuts() == 0


def test_it_selects_a_row(numbers, pending):
    rows = torch.arange(40.0).reshape(20, 2).to("lazy")
    row = rows[numbers[3]] + 1
    assert _cuts() == 0
    assert row.tolist() == [19.0, 20.0]


@pytest.mark.parametrize("read, expected", [
    (lambda n: bool(n[3] == 9), True), (lambda n: bool(n[3] > n[4]), False), (lambda n: (n[1] + n[2]).item(), 9),
    (lambda n: bool((n == 9).any()), True), (lambda n: ((n[1] + 1) * 2 - n[2]).item(), 2)])
def test_what_few_calls_make_of_it_is_computed(numbers, pending, read, expected):
    assert read(numbers) == expected
    assert _cuts() == 0


def test_calls_that_were_computed_are_not_lost(numbers, pending):
    doubled = numbers * 2
    assert doubled[6].item() == 36 and _cuts() == 0
    assert (doubled + 1).tolist() == [1, 7, 13, 19, 25, 31, 37]


def test_many_calls_are_waited_for(numbers, pending):
    y = numbers
    for _ in range(5):
        y = y + 1
    assert y[0].item() == 5 and _cuts() == 1


def test_what_is_filled_is_computed(numbers, pending):
    before = numbers + 1
    numbers[2] = 7
    numbers[3:5] = numbers[1:3]
    assert numbers.tolist() == [0, 3, 7, 3, 7, 15, 18] and _cuts() == 0
    assert before.tolist() == [1, 4, 7, 10, 13, 16, 19]
    torch_lazy.sync()
    assert numbers.tolist() == [0, 3, 7, 3, 7, 15, 18]


def test_what_is_filled_first_among_many_calls_is_computed(numbers, pending):
    """As a cache's length is, whose keys and values are filled behind it."""
    caches = [torch.ones(4, device="lazy") for _ in range(96)]
    torch_lazy.sync()
    torch_lazy.reset_metrics()
    numbers.zero_()
    for cache in caches:
        cache.zero_()
    assert bool(numbers[1] == 0) and _cuts() == 0


def test_what_is_written_again_is_waited_for(numbers, pending):
    y = numbers + 1
    y.add_(numbers)
    assert y.tolist() == [1, 7, 13, 19, 25, 31, 37] and _cuts() == 1


def test_what_was_written_before_is_read_as_it_was_then(numbers, pending):
    before = numbers + 1
    numbers.zero_()
    assert before[1].item() == 4
    assert numbers[1].item() == 0 and before[2].item() == 7


def test_floats_are_waited_for(pending):
    x = torch.full((3,), 2.0, device="lazy")
    torch_lazy.sync()
    y = pending + 1
    cuts = _cuts()
    assert x[0].item() == 2.0 and _cuts() == cuts + 1
    del y


def test_a_counter_in_place_counts():
    counter, x = torch.zeros((), dtype=torch.int64, device="lazy"), torch.ones(4, device="lazy")
    for step in range(30):
        for _ in range(10):
            x = torch.sin(x) + 1
        assert counter.item() == step
        counter += 1
        assert counter.item() == step + 1


def test_an_index_out_of_range_is_told(numbers, pending):
    bad = torch.tensor([2, 99], device="lazy")
    torch_lazy.sync()
    with pytest.raises((IndexError, RuntimeError)):
        numbers.gather(0, bad).tolist()


def test_pending_work_is_right_after_all(numbers, pending):
    assert numbers[1].item() == 3
    expected = 1.0
    for _ in range(12):
        expected = expected * 1.5 + 0.5
    torch.testing.assert_close(pending.cpu(), torch.full((5,), expected))
