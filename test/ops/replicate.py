# SPDX-License-Identifier: Apache-2.0
"""Copies of sample inputs on another device: same values, strides, aliasing, conjugate and negative bits."""

import torch
from torch.utils import _pytree as pytree


def names_device(value):
    """Where there is a GPU, samples of factories name it beside the CPU."""
    return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda"))


class Replica:
    """Copies what belongs together: tensors that share a storage share one in the copy."""

    def __init__(self, device):
        self.device = torch.device(device)
        self.storages = {}
        self.leaves = []  # the copies that require gradients

    def of(self, tree):
        return pytree.tree_map(self._of_leaf, tree)

    def _of_leaf(self, value):
        if isinstance(value, torch.Tensor):
            return self._of_tensor(value)
        if isinstance(value, slice):
            return slice(*(self._of_leaf(part) for part in (value.start, value.stop, value.step)))
        if names_device(value):
            return self.device
        return value

    def _of_tensor(self, tensor):
        if tensor.device.type != "cpu":
            return tensor
        copy = self._of_data(tensor.detach())
        if tensor.requires_grad:
            copy = copy.detach().requires_grad_()
            self.leaves.append(copy)
        return copy

    def _of_data(self, tensor):
        if tensor.layout != torch.strided:
            return tensor.to(self.device, copy=True)
        if tensor.is_conj():
            return self._of_data(tensor.conj()).conj()
        if tensor.is_neg():
            return torch._neg_view(self._of_data(torch._neg_view(tensor)))
        return self._of_storage(tensor).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def _of_storage(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata, tensor.dtype
        if key not in self.storages:
            count = storage.nbytes() // tensor.itemsize
            whole = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))
            self.storages[key] = whole.to(self.device, copy=True)
        return self.storages[key]
