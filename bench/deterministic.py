# SPDX-License-Identifier: Apache-2.0
"""What deterministic algorithms cost: the usual settings and these in turns, with kernels on disk, workload by workload.

    bench/deterministic.py [WORKLOAD ...] [--rounds 9] [--build FOLDER]

Milliseconds a step are each variant's fastest round; the ratio is the usual time over the deterministic one, by the fastest rounds and, in
brackets, by the median of the rounds' own ratios. Both run on the same four processors, if there are more. Ends with 1 if the former is
below 0.95 anywhere. LAZY_BENCH_EAGER=cuda runs what `make bench-cuda` does, from a kit.
"""

import argparse
import os
import pathlib
import sys
import tempfile

from rounds import HERE, ratio, steady
from workloads.variant import EAGER

if EAGER == "cuda":
    from cuda_catalog import WORKLOADS

    sys.path.append(str(HERE.parent / "tools"))
    from kit_environment import kit_environment
else:
    from catalog import WORKLOADS

TARGET = 0.95
USUAL, DETERMINISTIC = "lazy", "lazy+deterministic"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [workload.module for workload in WORKLOADS if not workload.is_cpp]
    parser.add_argument("workloads", nargs="*", help=f"default: {' '.join(known)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    arguments = parser.parse_args()
    missed = False
    processors = sorted(os.sched_getaffinity(0))[:4]
    print(f"{'ms a step':38}{'usual':>10}{'determ.':>10}{'ratio':>16}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {"LAZY_CACHE_DIR": folder, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        if EAGER == "cuda":
            environment = kit_environment(arguments.build, **environment)
        for workload in WORKLOADS:
            if workload.is_cpp or workload.module not in (arguments.workloads or known):
                continue
            variants = {USUAL: {**environment, "LAZY_COMPILE": "sync"}, DETERMINISTIC: environment}
            results = steady(arguments.build, workload, variants, arguments.rounds, processors)
            if errors := [str(result) for result in results.values() if isinstance(result, Exception)]:
                print(f"{workload.title:38}", *errors)
                missed = True
                continue
            usual, deterministic = min(results[USUAL]), min(results[DETERMINISTIC])
            missed |= usual < TARGET * deterministic
            median = 1 / ratio(results, USUAL, DETERMINISTIC)
            print(f"{workload.title:38}{1e3 * usual:10.3f}{1e3 * deterministic:10.3f}{usual / deterministic:10.3f} [{median:.3f}]", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
