# SPDX-License-Identifier: Apache-2.0
"""Tensors sent to other processes by torch.multiprocessing.

Processes share a storage's memory, as they do for the CPU and for CUDA: what one writes the other sees, once it has run.
"""
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import SharedCache, StorageWeakRef

_ops = torch.ops.torch_lazy
_storages = SharedCache()  # by the identity of their memory: what is sent twice, or comes back, is one storage
_reduce_storage = ForkingPickler._extra_reducers[torch.UntypedStorage]


def _over(storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _memory_of(storage):
    memory = _ops.memory_of(_over(storage)).untyped_storage()
    _storages[memory._cdata] = StorageWeakRef(storage)
    return memory


def _rebuild(memory):
    known = _storages.get(memory._cdata)
    storage = known and torch.UntypedStorage._new_with_weak_ptr(known.cdata)
    if storage is not None and _memory_of(storage)._cdata == memory._cdata:
        return storage
    storage = _ops.over_memory(_over(memory)).untyped_storage()
    _storages[memory._cdata] = StorageWeakRef(storage)
    return storage


def _reduce(storage):
    if storage.device.type != "lazy":
        return _reduce_storage(storage)
    return (_rebuild, (_memory_of(storage),))


def enable():
    ForkingPickler.register(torch.UntypedStorage, _reduce)
