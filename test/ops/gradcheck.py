#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of op_db's entries on device lazy against finite differences, in double precision: backward, forward mode,
batched, and backward twice, as PyTorch's own tests check them.

    gradcheck.py [--only add,nn.functional.*] [--dtype float64] [--jobs 2] [--limit SECONDS]

What eager execution on the CPU fails is left out, and counted. Prints "N of M ops passed"; exits with 1 unless all have.
"""

import fnmatch
import sys
import time
import unittest

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestGradients

import pool
from exclusions import reason_to_exclude
from suite import full_name, parser, start_worker

NOT_PASSED_BY_EAGER = "eager fails"


def checks_of(op):
    yield "gradcheck", {"check_forward_ad": op.supports_forward_ad}
    if op.supports_gradgrad:
        yield "bwgrad_bwgrad", {}


def check(op, dtype, device):
    """The first failure; None if there is none."""
    for name, options in checks_of(op):
        torch.manual_seed(0)
        try:
            TestGradients()._check_helper(device, dtype, op, op.get_op(), name, **options)
        except unittest.SkipTest:
            pass
        except Exception as error:
            return f"{name}: {type(error).__name__}: {' '.join(str(error).split())}"
    return None


def check_both(op, dtype):
    return {"failure": NOT_PASSED_BY_EAGER if check(op, dtype, "cpu") else check(op, dtype, "lazy")}


def main():
    options = parser()
    options.set_defaults(dtype=torch.float64)
    arguments = options.parse_args()
    ops = {full_name(op): op for op in op_db
           if op.supports_autograd and arguments.dtype in op.supported_backward_dtypes("cpu") and not reason_to_exclude(op)
           and any(fnmatch.fnmatchcase(full_name(op), pattern) for pattern in arguments.only)}
    started = time.monotonic()
    failures = {}
    for name, result, death, _ in pool.run(
        ops, start=lambda: start_worker(arguments), work=lambda name: check_both(ops[name], arguments.dtype),
        num_workers=arguments.jobs, limit_s=arguments.limit,
    ):
        failures[name] = death or result["failure"]
        if failures[name]:
            verdict = "left out" if failures[name] == NOT_PASSED_BY_EAGER else "FAILED"
            print(f"{verdict} {name}: {failures[name][:300]}", flush=True)
    outcomes = list(failures.values())
    left_out = outcomes.count(NOT_PASSED_BY_EAGER)
    passed = outcomes.count(None)
    print(f"gradcheck {arguments.dtype}: {passed} of {len(outcomes) - left_out} ops passed, {left_out} left out that eager fails "
          f"({time.monotonic() - started:.0f} s)")
    sys.exit(passed + left_out < len(outcomes) or passed == 0)


if __name__ == "__main__":
    main()
