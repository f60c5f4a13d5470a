# SPDX-License-Identifier: Apache-2.0
"""Loops whose first steps hold what later ones do not: from the second such step in a row on, nobody stores it (lazy/variants/unused_outputs)."""

import pytest
import torch
import torch_lazy

from child import in_child


def _steps(elements, is_held):
    """Unknown traces and bytes that are live at once, at most, of each step; the weights at the end."""
    weight, held, seen = torch.zeros(elements, device="lazy"), None, []
    for step, holds in enumerate(is_held):
        torch_lazy.sync()
        held = None
        torch_lazy.reset_metrics()
        hidden = torch.relu(torch.full((elements,), step + 1.0, device="lazy") - weight)
        weight.add_(hidden.sum() / elements)
        held = hidden if holds else None
        del hidden
        torch_lazy.sync()
        metrics = torch_lazy.metrics()
        seen.append((metrics["trace_misses"], metrics["bytes_peak"] // (4 * elements)))
    return seen, weight[0].item()


def _loop(elements, is_held, **options):
    seen, weight = in_child(_steps, elements, is_held, compile="sync", **options)
    expected = 0.0
    for step in range(len(is_held)):
        expected += max(0.0, step + 1 - expected)
    assert weight == pytest.approx(expected)
    return [list(each) for each in zip(*seen, strict=True)]


MILLION = 1 << 20


def test_what_is_held_no_more_is_stored_no_more():
    misses, arrays = _loop(MILLION, [True, True, True, False, False, False, False])
    assert misses[3:] == [0, 1, 0, 0]
    assert arrays[1:] == [2, 2, 2, 1, 1, 1]


def test_who_holds_it_again_has_it():
    misses, arrays = _loop(MILLION, [True, True, False, False, False, True, False, True])
    assert misses[2:] == [0, 1, 0, 0, 0, 0]
    assert arrays[2:] == [2, 1, 1, 2, 1, 2]


def test_steps_that_hold_it_in_turn_have_one_plan():
    misses, arrays = _loop(MILLION, [True, True] + [False, True] * 4)
    assert not any(misses[2:]) and arrays[2:] == [2] * 8


def test_little_is_not_worth_a_plan():
    misses, _ = _loop(MILLION // 8, [True] * 3 + [False] * 6)
    assert not any(misses[2:])
