# SPDX-License-Identifier: Apache-2.0
"""What the runners of PyTorch's databases share: arguments, workers, the report and the exit code."""

import argparse
import fnmatch
import json
import os
import pathlib
import signal
import sys
import time
import warnings

import torch

import pool
from compare import Mismatch

COMPILE_OPTION = {"interpreted": "off", "compiled": "sync", "at_once": "off"}


def parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=COMPILE_OPTION, default="interpreted")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["*"], help="names or patterns")
    parser.add_argument("--dtype", type=lambda name: getattr(torch, name), default=torch.float32)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300, help="seconds an entry may take")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all results")
    parser.add_argument("--device", default="lazy")
    return parser


def full_name(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def sync(device):
    if device.startswith("lazy"):
        torch.ops.torch_lazy.sync()


def metrics(device):
    return json.loads(torch.ops.torch_lazy.metrics()) if device.startswith("lazy") else {}


def error_of(call):
    """What the call raises; None if it returns."""
    try:
        call()
    except Exception as error:
        return error
    return None


def start_worker(arguments):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not arguments.device.startswith("lazy"):
        return
    if index := torch.device(arguments.device).index:  # as many as it takes; on the host all are the CPU
        os.environ["LAZY_DEVICES"] = str(index + 1)
    import torch_lazy

    torch._lazy.mark_step = lambda *_: None  # torch.testing calls the in-tree one for any device named lazy
    torch_lazy.set_option("compile", COMPILE_OPTION[arguments.mode])
    torch_lazy.set_option("disable", "at_once" if arguments.mode == "interpreted" else "")
    if getattr(arguments, "backend", None):
        torch_lazy.set_option("backend", arguments.backend)


def _work(check, entry, arguments):
    try:
        return {"cases": check(entry, arguments)}
    except Mismatch as mismatch:
        return {"failure": str(mismatch)}
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def run(title, entries, check, arguments):
    """Calls check(entry, arguments) for each entry of the dict, in workers; exits with 1 unless all have passed.

    What check returns is the number of cases it has compared.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers are stopped
    names = [name for name in entries if any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.only)]
    started = time.monotonic()
    results = {}
    for name, result, failure, seconds in pool.run(
        names, start=lambda: start_worker(arguments), work=lambda name: _work(check, entries[name], arguments),
        num_workers=arguments.jobs, limit_s=arguments.limit,
    ):
        results[name] = {**(result or {"failure": failure}), "seconds": round(seconds, 3)}
        if "failure" in results[name]:
            print(f"FAILED {name}: {results[name]['failure'][:400]}", flush=True)
    passed = sum("failure" not in result for result in results.values())
    cases = sum(result.get("cases", 0) for result in results.values())
    print(f"{title} {arguments.mode}: passed {passed} of {len(results)} ({cases} cases, {time.monotonic() - started:.0f} s)")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, sort_keys=True))
    sys.exit(passed < len(results) or not results)
