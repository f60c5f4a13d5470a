# SPDX-License-Identifier: Apache-2.0
"""The module torch.lazy: what PyTorch and programs call on a device's module, as on torch.cuda."""
import contextlib
import os
from typing import NamedTuple

import torch

from . import _utils, random
from ._accelerator import is_available  # noqa: F401
from .control import explain, metrics, reset_metrics, set_option, sync  # noqa: F401
from .random import (get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed,  # noqa: F401
                     seed_all, set_rng_state, set_rng_state_all)

Stream = torch.Stream
Event = torch.Event

_initialized = True  # checkpoint() saves the device's random state only where this is set


def __getattr__(name):
    if name == "default_generators":
        return random.default_generators
    raise AttributeError(f"module 'torch.lazy' has no attribute {name!r}")


def _is_in_bad_fork():
    return torch.ops.torch_lazy.is_in_bad_fork()


def _lazy_init():
    if _is_in_bad_fork():
        raise RuntimeError("lazy: the device cannot be used in a child forked after its use; use the start method 'spawn'")
    if random.on_gpu():
        torch.cuda.init()  # hands over the seeds that were set before


def init():
    _lazy_init()


def is_initialized():
    return not _is_in_bad_fork()


# Where there is a GPU, the hooks and functions of torch.accelerator are CUDA's: what concerns devices is said here.


def device_count():
    """As many as CUDA has, or one, of the CPU."""
    return _utils.call("device_count")


def current_device():
    return _utils.call("current_device")


def set_device(device):
    """Of the calling thread. A negative index changes nothing."""
    _utils.call("set_device", _utils._get_device_index(device, optional=True))


class device:
    """Makes `device` the current one inside a `with`; None or a negative index changes nothing."""

    def __init__(self, device):
        self.index = -1 if device is None else _utils._get_device_index(device, optional=True)

    def __enter__(self):
        self.before = current_device()
        set_device(self.index)
        return self

    def __exit__(self, *unused):
        set_device(self.before)
        return False


class DeviceProperties(NamedTuple):
    name: str
    total_memory: int
    multi_processor_count: int


def get_device_properties(device=None):
    index = _utils._get_device_index(device, optional=True)
    if not 0 <= index < device_count():
        raise RuntimeError(f"lazy: device {index} is out of range for {device_count()} devices")
    if random.on_gpu():
        gpu = torch.cuda.get_device_properties(index)
        return DeviceProperties(f"lazy on {gpu.name}", gpu.total_memory, gpu.multi_processor_count)
    return DeviceProperties("lazy on CPU", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
                            os.cpu_count())


def get_device_name(device=None):
    return get_device_properties(device).name


def synchronize(device=None):
    if random.on_gpu():
        torch.ops.torch_lazy.synchronize(_utils._get_device_index(device, optional=True))
    else:
        torch._C._accelerator_synchronizeDevice(_utils._get_device_index(device, optional=True))


def current_stream(device=None):
    index = _utils._get_device_index(device, optional=True)
    return torch.Stream(stream_id=0, device_index=index, device_type=int(torch._C._autograd.DeviceType.PrivateUse1))


def set_stream(stream):
    if not random.on_gpu():
        torch._C._accelerator_setStream(stream)


def stream(stream):
    """A context that makes `stream` the current one. All streams are one queue."""
    return contextlib.nullcontext(stream) if random.on_gpu() else stream


def memory_allocated(device=None):
    """In bytes; of the CPU's devices together."""
    if random.on_gpu():
        return torch.cuda.memory_allocated(_utils._get_device_index(device, optional=True))
    return int(metrics()["bytes_live"])


def max_memory_allocated(device=None):
    if random.on_gpu():
        return torch.cuda.max_memory_allocated(_utils._get_device_index(device, optional=True))
    return int(metrics()["bytes_peak"])


def empty_cache():
    torch._C._accelerator_emptyCache()


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation=True):
    return True
