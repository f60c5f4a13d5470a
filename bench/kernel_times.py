# SPDX-License-Identifier: Apache-2.0
"""Where the GPU's time in a step goes: kernel_times.py WORKLOAD VARIANT [--warm 30] [--steps 5] [--lines 40]

Prints, for each kernel by name, milliseconds a step, launches a step, and milliseconds a step for which nothing ran before it; and
the step's time without the profiler, under which the GPU idles longer.
"""

import argparse
import collections
import importlib
import time

import torch

from workloads.variant import VARIANTS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("variant", choices=VARIANTS)
    parser.add_argument("--warm", type=int, default=30)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--lines", type=int, default=40)
    arguments = parser.parse_args()
    variant = VARIANTS[arguments.variant]
    if variant.device == "lazy":
        import torch_lazy  # noqa: F401
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(variant.deterministic)
    step = importlib.import_module(f"workloads.{arguments.workload}").make(variant)

    def run(steps):
        start = time.perf_counter()
        for index in range(steps):
            variant.begin_step()
            held = step(index)  # noqa: F841
        variant.synchronize()
        return (time.perf_counter() - start) / steps * 1e3

    for _ in range(3):
        run(arguments.warm // 3)
    step_ms = min(run(arguments.steps) for _ in range(3))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run(arguments.steps)

    kernels, end = collections.defaultdict(lambda: [0.0, 0.0, 0.0]), None
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    for event in sorted(events, key=lambda event: event.time_range.start):
        idle_us = max(0, event.time_range.start - end) if end is not None else 0
        end = max(end or 0, event.time_range.end)
        for of, value in enumerate((event.device_time_total / 1e3, 1, idle_us / 1e3)):
            kernels[event.name][of] += value / arguments.steps
    busy_ms, launches, idle_ms = (sum(entry[of] for entry in kernels.values()) for of in range(3))
    print(f"{arguments.workload} {arguments.variant}: {step_ms:.3f} ms a step, kernels {busy_ms:.3f} ms in {launches:.0f} launches, "
          f"{idle_ms:.3f} ms idle in the profile")
    for name, (ms, count, idle_ms) in sorted(kernels.items(), key=lambda entry: -entry[1][0])[: arguments.lines]:
        print(f"{ms:9.4f} {count:7.1f} {idle_ms:9.4f}  {name[:150]}")


if __name__ == "__main__":
    main()
