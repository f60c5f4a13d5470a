# SPDX-License-Identifier: Apache-2.0
"""torch.accelerator: our device once it holds a tensor, and before that where the program asks.

PyTorch's own code asks as well, where a program of the CPU knows nothing of us: c10d for a backend, DataParallel for devices, a
loader whether to pin memory. It is answered as if we were not there until the device is used (device/accelerator.cc).
"""
import functools
import sys
import types

import torch

_ops = torch.ops.torch_lazy

# Timers ask when they are imported, and must wait for whatever is running.
_ASKS_FOR_PROGRAMS = "torch.utils.benchmark"

# DataParallel takes all devices there are; checkpoints are written beside work on a device.
_LOOKING_FOR_A_DEVICE = (
    "torch._utils._get_available_device_type",
    "torch.distributed.checkpoint.filesystem._write_files_from_queue",
)


def _is_pytorchs(module):
    return f"{module}.".startswith("torch.") and not module.startswith(_ASKS_FOR_PROGRAMS)


def _asked(function):
    """The function, which answers a program's question for the program."""

    @functools.wraps(function)
    def asked(*args, **kwargs):
        if torch.compiler.is_dynamo_compiling() or _is_pytorchs(sys._getframe(1).f_globals.get("__name__", "")):
            return function(*args, **kwargs)
        _ops._count_questions(1)
        try:
            return function(*args, **kwargs)
        finally:
            _ops._count_questions(-1)

    return asked


def _module_of(original):
    @functools.wraps(original)
    def module_of(device=None):  # it keeps its answers, and that to None changes
        return original(torch._C._get_accelerator() if device is None else device)

    return module_of


def is_available():
    """True; but not to those who look for any device, before this one is used."""
    asks = sys._getframe(1)
    name = f"{asks.f_globals.get('__name__')}.{asks.f_code.co_name}"
    return name not in _LOOKING_FOR_A_DEVICE or _ops._is_in_use()


def _activities(original):
    @functools.wraps(original)
    def activities():
        found = original()
        return found if _ops._is_in_use() else found - {torch.profiler.ProfilerActivity.PrivateUse1}

    return activities


def apply():
    accelerator = torch.accelerator
    for name in accelerator.__all__:
        if isinstance(getattr(accelerator, name), types.FunctionType):
            setattr(accelerator, name, _asked(getattr(accelerator, name)))
    for name in ("__enter__", "__exit__"):
        setattr(accelerator.device_index, name, _asked(getattr(accelerator.device_index, name)))
    torch.get_device_module = _asked(_module_of(torch.get_device_module))
    torch.autograd._supported_activities = _activities(torch.autograd._supported_activities)
