# SPDX-License-Identifier: Apache-2.0
"""Two places where PyTorch's Python code mistakes our device; each patch says why, and a test holds each."""
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


def apply():
    torch.Tensor.__dlpack_device__ = _lazy_dlpack_device
    torch._lazy.mark_step = _mark_step
