# SPDX-License-Identifier: Apache-2.0
"""PyTorch looks this module up by its name, torch.lazy._utils."""
import torch


def call(operator, *arguments):
    """Calls torch.ops.torch_lazy.operator, which is no part of what modes (fake tensors, tracing) look at."""
    with torch.utils._python_dispatch._disable_current_modes():
        return getattr(torch.ops.torch_lazy, operator)(*arguments)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The index `device` means: an int, "lazy:1", torch.device, or, where `optional`, None for the current one."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if device is not None and device.type == "cpu" and allow_cpu:
        return -1
    if device is not None and device.type != "lazy":
        raise ValueError(f"lazy: expected a lazy device, got {device}")
    if device is not None and device.index is not None:
        return device.index
    if not optional:
        raise ValueError(f"lazy: expected a device with an index, got {device}")
    return call("current_device")
