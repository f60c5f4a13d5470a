# SPDX-License-Identifier: Apache-2.0
"""Tensors of the device in other processes, and host memory that other threads fill."""
import functools
from multiprocessing.reduction import ForkingPickler

import numpy
import pytest
import torch
import torch.multiprocessing
import torch_lazy
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPAWN = torch.multiprocessing.get_context("spawn")


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index].clone()


class MadeInWorkers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((2,), float(index), device="lazy")


def batches(dataset, **options):
    return torch.cat([batch.cpu() for batch in DataLoader(dataset, batch_size=2, **options)])


def work(strategy, inbox, outbox, model):
    torch.multiprocessing.set_sharing_strategy(strategy)
    whole, part, sparse = inbox.get()
    whole.add_(10)
    outbox.put((part.tolist(), sparse.to_dense().tolist(), type(model.weight) is nn.Parameter and model.weight.requires_grad))
    with torch.no_grad():
        model.weight.fill_(7)
    torch_lazy.sync()
    outbox.put(whole)
    inbox.get()


@pytest.mark.parametrize("strategy", sorted(torch.multiprocessing.get_all_sharing_strategies()))
def test_processes_share_memory(strategy, request):
    request.addfinalizer(functools.partial(torch.multiprocessing.set_sharing_strategy, torch.multiprocessing.get_sharing_strategy()))
    torch.multiprocessing.set_sharing_strategy(strategy)
    inbox, outbox, model = SPAWN.Queue(), SPAWN.Queue(), nn.Linear(2, 2).to("lazy")
    child = SPAWN.Process(target=work, args=(strategy, inbox, outbox, model), daemon=True)
    child.start()
    x = torch.arange(4.0, device="lazy") + 1
    inbox.put((x, x[2:], torch.eye(2, device="lazy").to_sparse()))
    assert outbox.get(timeout=120) == ([13.0, 14.0], [[1.0, 0.0], [0.0, 1.0]], True)
    returned = outbox.get(timeout=120)
    assert returned.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert x.tolist() == [11, 12, 13, 14] and model.weight.tolist() == [[7, 7], [7, 7]]
    inbox.put(None)
    child.join(60)
    assert child.exitcode == 0
    assert (x + 1).tolist() == [12, 13, 14, 15]


def test_memory_of_others_is_not_shared_silently():
    foreign = torch.from_dlpack(torch.ones(2, device="lazy"))
    with pytest.raises(RuntimeError, match="cannot be shared"):
        ForkingPickler.dumps(foreign)


@pytest.mark.parametrize("options", [
    {},
    {"num_workers": 2},
    {"num_workers": 1, "pin_memory": True},
    {"pin_memory": True},
])
def test_loaders_of_host_data(options):
    rows = torch.arange(8.0).view(4, 2)
    assert torch.equal(batches(Rows(rows), **options), rows)
    for batch in DataLoader(Rows(rows), **options):
        assert batch.is_pinned() == options.get("pin_memory", False)
        assert torch.equal(batch.to("lazy", non_blocking=True).cpu(), batch)


def test_shuffled_where_the_device_is_the_default():
    rows = torch.arange(8.0).view(4, 2)
    with torch.device("lazy"):
        shuffled = batches(Rows(rows), shuffle=True, generator=torch.Generator("lazy"))
    assert sorted(shuffled.tolist()) == rows.tolist()


def test_loaders_of_the_devices_tensors():
    rows = torch.arange(8.0, device="lazy").view(4, 2)
    assert torch.equal(batches(Rows(rows)), rows.cpu())
    assert batches(MadeInWorkers(), num_workers=1, multiprocessing_context=SPAWN)[:, 0].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="'spawn' start method"):
        batches(Rows(rows), num_workers=1)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        batches(Rows(rows), pin_memory=True)


def test_pinned_memory_is_known_as_such():
    x = torch.ones(3)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned[1:].is_pinned() and pinned.pin_memory() is pinned
    assert not x.is_pinned() and not pinned.clone().is_pinned() and not torch.ones(3, device="lazy").is_pinned()
    assert torch.zeros(3, pin_memory=True).is_pinned() and torch.empty_like(x, pin_memory=True).is_pinned()
    assert torch.ones(3, device="lazy").to("cpu", non_blocking=True).is_pinned()
    del pinned
    assert not any(ordinary.is_pinned() for ordinary in [torch.ones(3) for _ in range(64)])


def test_pinned_memory_is_the_cpus_to_other_libraries():
    pinned = torch.ones(3).pin_memory()
    assert pinned.__dlpack_device__() == torch.ones(3).__dlpack_device__()
    assert numpy.from_dlpack(pinned).tolist() == pinned.numpy().tolist() == torch.from_dlpack(pinned).tolist()
