# SPDX-License-Identifier: Apache-2.0
"""Three places where PyTorch's Python code mistakes our device; each patch says why, and a test holds each."""
import torch
import torch._lazy
from torch.utils.dlpack import DLDeviceType

from .control import sync

_dlpack_device = torch.Tensor.__dlpack_device__


def _lazy_dlpack_device(self):
    # PyTorch compares the device's type with the literal "privateuse1", which no renamed device has.
    if self.device.type == "lazy":
        return (DLDeviceType.kDLExtDev, self.device.index or 0)
    return _dlpack_device(self)


def _mark_step(device="", wait=False):
    # torch.testing marks a step of the TorchScript lazy backend for any device of the name "lazy".
    sync()


def _take_for_ordinary(function):
    # The function has a list of device types that it treats as special, and means the TorchScript lazy backend.
    constants = tuple(
        tuple(name for name in constant if name != "lazy") if isinstance(constant, tuple) and "xla" in constant else constant
        for constant in function.__code__.co_consts
    )
    function.__code__ = function.__code__.replace(co_consts=constants)


def apply():
    # Otherwise copies lose what tensors share, strides and offsets.
    _take_for_ordinary(torch.Tensor.__deepcopy__)
    torch.Tensor.__dlpack_device__ = _lazy_dlpack_device
    torch._lazy.mark_step = _mark_step
