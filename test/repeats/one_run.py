# SPDX-License-Identifier: Apache-2.0
"""Trains one program in this process and prints, as JSON, a digest of all its losses ("refused": deterministic algorithms do not allow it)
and what the device has counted.

    one_run.py PROGRAM DEVICE [--steps N] [--threads N] [--deterministic] [--await-kernels]

`--await-kernels`: afterwards waits for what is being compiled, so that the next process finds it on disk.
"""

import argparse
import hashlib
import importlib
import json
import pathlib
import struct
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "programs"))
COUNTS = ("traces_run", "traces_interpreted", "kernels_compiled", "kernels_from_disk", "compiles_pending", "weights_packed")


def await_kernels(torch_lazy):
    deadline = time.monotonic() + 300
    while torch_lazy.metrics()["compiles_pending"] != 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # words about choices are written in the background


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("device")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--await-kernels", action="store_true")
    arguments = parser.parse_args()
    if arguments.device == "lazy":
        import torch_lazy
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(arguments.deterministic)
    from programs import Options

    program = importlib.import_module(arguments.program)
    try:
        losses = program.train(Options(device=arguments.device, steps=arguments.steps, read_every=7))
        result = {"digest": hashlib.sha256(struct.pack(f"{len(losses)}d", *losses)).hexdigest()[:16], "last": losses[-1]}
    except RuntimeError as error:  # an operator that has no deterministic form
        if "deterministic" not in str(error):
            raise
        result = {"digest": "refused"}
    if arguments.device == "lazy":
        metrics = torch_lazy.metrics()
        result["counts"] = {name: metrics[name] for name in COUNTS}
        result["counts"]["undecided"] = metrics["tuned_products"].get("undecided", 0)  # runs of products without a choice on disk
        if arguments.await_kernels:
            await_kernels(torch_lazy)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
