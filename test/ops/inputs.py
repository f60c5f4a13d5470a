# SPDX-License-Identifier: Apache-2.0
"""Other forms of a sample's tensors, of the same values."""

import torch
from torch.testing._internal.common_utils import noncontiguous_like


def _conjugate(tensor):
    return tensor.conj_physical().conj() if tensor.is_complex() else tensor


def _negative(tensor):
    return torch._neg_view(tensor.neg()) if tensor.is_floating_point() or tensor.is_complex() else tensor


def _of_each_tensor(change):
    def of_leaf(leaf):
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
            return leaf
        return change(leaf.detach()).requires_grad_(leaf.requires_grad)

    return lambda sample: sample.transform(of_leaf)


INPUTS = {
    "plain": lambda sample: sample,
    "noncontiguous": _of_each_tensor(noncontiguous_like),
    "conjugate": _of_each_tensor(_conjugate),
    "negative": _of_each_tensor(_negative),
}
