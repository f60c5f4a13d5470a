# SPDX-License-Identifier: Apache-2.0
"""Storages that swap their memory, as eager's do."""

import pytest
import torch
import torch_lazy  # noqa: F401

pytestmark = pytest.mark.skipif(not hasattr(torch.UntypedStorage, "_swap_data_ptr_"), reason="PyTorch swaps from 2.12 on")


def swap(a, b):
    a.untyped_storage()._swap_data_ptr_(b.untyped_storage())


def unwritten(device):
    a, b = torch.ones(3, device=device), torch.full((3,), 2.0, device=device)
    swap(a, b)
    return a + 0, b + 0


def read_before(device):
    a, b = torch.ones(3, device=device), torch.full((3,), 2.0, device=device)
    addresses = a.data_ptr(), b.data_ptr()
    before = a * 10
    swap(a, b)
    assert (b.data_ptr(), a.data_ptr()) == addresses
    return before, a * 10, b * 10


def written_after(device):
    a, b = torch.ones(3, device=device), torch.full((3,), 2.0, device=device)
    view = a[1:]
    swap(a, b)
    a.add_(1)
    b.mul_(5)
    return a, b, view


def swapped_round(device):
    a, b, c = (torch.full((3,), float(k), device=device) for k in range(3))
    swap(a, b)
    swap(b, c)
    del a
    return b * 1, c * 1


def swapped_back_one_used(device):
    a, b = torch.ones(3, device=device), torch.full((3,), 2.0, device=device)
    swap(a, b)
    a.add_(1)
    swap(a, b)
    found = a * 1, b * 1
    swap(a, b)
    del a
    return *found, b.mul_(7)


def with_an_empty_one(device):
    a, b = torch.ones(3, device=device), torch.empty(0, device=device)
    swap(a, b)
    b.set_(b.untyped_storage(), 0, (3,), (1,))
    return b + 1, torch.tensor(a.untyped_storage().nbytes())


def read_by_the_host(device):
    a, b = torch.ones(3, device=device), torch.full((3,), 2.0, device=device)
    swap(a, b)
    return torch.tensor(a.tolist() + b.tolist())


PROGRAMS = [unwritten, read_before, written_after, swapped_round, swapped_back_one_used, with_an_empty_one, read_by_the_host]


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_eagers(program):
    expected = program("cpu")
    for _ in range(3):  # unknown, then expected
        for found, wanted in zip(program("lazy"), expected, strict=True):
            torch.testing.assert_close(found.cpu(), wanted)


def test_a_replayed_function_takes_what_is_there():
    @torch_lazy.make_replayable
    def double(x):
        return x * 2

    a, b = torch.ones(3, device="lazy"), torch.full((3,), 2.0, device="lazy")
    for _ in range(6):
        swap(a, b)
        assert double(a).tolist() == (a.cpu() * 2).tolist()
        assert double(b).tolist() == (b.cpu() * 2).tolist()
    assert a.tolist() == [1, 1, 1]
