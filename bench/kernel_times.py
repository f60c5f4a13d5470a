# SPDX-License-Identifier: Apache-2.0
"""Where the GPU's time in a step goes: kernel_times.py WORKLOAD VARIANT [--warm 30] [--steps 5] [--lines 40]

Prints, for each kernel by name, milliseconds a step and launches a step, and the step's time without the profiler.
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

    kernels = collections.defaultdict(lambda: [0.0, 0])
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[event.name][0] += event.device_time_total / 1e3 / arguments.steps
            kernels[event.name][1] += 1 / arguments.steps
    busy_ms, launches = (sum(entry[of] for entry in kernels.values()) for of in (0, 1))
    print(f"{arguments.workload} {arguments.variant}: {step_ms:.3f} ms a step, kernels {busy_ms:.3f} ms in {launches:.0f} launches")
    for name, (ms, count) in sorted(kernels.items(), key=lambda entry: -entry[1][0])[: arguments.lines]:
        print(f"{ms:9.4f} {count:7.1f}  {name[:150]}")


if __name__ == "__main__":
    main()
