# SPDX-License-Identifier: Apache-2.0
"""Training a GPT on 96 lengths in any order: a new process whose kernels are on disk, and which has seen none of the lengths."""

import tempfile

from catalog import Workload
from figures.fresh import Figure
from rounds import Process

LENGTHS, PASSES, ROUNDS = 96, 3, 2
WORKLOADS = [Workload("Python", "gpt_shuffled", 1.0), Workload("C++", "gpt_shuffled", 1.0, is_cpp=True)]


def passes(build, workload, variant, environment):
    """Seconds of a step, pass by pass."""
    process = Process(build, workload, variant, environment)
    seconds = [process.run(LENGTHS) for _ in range(PASSES)]
    process.close()
    return seconds


def figures(build):
    for workload in WORKLOADS:
        with tempfile.TemporaryDirectory() as cache:
            environment = {"LAZY_CACHE_DIR": cache, "OMP_WAIT_POLICY": "passive"}
            passes(build, workload, "lazy", {**environment, "LAZY_COMPILE": "sync"})
            rounds = [[passes(build, workload, variant, environment) for variant in ("eager", "lazy")] for _ in range(ROUNDS)]
        first, later = ([min(seconds[k] for seconds in of_variant) for of_variant in zip(*rounds)] for k in (0, PASSES - 1))
        yield Figure(f"{workload.title}: first pass, eager's time over lazy's", first[0] / first[1], ">= 1")
        yield Figure(f"{workload.title}: third pass, likewise", later[0] / later[1], ">= 1.15")
