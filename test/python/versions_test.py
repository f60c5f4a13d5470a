# SPDX-License-Identifier: Apache-2.0
"""Version counters, by which autograd knows that a tensor it has saved was written: eager's after every `_foreach_` call."""

import pytest
import torch
import torch_lazy  # noqa: F401
from torch.testing._internal import common_methods_invocations as entries

FOREACH = [
    op
    for op in entries.foreach_unary_op_db + entries.foreach_binary_op_db + entries.foreach_pointwise_op_db
    + entries.foreach_other_op_db
    if op.inplace_variant is not None
]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.detach().to(device, copy=True)
    return [moved(item, device) for item in value] if isinstance(value, (list, tuple)) else value


def versions(op, sample, device):
    tensors = moved(sample.input, device)
    before = [tensor._version for tensor in tensors]
    keywords = {name: moved(sample.kwargs[name], device) for name in ("alpha", "value") if name in sample.kwargs}
    try:
        op.inplace_variant(tensors, *moved(sample.args, device), **keywords)
    except Exception as error:
        return type(error)
    return [tensor._version - old for tensor, old in zip(tensors, before, strict=True)]


@pytest.mark.parametrize("op", FOREACH, ids=lambda op: op.name)
def test_foreach_counts_each_write(op):
    counted = False
    for sample in list(op.sample_inputs("cpu", torch.float32))[:6]:
        expected = versions(op, sample, "cpu")
        for _ in range(2):  # run at once, then recorded
            assert versions(op, sample, "lazy") == expected
        counted = counted or (isinstance(expected, list) and 1 in expected)
    assert counted


def test_a_saved_tensor_written_by_foreach_is_an_error():
    x = torch.ones(3, device="lazy", requires_grad=True)
    squared = x * 1
    loss = squared.square().sum()
    with torch.no_grad():
        torch._foreach_mul_([squared], 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
