# SPDX-License-Identifier: Apache-2.0
"""Counts, step by step, of a program that starts with an empty trie."""

import torch_lazy

from child import in_child


def counts():
    """(traces that were not known, kernels asked for)"""
    metrics = torch_lazy.metrics()
    return metrics["trace_misses"], metrics["kernels_compiled"] + metrics["kernels_from_disk"]


def _watch(program):
    seen = [counts()]
    for _ in program():
        seen.append(counts())
    return seen


def counts_by_step(program):
    """The counts at the start of a program and after each of its steps; it yields after each."""
    return in_child(_watch, program, compile="sync")


def last_change(seen):
    """The last step at which a count changed; 0 if none did."""
    return max(step for step in range(len(seen)) if step == 0 or seen[step] != seen[step - 1])
