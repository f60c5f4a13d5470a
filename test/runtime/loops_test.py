# SPDX-License-Identifier: Apache-2.0
"""Loops find their steps by themselves: a few traces that were not known, then none, and no kernel. No trace is longer than a step,
where steps are alike.

Each loop runs in a process of its own, which starts with an empty trie.
"""

import contextlib
import io

import pytest
import torch
import torch_lazy

import loops
import other_loops
import training_loops
from child import in_child
from counting import counts_by_step, last_change

STEPS = 60

# For each loop: how many traces were not known, and after which step no count changed. What nobody reads or holds is not
# computed. Where a step is found to end amid a trace, its last call is another trace, which comes once. The evaluation comes
# every fifth step, so its second time is the tenth; and what is read at each tenth step is read at the eleventh for the second
# time.
LOOPS = {
    "training_read_each_step": (lambda: loops.training(STEPS, read_every=1), 1, 2),
    "training_read_each_tenth": (lambda: loops.training(STEPS, read_every=10), 2, 3),
    "training_never_read": (lambda: loops.training(STEPS, read_every=0), 2, 3),
    "inference_read_each_step": (lambda: loops.inference(STEPS, read_every=1), 1, 2),
    "inference_read_each_tenth": (lambda: loops.inference(STEPS, read_every=10), 1, 11),
    "inference_never_read": (lambda: loops.inference(STEPS, read_every=0), 0, 0),
    "gradient_accumulation": (lambda: loops.gradient_accumulation(STEPS), 6, 4),
    "two_models_in_turn": (lambda: loops.two_models_in_turn(STEPS), 2, 3),
    "evaluation_now_and_then": (lambda: loops.evaluation_now_and_then(STEPS), 4, 10),
    "nested": (lambda: loops.nested(STEPS), 1, 3),
    "a_log_that_holds": (lambda: loops.a_log_that_holds(STEPS), 2, 3),
    "moving_average": (lambda: loops.moving_average(STEPS), 2, 3),
    "clipping": (lambda: loops.clipping(STEPS), 2, 3),
}


@pytest.mark.parametrize("name", LOOPS)
def test_traces_settle(name):
    loop, misses, settled = LOOPS[name]
    seen = counts_by_step(loop)
    assert (seen[-1][0], last_change(seen)) == (misses, settled)


# After how many steps nothing is new: each phase has come twice since the shapes of its calls are known. Where steps are not alike,
# a tail must have been seen three times by then (lazy/trace/unlike_steps.h).
TRAINING = {
    "critics": 8,
    "accumulation_that_changes": 9,
    "shuffled_minibatches": 4,
    "evaluation_reads_accuracy": 12,
    "average_out_of_place": 5,
    "schedule": 4,
    "scaled_gradients": 10,
    "skips_by_norm": 8,
    "sizes_in_turn": 6,
    "texts_of_any_length": 17,
    "epochs": 12,
    "augmentation": 11,
    "mixup": 4,
    "recurrent_chunks": 4,
    "recurrent_cells": 12,
    "momentum_contrast": 10,
    "early_stopping": 18,
    "logs_each_tenth": 22,
    "reads_norm_and_logs": 10,
    "checkpoints": 10,
    "weight_averaging": 15,
    "distillation": 4,
    "quasi_newton": 2,
    "inner_steps": 4,
    "unfreezing": 9,
    "rate_finder": 4,
    "losses_by_chance": 6,
}
OTHERS = {
    "q_learning": 16,
    "policy_gradient": 3,
    "simulation_in_place": 4,
    "clusters": 10,
    "adversary": 4,
}
# Some known traces of these hold two steps.
UNLIKE = {"critics", "accumulation_that_changes", "epochs", "weight_averaging"}
LATER = 20


def _parameters(module, forms):
    return [pytest.param(module, name, settled) for name, settled in forms.items()]


def _watch(form, steps):
    """Of each step: traces that were not known, and cuts."""
    seen = []

    def look():
        metrics = torch_lazy.metrics()
        seen.append((metrics["trace_misses"], sum(metrics["cuts"].values())))

    look()
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in form(steps):
            look()
    return [(now[0] - before[0], now[1] - before[1]) for before, now in zip(seen, seen[1:], strict=False)]


# ATen runs the calls, so no kernel is compiled; and all are recorded, as they are where there are kernels.
@pytest.mark.parametrize("module, name, settled", _parameters(training_loops, TRAINING) + _parameters(other_loops, OTHERS))
def test_no_trace_is_new_or_longer_than_a_step(module, name, settled):
    later = in_child(_watch, getattr(module, name), settled + LATER, compile="off", disable="at_once")[settled:]
    assert len(later) == LATER
    assert [misses for misses, _ in later] == [0] * LATER
    cuts = [cuts for _, cuts in later]
    if name in UNLIKE:
        assert sum(cuts) >= LATER / 2
        return
    for begin in range(LATER):  # a step is cut at its end, or when the next one begins
        for end in range(begin, LATER):
            assert sum(cuts[begin:end + 1]) >= end - begin, cuts


def _calls_op_by_op(steps):
    weight = torch.ones(8, device="lazy")
    for _ in range(steps):
        y = weight
        for _ in range(20):
            y = torch.sin(y * 1.5)
        weight.add_(y, alpha=0.1)
    weight.cpu()
    return torch_lazy.metrics()["calls_recorded"]


def test_who_waits_for_kernels_has_them_for_the_steps_that_tell_where_a_step_ends():
    assert in_child(_calls_op_by_op, 8, compile="sync") == 0
