# SPDX-License-Identifier: Apache-2.0
"""Whole trainings: losses equal eager's, and nothing is compiled after three steps.

Eager's drift is what it makes, within the run, of another number of threads and of first weights that are off by a rounding.
LAZY_TEST_DEVICE=cpu compares the programs with themselves, without the library; LAZY_TEST_EAGER=cuda compares with eager CUDA,
whose drift is taken to be its distance from the CPU.
"""

import importlib
import json
import os
import unittest

import torch

from programs import Options

DEVICE = os.environ.get("LAZY_TEST_DEVICE", "lazy")
EAGER = os.environ.get("LAZY_TEST_EAGER", "cpu")
PROGRAMS = ["mlp", "resnet", "gpt", "gru", "lstm", "dropout", "branch"]

if DEVICE == "lazy":
    import torch_lazy


def train(program, **options):
    return importlib.import_module(program).train(Options(**options))


def error(a, b):
    """The largest |a - b|, relative to b where that is above 1."""
    return max(abs(x - y) / max(1.0, abs(y)) for x, y in zip(a, b, strict=True))


class Losses(unittest.TestCase):
    # The drift at one step may be small by chance, so the last steps' largest is taken, on both sides.
    LAST = slice(-5, None)
    # A few roundings of a float are allowed.
    FLOOR = 16 * 1.19e-7

    def equal_eager_within_its_own_drift(self, program):
        losses = {}
        for device, threads in ("cpu", 1), (EAGER, 2), (DEVICE, 2):
            torch.set_num_threads(threads)
            losses[device, threads] = train(program, device=device, is_off_by_a_rounding=threads == 1)
        eager, lazy = losses[EAGER, 2], losses[DEVICE, 2]
        drift = error(losses["cpu", 1][self.LAST], eager[self.LAST])
        end = error(lazy[self.LAST], eager[self.LAST])
        start = error(lazy[:5], eager[:5])
        print(f"{program}: loss {eager[0]:.6f} -> {eager[-1]:.6f}; eager's drift {drift:.2e}; error {end:.2e}, "
              f"in the first five steps {start:.2e}", flush=True)
        self.assertLessEqual(start, 1e-5)
        self.assertLessEqual(end, max(3 * drift, self.FLOOR))


@unittest.skipIf(DEVICE == "cpu", "eager execution compiles nothing")
class Steady(unittest.TestCase):
    def asks_for_nothing_after_three_steps(self, program, read_every):
        torch_lazy.set_option("compile", "sync")
        torch.set_num_threads(2)
        num_paths = 2 if program == "branch" else 1
        first, last = 3 * num_paths, 3 * num_paths + 20
        counts = {}

        def count(step):
            if step in (first, last):
                metrics = json.loads(torch.ops.torch_lazy.metrics())
                counts[step] = metrics["trace_misses"], metrics["kernels_compiled"] + metrics["kernels_from_disk"]

        train(program, device=DEVICE, steps=last, read_every=read_every, after_step=count)
        self.assertEqual(counts[last], counts[first], "(trace misses, kernels asked for)")


def add_test(case, method, program, suffix="", **arguments):
    def test(self):
        getattr(self, method)(program, **arguments)

    setattr(case, f"test_{program}_{method}{suffix}", test)


for name in PROGRAMS:
    add_test(Losses, "equal_eager_within_its_own_drift", name)
    for every in 1, 10, 0:
        add_test(Steady, "asks_for_nothing_after_three_steps", name, f"_reading_every_{every}", read_every=every)

if __name__ == "__main__":
    unittest.main()
