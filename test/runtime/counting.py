# SPDX-License-Identifier: Apache-2.0
"""Counts, step by step, of a program that starts with an empty trie."""

import multiprocessing
import traceback

import torch
import torch_lazy


def counts():
    """(traces that were not known, kernels asked for)"""
    metrics = torch_lazy.metrics()
    return metrics["trace_misses"], metrics["kernels_compiled"] + metrics["kernels_from_disk"]


def _watch(program, pipe):
    torch.set_num_threads(1)
    torch_lazy.set_option("compile", "sync")
    try:
        seen = [counts()]
        for _ in program():
            seen.append(counts())
        torch_lazy.sync()
        pipe.send(seen)
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


def counts_by_step(program):
    """The counts at the start of a program and after each of its steps; it yields after each."""
    context = multiprocessing.get_context("fork")  # of a process that has not used the device yet
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_watch, args=(program, theirs))
    child.start()
    theirs.close()
    seen = ours.recv()
    child.join()
    assert isinstance(seen, list), seen
    return seen


def last_change(seen):
    """The last step at which a count changed; 0 if none did."""
    return max(step for step in range(len(seen)) if step == 0 or seen[step] != seen[step - 1])
