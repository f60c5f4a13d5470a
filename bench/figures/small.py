# SPDX-License-Identifier: Apache-2.0
"""Programs that wait every few calls, once their kernels are there: times faster than eager."""

import tempfile

from rounds import ratio, steady

from catalog import Workload
from figures.fresh import Figure

ROUNDS = 15
WORKLOADS = [
    Workload("generate, one token after another", "generate", 0.95, block=4, warm_blocks=20),
    Workload("branches on values", "branches", 0.95, block=10, warm_blocks=20),
    Workload("Newton's method on single numbers", "numbers", 0.95, block=50, warm_blocks=20),
]


def figures(build):
    for workload in WORKLOADS:
        with tempfile.TemporaryDirectory() as cache:
            environments = {"eager": {}, "lazy": {"LAZY_CACHE_DIR": cache}}
            results = steady(build, workload, environments, ROUNDS)
        yield Figure(f"{workload.title}: times faster than eager", ratio(results, "lazy"), f">= {workload.target}")
