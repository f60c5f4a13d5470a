# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own op database on device lazy, against eager execution on the CPU or a GPU.

    op_db.py [--mode interpreted|compiled|at_once] [--ops add,nn.functional.*] [--dtype float32] [--jobs 2]
             [--inputs plain|noncontiguous|conjugate|negative] [--samples N] [--forms function,inplace,out]
             [--limit SECONDS] [--json FILE] [--device lazy] [--backend NAME] [--eager cpu]
             [--shard K/N [--skip N] [--stream]]

Prints the failures and, of forward and backward, "N of M ops passed"; exits with 1 unless all have passed. A crash or a hang fails its op only.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import signal
import sys
import time

import torch
from torch.testing._internal.common_methods_invocations import op_db

import pool
from check import FORMS, check
from exclusions import reason_to_exclude
from inputs import INPUTS
from suite import COMPILE_OPTION, full_name, start_worker


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=COMPILE_OPTION, default="interpreted")
    parser.add_argument("--ops", type=lambda text: text.split(","), default=["*"], help="names or patterns")
    parser.add_argument("--dtype", type=lambda name: getattr(torch, name), default=torch.float32)
    parser.add_argument("--inputs", choices=INPUTS, default="plain", help="the form of the samples' tensors")
    parser.add_argument("--jobs", type=int, default=2, help="0: in this process, as CUDA wants it")
    parser.add_argument("--samples", type=int, default=None, help="at most so many samples an op")
    parser.add_argument("--forms", type=lambda text: text.split(","), default=FORMS)
    parser.add_argument("--limit", type=float, default=300, help="seconds an op may take")
    parser.add_argument("--shard", type=lambda text: tuple(map(int, text.split("/"))), default=(0, 1), help="every Nth, from K on")
    parser.add_argument("--skip", type=int, default=0, help="the first so many of the shard")
    parser.add_argument("--stream", action="store_true", help="print a line of JSON as an op begins and as it ends, and no report")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all results")
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--backend", help="the device's; default: as it finds itself")
    parser.add_argument("--eager", choices=["cpu", "cuda"], default="cpu", help="what to compare with")
    return parser.parse_args()


def run_op(op, arguments):
    try:
        result = check(op, dtype=arguments.dtype, device=arguments.device, mode=arguments.mode, forms=arguments.forms,
                       inputs=arguments.inputs, max_samples=arguments.samples, eager=arguments.eager)
        return {key: str(value) if isinstance(value, Exception) else value for key, value in result.items()}
    except Exception as error:
        return {"forward": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers are stopped
    ops = {full_name(op): op for op in op_db if arguments.dtype in op.supported_dtypes(arguments.eager)}
    names = [name for name in ops if any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.ops)]
    excluded = [name for name in names if reason_to_exclude(ops[name])]
    names = [name for name in names if name not in excluded]
    started = time.monotonic()
    names = names[arguments.shard[0]::arguments.shard[1]][arguments.skip:]
    if arguments.stream:
        stream(names, ops, arguments)
        return
    results = {}
    for name, result, failure, seconds in pool.run(
        names, start=lambda: start_worker(arguments), work=lambda name: run_op(ops[name], arguments),
        num_workers=arguments.jobs, limit_s=arguments.limit,
    ):
        results[name] = {**(result or {"forward": failure}), "seconds": round(seconds, 3)}
        for reason in failures(results[name]):
            print(f"FAILED {name}: {reason[:300]}", flush=True)
    report(results, excluded, ops, arguments, time.monotonic() - started)
    sys.exit(any(failures(result) for result in results.values()) or not results)


def stream(names, ops, arguments):
    """In this process, for a program that reads the lines, and starts the rest anew where one op ends it. What ops print goes
    to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start_worker(arguments)
    print(json.dumps({"names": len(names)}), file=out, flush=True)
    for name in names:
        print(json.dumps({"begins": name}), file=out, flush=True)
        print(json.dumps({"ended": name, **run_op(ops[name], arguments)}), file=out, flush=True)


def failures(result):
    return [result[phase] for phase in ("forward", "backward") if result.get(phase) is not None]


def passed(results, phase):
    """Of the ops that have the phase; those that did not get so far have not passed."""
    outcomes = [result[phase] for result in results.values() if phase in result]
    return f"{outcomes.count(None)} of {len(outcomes)}"


def report(results, excluded, ops, arguments, seconds):
    for name in excluded:
        print(f"excluded {name}: {reason_to_exclude(ops[name])}")
    calls = sum(result.get("calls", 0) for result in results.values())
    inputs = "" if arguments.inputs == "plain" else f", {arguments.inputs} inputs"
    print(f"op_db {arguments.dtype} {arguments.mode}{inputs}: forward {passed(results, 'forward')} ops passed, backward "
          f"{passed(results, 'backward')}, {len(excluded)} excluded ({calls} calls, {seconds:.0f} s)")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
