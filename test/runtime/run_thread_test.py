# SPDX-License-Identifier: Apache-2.0
"""Short traces run on a thread of ours while the program records the next: nothing but the time may tell."""

import os
import subprocess
import sys

import faults  # before torch_lazy
import pytest
import torch
import torch_lazy

from child import in_child
from step_programs import ALL, STEPS, batch_of, random_loops, train


def _run(program):
    torch.set_num_threads(2)
    results = [program(), program()]
    metrics = torch_lazy.metrics()
    return results, metrics["traces_ahead"], metrics["traces_run"]


@pytest.mark.parametrize("program", ALL)
def test_what_it_computes(program):
    expected, ahead, _ = in_child(_run, program, compile="sync", overlap="0")
    assert ahead == 0
    results, ahead, run = in_child(_run, program, compile="sync")
    assert results == expected
    assert (0 if program is random_loops else STEPS / 2) < ahead < run  # it waits for most of its traces, which are tiny
    results, _, _ = in_child(_run, program, compile="async")
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-4)


def _wait_for_tiny_traces():
    torch.set_num_threads(2)
    x = torch.ones(4).to("lazy")
    values = [(x * step).tanh().sum().item() for step in range(STEPS)]
    metrics = torch_lazy.metrics()
    return len(values), metrics["traces_run"], metrics["traces_ahead"]


def test_a_tiny_trace_runs_where_somebody_waits_for_it():
    assert in_child(_wait_for_tiny_traces, compile="sync") == (STEPS, STEPS, 0)


def _count(overlap):
    torch_lazy.set_option("overlap", overlap)
    torch.set_num_threads(2)
    train()
    torch_lazy.reset_metrics()
    train()
    metrics = torch_lazy.metrics()
    return {name: metrics[name] for name in ("calls_total", "kernel_launches", "library_calls", "traces_run", "trace_misses")}


def _nothing():
    torch.set_num_threads(2)
    for _ in range(5):
        torch_lazy.sync()
        assert (torch.ones(3, device="lazy") + 1).tolist() == [2] * 3
        torch_lazy.sync()


def test_a_wait_for_nothing():
    in_child(_nothing, compile="sync")


def _peak(overlap):
    torch_lazy.set_option("overlap", overlap)
    torch.set_num_threads(2)
    train()
    torch_lazy.reset_metrics()
    before = torch_lazy.metrics()["bytes_live"]
    train()
    return torch_lazy.metrics()["bytes_peak"] - before


def test_memory_is_one_batch_more_at_most():
    x, y = batch_of(0)
    room = x.nbytes + y.nbytes + 2 * 64  # in blocks of 64 bytes
    assert in_child(_peak, "1", compile="sync") <= in_child(_peak, "0", compile="sync") + room


def test_counts_do_not_tell():
    assert in_child(_count, "1", compile="sync") == in_child(_count, "0", compile="sync")


def _fail_in_the_middle(place):
    """A fault in some run that nobody waits for: it is raised at a later call, and nothing is silently old."""
    torch.set_num_threads(2)

    def steps(state, count):
        for _ in range(count):
            state.add_(1)
            held.append(state * 2)

    held = []
    state = torch.zeros(3000, device="lazy")
    steps(state, 12)
    faults.fail_after(place)
    raised = False
    try:
        steps(state, 12)
        assert state[0].item() == 24
    except RuntimeError:
        raised = True
    faults.fail_after(-1)
    for k, value in enumerate(held):  # each is right, or says that it is not there
        try:
            assert value[7].item() == 2 * k + 2
        except RuntimeError as error:
            assert raised and "has no value" in str(error)
    other = torch.zeros(3000, device="lazy")
    steps(other, 12)
    assert other.tolist() == [12] * 3000
    assert held[-1].tolist() == [24] * 3000
    return raised, torch_lazy.metrics()["traces_ahead"]


def test_a_fault_is_raised_later():
    results = [in_child(_fail_in_the_middle, place, compile="sync") for place in range(6)]
    assert any(raised for raised, _ in results)
    assert sum(ahead > 12 for _, ahead in results) >= 4, results


PROGRAM = """
import os, sys, torch, torch_lazy
torch.set_num_threads(2)
x = torch.ones(4096, device="lazy")
for step in range(200):
    x.mul_(0.5).add_(1)
    if step == 100 and sys.argv[1] == "fork":
        child = os.fork()
        if child == 0:
            del x  # a storage of the parent's
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
if sys.argv[1] == "exit":
    sys.exit(5)
if sys.argv[1] == "raise":
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize(("how", "code"), [("exit", 5), ("end", 0), ("fork", 0), ("raise", -2)])
def test_ends_of_processes(how, code):
    environment = {**os.environ, "LAZY_COMPILE": "sync"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, timeout=100)
    assert done.returncode == code, done.stderr
