# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers: eager's values, whatever the dtype; one call for all lengths, so that no length compiles a kernel."""

import pytest
import torch
import torch_lazy

RANGES = [(5,), (0,), (2, 11), (2, 11, 4), (9, -4, -3), (-3, 3), (200, 300, 17), (2**40, 2**40 + 5), (0.5, 4), (3, 10.5)]
FRACTIONS = [(0, 1, 0.1), (2, 0.5, -0.25)]  # steps of which an integer is 0, by which eager divides
DTYPES = [None, torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64]


CASES = [(numbers, dtype) for numbers in RANGES for dtype in DTYPES]
CASES += [(numbers, dtype) for numbers in FRACTIONS for dtype in DTYPES if dtype is None or dtype.is_floating_point]


@pytest.mark.parametrize("numbers, dtype", CASES, ids=str)
def test_values(numbers, dtype):
    try:
        eager = torch.arange(*numbers, dtype=dtype)
    except RuntimeError as error:  # a number that the type does not hold
        with pytest.raises(RuntimeError, match=str(error).splitlines()[0][:20]):
            torch.arange(*numbers, dtype=dtype, device="lazy")
        return
    for _ in range(3):  # until it is compiled
        lazy = torch.arange(*numbers, dtype=dtype, device="lazy")
        assert lazy.dtype == eager.dtype
        assert torch.equal(lazy.cpu(), eager)
        assert torch.equal((lazy * 2).cpu(), eager * 2)


def test_a_length_is_no_other_program():
    def double(length, start=0, step=1):
        return (torch.arange(start, start + length * step, step, device="lazy") * 2).tolist()

    for length in 8, 8, 9:
        double(length)
    before = torch_lazy.metrics()
    for length in range(20, 30):
        assert double(length) == [2 * k for k in range(length)]
        assert double(length, start=7, step=3) == [2 * (7 + 3 * k) for k in range(length)]
    after = torch_lazy.metrics()
    assert after["kernels_compiled"] == before["kernels_compiled"]
    by_aten = [{name: count for name, count in seen["calls_recorded_by_op"].items() if "arange" in name} for seen in (before, after)]
    assert by_aten[0] == by_aten[1]


def test_a_result_of_ones_own_is_as_in_eager():
    for length in 4, 6:
        out = torch.empty(length, dtype=torch.int64, device="lazy")
        assert torch.arange(1, length + 1, out=out).tolist() == list(range(1, length + 1))
