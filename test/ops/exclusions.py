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

# They draw from the default generator. On the CPU that is eager's own, and numbers must be equal; eager's CUDA
# generator yields other numbers than the CPU's, so there only the rest is compared.
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


def compares_values(op):
    return op.name not in UNINITIALIZED and not (op.name in RANDOM and _on_cuda())


def _on_cuda():
    return torch.cuda.is_available() and os.environ.get("LAZY_BACKEND") != "cpu"
