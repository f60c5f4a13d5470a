# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors of the device: PyTorch's own, over lazy members."""
import pytest
import torch
import torch_lazy  # noqa: F401
from outcomes import assert_like_eager

COMPRESSED = (torch.sparse_csr, torch.sparse_csc)
LAYOUTS = (torch.sparse_coo, *COMPRESSED)


def dense():
    return torch.tensor([[0.0, 2, 0], [3, 0, 4]])


def assert_same(lazy, cpu):
    assert lazy.device.type == "lazy" and lazy.layout == cpu.layout
    torch.testing.assert_close(lazy.cpu(), cpu, rtol=0, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout):
    sparse = dense().to_sparse(layout=layout)
    assert_same(sparse.to("lazy"), sparse)
    assert_same(dense().to("lazy").to_sparse(layout=layout), sparse)
    assert_same(sparse.to("lazy").to_dense(), dense())


def test_members_share_memory_with_the_tensor():
    sparse = dense().to("lazy").to_sparse()
    assert sparse.is_coalesced() and sparse._nnz() == 3
    sparse.values().mul_(2)
    assert_same(sparse.to_dense(), dense() * 2)
    compressed = dense().to("lazy").to_sparse_csr()
    assert_same(compressed.crow_indices(), torch.tensor([0, 1, 3]))
    compressed.values().mul_(2)
    assert_same(compressed.to_dense(), dense() * 2)


def test_made_of_pending_members():
    indices, values = torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([1.0, 2, 3])
    lazy = torch.sparse_coo_tensor(indices.to("lazy"), values.to("lazy") + 1, (2, 3))
    cpu = torch.sparse_coo_tensor(indices, values + 1, (2, 3))
    assert not lazy.is_coalesced()
    assert_same(lazy.coalesce(), cpu.coalesce())


def test_written_in_place():
    def changed(device):
        sparse = dense().to(device).to_sparse()
        sparse.add_(torch.eye(2, 3).to(device).to_sparse())
        sparse.mul_(3)
        return sparse

    assert_same(changed("lazy"), changed("cpu"))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_products_and_their_gradients(layout):
    def product(device):
        sparse = dense().to(device).to_sparse(layout=layout).requires_grad_()
        weight = torch.arange(12.0).view(3, 4).to(device).requires_grad_()
        result = sparse @ (weight + 1)
        result.sum().backward()
        return result.detach(), weight.grad, sparse.grad.to_dense()

    for lazy, cpu in zip(product("lazy"), product("cpu"), strict=True):
        assert_same(lazy, cpu)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.SparseAdam])
def test_embeddings_learn_from_sparse_gradients(optimizer):
    def weight(device):
        table = torch.nn.Embedding.from_pretrained(torch.arange(12.0).view(4, 3), freeze=False, sparse=True).to(device)
        stepper = optimizer(table.parameters(), lr=0.1)
        for _ in range(3):
            stepper.zero_grad()
            table(torch.tensor([1, 3, 1], device=device)).square().sum().backward()
            stepper.step()
        return table.weight.detach()

    torch.testing.assert_close(weight("lazy").cpu(), weight("cpu"))


def test_printed():
    text = repr(dense().to("lazy").to_sparse())
    assert "device='lazy:0'" in text and "layout=torch.sparse_coo" in text


@pytest.mark.parametrize("indices, coalesced", [([[0, 1, 1], [2, 0, 2]], True), ([[0, 1, 1], [2, 0, 3]], None), ([[1, 0], [0, 0]], True)])
def test_invariants_are_checked_as_on_the_cpu(indices, coalesced):
    def made(device):
        indices_, values = torch.tensor(indices).to(device), torch.ones(len(indices[0])).to(device)
        return torch.sparse_coo_tensor(indices_, values, (2, 3), is_coalesced=coalesced, check_invariants=True).to_dense()

    assert_like_eager(made, raises=None)
