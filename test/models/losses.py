#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the models in bench/models for some steps, and compares losses and results with eager's on the CPU.

    losses.py --rows "mixer*,llama" --backends stand_in

All under autocast to bfloat16. Backend `cpu` runs the kernels for the CPU, `stand_in` those for CUDA. A loss may be as far from
eager's as eager's own is from the one without autocast, and a little more: kernels round less often than eager does.
"""

import json
import sys

from records import chosen, for_each, in_process, parser

STEPS = 4


def run(name, device, dtype):
    """One model's losses, and the means of what it infers, as numbers."""
    import torch
    from models import inference, named, training

    if device == "lazy":
        import torch_lazy  # noqa: F401
    torch.set_num_threads(1)
    dtype = getattr(torch, dtype)
    step = training(named(name), device, dtype=dtype)
    losses = [step(index).item() for index in range(STEPS)]
    step = inference(named(name), device, dtype=dtype)
    for index in range(3):
        results = step(index)
    sizes = [result.float().abs().mean().item() for result in results if result.is_floating_point() and result.numel() > 0]
    print(json.dumps({"losses": losses, "results": sizes}))


def numbers(row, device, options, dtype="bfloat16", **environment):
    """The numbers that `run` prints in a process of its own; what went wrong, if it is a text."""
    done, said = in_process(__file__, "--run", row.name, device, dtype, seconds=options.seconds, **environment)
    return json.loads(said.splitlines()[-1]) if done else said


def differences(ours, eager, exact):
    """Numbers that are further from eager's than they may be, with the distances."""
    found = []
    for what in eager:
        if len(ours[what]) != len(eager[what]):
            found.append(f"{what}: {len(ours[what])} of {len(eager[what])}")
        for k, (a, b, c) in enumerate(zip(ours[what], eager[what], exact[what])):
            allowed = 2 * abs(b - c) + 0.01 * abs(b) + 1e-4
            if not abs(a - b) <= allowed:
                found.append(f"{what}[{k}]: {a:.5g}, eager {b:.5g}, without autocast {c:.5g}")
    return found


def compare_row(row, options):
    """(the row, lines to be printed, whether all is well)"""
    eager, exact = numbers(row, "cpu", options), numbers(row, "cpu", options, "float32")
    if isinstance(eager, str) or isinstance(exact, str):
        return row, [f"{row.name}: eager fails: {eager if isinstance(eager, str) else exact}"], False
    lines, good = [], True
    for backend in options.backends.split(","):
        ours = numbers(row, "lazy", options, LAZY_BACKEND=backend, LAZY_COMPILE=options.compile)
        found = [ours] if isinstance(ours, str) else differences(ours, eager, exact)
        shown = "" if isinstance(ours, str) else " ".join(f"{a:.6g}/{b:.6g}" for a, b in zip(ours["losses"], eager["losses"]))
        lines += [f"{row.name} {backend}: {'as eager' if not found else 'DIFFERS'}; losses, ours/eager's: {shown}", *found]
        good = good and not found
    return row, lines, good


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--backends", default="cpu,stand_in")
    options.add_argument("--compile", default="sync", choices=["sync", "off"])
    options.add_argument("--run", nargs=3, help="train this row on this device with this dtype in this process, and no more")
    options = options.parse_args()
    if options.run:
        return run(*options.run)
    rows, failed = chosen(options.rows), []
    for row, lines, good in for_each(rows, options.jobs, lambda row: compare_row(row, options)):
        print("\n".join(lines), flush=True)
        if not good:
            failed.append(row.name)
    print(f"losses of models: {len(rows)} models on {options.backends}; not as eager's: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
