# SPDX-License-Identifier: Apache-2.0
"""What op_db cannot show of a device, each with a reason that holds for every backend."""

import os

import torch

# Entries that are not run.
EXCLUDED = {
    "jiterator": "torch.cuda.jiterator compiles for tensors of device cuda by name; eager on the CPU raises as well",
}

# Their tensor arguments after the first must be on the CPU, on every device.
HOST_ARGUMENTS = {"tensor_split"}

# Their numbers are whatever the memory held.
UNINITIALIZED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}

# On a GPU they return a seed and an offset that nobody has written where there is no dropout.
UNINITIALIZED_ON_CUDA = {"torch.ops.aten._efficient_attention_forward", "torch.ops.aten._flash_attention_forward"}

# They draw from the default generator, which is eager's own, and numbers must be equal. A GPU's generator yields other
# numbers than the CPU's, so between these two only the rest is compared.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "pca_lowrank",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "svd_lowrank", "uniform", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention",
}


def reason_to_exclude(op):
    return next((reason for prefix, reason in EXCLUDED.items() if op.name.startswith(prefix)), None)


def compares_values(op, eager="cpu"):
    if op.name in UNINITIALIZED or (eager == "cuda" and op.name in UNINITIALIZED_ON_CUDA):
        return False
    return op.name not in RANDOM or not _on_cuda() or eager == "cuda"


def _on_cuda():
    return torch.cuda.is_available() and os.environ.get("LAZY_BACKEND") != "cpu"
