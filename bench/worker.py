# SPDX-License-Identifier: Apache-2.0
"""Runs one workload in one variant, as many steps as its input says: worker.py WORKLOAD VARIANT [READS].

Prints "ready"; then, for each number read, runs that many steps and prints the seconds they took; for "counts", what the
device has counted so far. All results are
held until the sync at the end of the block, since a lazy device does not compute what nobody holds. READS: when the loss is
looked at (reads.py).
"""

import importlib
import json
import os
import sys
import time

import torch

import null_device
from reads import reading
from workloads.variant import VARIANTS


def answers():
    """Standard output for the answers alone; what libraries print goes to standard error."""
    ours = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return ours


def main():
    out = answers()
    workload, variant = sys.argv[1], VARIANTS[sys.argv[2]]
    if variant.device == "lazy":
        import torch_lazy  # noqa: F401
    elif variant.device == "null":
        null_device.use()

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(variant.deterministic)
    step = importlib.import_module(f"workloads.{workload}").make(variant)
    step = reading(step, sys.argv[3] if len(sys.argv) > 3 else "never")
    variant.synchronize()
    print("ready", file=out, flush=True)
    index = 0
    for line in sys.stdin:
        if line.strip() == "counts":
            print(json.dumps(variant.counts()), file=out, flush=True)
            continue
        start = time.perf_counter()
        held = []
        for _ in range(int(line)):
            variant.begin_step()
            held.append(step(index))
            index += 1
        variant.synchronize()
        print(time.perf_counter() - start, file=out, flush=True)
        del held


if __name__ == "__main__":
    main()
