# SPDX-License-Identifier: Apache-2.0
"""PyTorch looks this module up by its name, torch.lazy._utils."""
import torch


def _get_device_index(device, optional=False, allow_cpu=False):
    """The index `device` means: an int, "lazy:0", torch.device, or, where `optional`, None for the current one."""
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
    return torch._C._accelerator_hooks_get_current_device()
