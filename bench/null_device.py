# SPDX-License-Identifier: Apache-2.0
"""The device "null" in Python (null_device.h): kernels make tensors and compute nothing, so that a program takes what PyTorch itself takes on the host."""

import os
import types

import torch


def use():
    """Loads it, from the build folder or kit that LAZY_BUILD_DIR names."""
    torch.ops.load_library(f"{os.environ['LAZY_BUILD_DIR']}/lib/libnull_device.so")
    module = types.ModuleType("torch.null")
    module.is_available, module.device_count = lambda: True, lambda: 1
    module._is_in_bad_fork, module.manual_seed_all, module._lazy_init = lambda: False, lambda seed: None, lambda: None
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    torch._register_device_module("null", module)
    torch.autograd.set_multithreading_enabled(False)
