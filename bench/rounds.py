# SPDX-License-Identifier: Apache-2.0
"""Variants of a workload in processes of their own, measured in turns.

A process a variant, since an allocator's tuning or a loaded library would reach the others; in turns, since the speed
of a shared machine changes by the second.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

from workloads.variant import EAGER

HERE = pathlib.Path(__file__).parent


class Process:
    def __init__(self, build, workload, name, environment):
        if workload.is_cpp:
            command = [str(build / "bin" / "train_bench"), workload.module, "lazy" if name == "lazy" else EAGER]
        else:
            command = [sys.executable, str(HERE / "worker.py"), workload.module, name]
        paths = [str(build / "python"), os.environ.get("PYTHONPATH", "")]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
        )
        self._expect("ready")

    def run(self, steps):
        """Seconds for one step. The OpenMP threads of the process before this one spin for a while: they sleep first."""
        time.sleep(0.05)
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        return float(self._expect()) / steps

    def close(self):
        self.child.stdin.close()
        self.child.wait()

    def _expect(self, word=None):
        line = self.child.stdout.readline().strip()
        if not line or (word and line != word):
            raise RuntimeError(f"{' '.join(self.child.args)} ended: exit code {self.child.wait()}")
        return line


def steady(build, workload, environments, rounds):
    """{variant: seconds a step, round by round}; a variant that fails maps to its error."""
    results, processes = {}, {}
    for name, environment in environments.items():
        try:
            processes[name] = Process(build, workload, name, environment)
            for _ in range(workload.warm_blocks):
                processes[name].run(workload.block)
            results[name] = []
        except RuntimeError as error:
            results[name] = error
            processes.pop(name, None)
    for _ in range(rounds):
        for name, process in processes.items():
            results[name].append(process.run(workload.block))
    for process in processes.values():
        process.close()
    return results


def cold(build, workload, environments, rounds, prepare, steps=2):
    """{variant: seconds a step of the first steps}, each in a fresh process; `prepare` empties the caches."""
    results = {name: [] for name in environments}
    for _ in range(rounds):
        for name, environment in environments.items():
            prepare()
            process = Process(build, workload, name, environment)
            results[name].append(process.run(steps))
            process.close()
    return results


def ratio(results, name, base="eager"):
    """How many times faster than the base: the median over the rounds of what the two took side by side."""
    return statistics.median(b / a for a, b in zip(results[name], results[base], strict=True))
