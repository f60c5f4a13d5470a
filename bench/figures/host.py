# SPDX-License-Identifier: Apache-2.0
"""Whole programs in Python and in C++: the host's time a step, over that on a device whose kernels return at once.

The host's time of the device is a step's with option backend=null, which computes nothing. Programs are those of test/programs,
never waited for, and Adam over 300 tensors.
"""

import os
import statistics
import subprocess
import time

import null_device
from figures.fresh import Figure, run, use

PROGRAMS = ["gpt", "resnet", "mlp", "gru", "adam300"]
STEPS, WARM, ROUNDS = 120, 40, 5


def adam300(options):
    import torch

    parameters = [torch.nn.Parameter(torch.ones(8, 8).to(options.device)) for _ in range(300)]
    optimizer = torch.optim.Adam(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones(8, 8).to(options.device)
    for step in range(options.steps):
        optimizer.step()
        options.after_step(step + 1)


def step_seconds(program, device):
    """A step's median."""
    import importlib

    import torch

    from programs import Options

    torch.set_num_threads(1)
    use(device)
    if device == "null":
        null_device.use()
    ends = []
    train = adam300 if program == "adam300" else importlib.import_module(program).train
    train(Options(device=device, steps=STEPS, read_every=0, after_step=lambda step: ends.append(time.perf_counter())))
    return statistics.median(b - a for a, b in zip(ends[WARM:], ends[WARM + 1:]))


def step_seconds_of_cpp(build, program, device):
    environment = {**os.environ, "LAZY_BACKEND": "null", "LAZY_COMPILE": "sync"}
    command = [build / "bin" / "host_bench", program, device]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def figures(build):
    for program in PROGRAMS:
        python, cpp = [], []
        for _ in range(ROUNDS):
            floor = run(build, step_seconds, program, "null", LAZY_BUILD_DIR=str(build))
            lazy = run(build, step_seconds, program, "lazy", LAZY_BACKEND="null", LAZY_COMPILE="sync")
            python.append(lazy / floor)
            cpp.append(step_seconds_of_cpp(build, program, "lazy") / step_seconds_of_cpp(build, program, "null"))
        yield Figure(f"{program}: the host's time a step, over the null device's", statistics.median(python), "<= 1.25")
        yield Figure(f"{program} in C++: the same", statistics.median(cpp), "<= 1.25")
