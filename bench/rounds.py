# SPDX-License-Identifier: Apache-2.0
"""Variants of a workload in processes of their own, measured in turns.

A process a variant, since an allocator's tuning or a loaded library would reach the others; in turns, since the speed
of a shared machine changes by the second.
"""

import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

from workloads.variant import EAGER

HERE = pathlib.Path(__file__).parent


class Process:
    """A variant of a workload under way. `limit_s`: how long one answer may take; `errors`: where what it says beside goes."""

    def __init__(self, build, workload, name, environment, limit_s=None, errors=None):
        self.limit_s = limit_s
        if workload.is_cpp:
            command = [str(build / "bin" / "train_bench"), workload.module, {"lazy": "lazy", "floor": "null"}.get(name, EAGER)]
        else:
            command = [sys.executable, str(HERE / "worker.py"), workload.module, name, workload.reads]
        paths = [str(build / "python"), os.environ.get("PYTHONPATH", "")]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
        )
        self._expect("ready")

    def run(self, steps):
        """Seconds for one step. The OpenMP threads of the process before this one spin for a while: they sleep first."""
        time.sleep(0.05)
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        return float(self._expect()) / steps

    def counts(self):
        """What the device has counted so far."""
        self.child.stdin.write("counts\n")
        self.child.stdin.flush()
        return json.loads(self._expect())

    def pin(self, processors):
        """Its threads, those of libraries too, run on these alone from now on."""
        for task in os.listdir(f"/proc/{self.child.pid}/task"):
            os.sched_setaffinity(int(task), processors)

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        self.child.kill()
        self.child.wait()

    def _expect(self, word=None):
        if self.limit_s is not None and not select.select([self.child.stdout], [], [], self.limit_s)[0]:
            self.kill()
            raise RuntimeError(f"{' '.join(self.child.args)} killed: no answer after {self.limit_s:.0f} s")
        line = self.child.stdout.readline().strip()
        if not line or (word and line != word):
            raise RuntimeError(f"{' '.join(self.child.args)} ended: exit code {self.child.wait()}")
        return line


def steady(build, workload, environments, rounds, processors=None):
    """{variant: seconds a step, round by round}; a variant that fails maps to its error. `processors`: all variants on the same, once
    they are warm, since others' programs may make one slower than the next.
    """
    results, processes = {}, {}
    for name, environment in environments.items():
        try:
            processes[name] = Process(build, workload, name, environment)
            for _ in range(workload.warm_blocks):
                processes[name].run(workload.block)
            if processors is not None:
                processes[name].pin(processors)
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
