# SPDX-License-Identifier: Apache-2.0
"""The most bytes that tensors took at a time, in the programs of test/programs."""

import tempfile

from figures.fresh import Figure, run, use

PROGRAMS = ["mlp", "resnet", "gpt", "gru", "lstm", "dropout", "branch"]


def peak_bytes(program, device, build):
    import ctypes
    import importlib

    import torch

    torch.set_num_threads(1)
    counted = ctypes.CDLL(f"{build}/lib/liballocations.so").peak_bytes if device == "cpu" else None
    metrics, _ = use(device)
    from programs import Options

    importlib.import_module(program).train(Options(device=device, steps=20))
    if counted is None:
        return metrics()["bytes_peak"]
    counted.restype = ctypes.c_int64
    return counted()


def figures(build):
    for program in PROGRAMS:
        eager = run(build, peak_bytes, program, "cpu", str(build))
        for mode in "sync", "off":
            with tempfile.TemporaryDirectory() as cache:
                lazy = run(build, peak_bytes, program, "lazy", str(build), LAZY_CACHE_DIR=cache, LAZY_COMPILE=mode)
            yield Figure(f"{program}, compile={mode}: bytes_peak, over eager's", lazy / eager, "<= 1")
