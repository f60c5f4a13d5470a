# SPDX-License-Identifier: Apache-2.0
"""Errors are eager's own, also where Python has put its Meta kernels in the place of PyTorch's; nothing ends the process."""
import re

import pytest
import torch
import torch_lazy  # noqa: F401

REFUSED = {
    "clamp without bounds": lambda x: x.clamp(),
    "dimension out of range": lambda x: x.argmax(2),
    "reduction of nothing": lambda x: x[:, :0].amax(1),
    "complex end of a range": lambda x: torch.arange(0, 3 + 2j, device=x.device),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_as_eagers(call):
    with pytest.raises(Exception) as eager:
        call(torch.ones(2, 3))
    torch.ones(2, 3, device="lazy").argmax(1), torch.ones(2, 3, device="lazy").amax(1)  # known calls
    with pytest.raises(eager.type) as lazy:
        call(torch.ones(2, 3, device="lazy"))
    assert str(lazy.value).splitlines()[0] == str(eager.value).splitlines()[0]


# (a call that runs, one of the same dtypes that does not)
REFUSED_DTYPES = {
    "number of another kind": (lambda x: x.bool().clamp_min(3), lambda x: x.bool().clamp_min(True)),
    "numbers of another kind": (
        lambda x: torch._foreach_clamp_min([x.bool()], [3]), lambda x: torch._foreach_clamp_min([x.bool()], [True])),
    "product of nothing": (lambda x: x[:0].bool().bmm(x[:0].bool()), lambda x: x.bool().bmm(x.bool())),
    "median of nothing": (lambda x: x[:0].bool().median(), lambda x: x.bool().median()),
    "decomposition of nothing": (lambda x: torch.linalg.lu_factor(x[:0].half()), lambda x: torch.linalg.lu_factor(x.half())),
}


@pytest.mark.parametrize("calls", REFUSED_DTYPES.values(), ids=REFUSED_DTYPES)
def test_dtypes_at_the_call(calls):
    accepted, refused = calls
    with pytest.raises(Exception) as eager:
        refused(torch.ones(2, 2, 2))
    x = torch.ones(2, 2, 2, device="lazy")
    accepted(x)
    accepted(x)
    with pytest.raises(eager.type):
        refused(x)
    torch.ops.torch_lazy.sync()


def test_norms_over_one_element():
    x = torch.rand(2, 3, 1, 4)
    for dim in (0, 1, -3, 2, -2, -1):
        norm = x.to("lazy").norm(dim=dim)
        assert norm.shape == x.norm(dim=dim).shape
        assert torch.allclose(norm.cpu(), x.norm(dim=dim))


# (a call that runs, one of the same shapes or dtypes that does not)
REFUSED_OPERANDS = {
    "larger than the product": (lambda x: x.addmm(x, x), lambda x: x.addmm(x, x[:, :1])),
    "larger than the product, in place": (lambda x: x.addmm_(x.clone(), x), lambda x: x.addmm_(x.clone(), x[:, :1])),
    "its own source": (
        lambda x: x[0].scatter_add_(0, torch.zeros_like(x[0], dtype=torch.int64), x[1]),
        lambda x: x[0].scatter_add_(0, torch.zeros_like(x[0], dtype=torch.int64), x[0])),
    "its own source, of another size": (
        lambda x: x[0].scatter_add_(0, torch.zeros_like(x[0], dtype=torch.int64), x[0].clone()),
        lambda x: x.view(16).scatter_add_(0, torch.zeros(16, dtype=torch.int64, device=x.device), x.view(16))),
}


@pytest.mark.parametrize("calls", REFUSED_OPERANDS.values(), ids=REFUSED_OPERANDS)
def test_operands_at_the_call(calls):
    accepted, refused = calls
    with pytest.raises(RuntimeError):
        refused(torch.ones(4, 4))
    x = torch.ones(4, 4, device="lazy")
    accepted(x)
    accepted(x)
    with pytest.raises(RuntimeError):
        refused(x)


def test_powers_of_truth_are_truth():
    x = torch.tensor([[True, False], [True, True]])
    for y in (x, x.t(), x[:, :1]):
        assert y.to("lazy").t().pow(True).dtype == torch.bool
        assert torch.equal(y.to("lazy").t().pow(True).cpu(), y.t().pow(True))


def test_outputs_on_the_host():
    x = torch.ones(2, device="lazy")
    with pytest.raises(RuntimeError, match="same device"):
        torch.nonzero(x, out=torch.empty([], dtype=torch.long))
    with pytest.raises(RuntimeError, match="same device"):
        torch.tensor(1.0).add_(x.sum())


def test_numbers_in_a_tensor_on_the_host():
    lists = [[torch.full((3,), value, device="lazy"), torch.full((2,), value, device="lazy")] for value in (1.0, 2.0, 3.0)]
    sums = torch._foreach_addcdiv(*lists, torch.tensor([3.0, 6.0]))
    torch._foreach_addcmul_(*lists, torch.tensor([1.0, 2.0]))
    assert [x.tolist() for x in sums] == [[3, 3, 3], [5, 5]]
    assert [x.tolist() for x in lists[0]] == [[7, 7, 7], [13, 13]]


def test_exponents_that_are_integers():
    x, exponents = torch.tensor([1.5, -2.0]), torch.tensor([3, -1])
    assert torch.equal(torch.ldexp(x.to("lazy"), exponents.to("lazy")).cpu(), torch.ldexp(x, exponents))
    assert torch.equal(x.to("lazy").ldexp_(exponents.to("lazy")).cpu(), torch.ldexp(x, exponents))


def test_nested_tensors():
    members = [torch.ones(length, 2, device="lazy", requires_grad=True) for length in (1, 3)]
    nested = torch.nested.as_nested_tensor(members)
    assert nested.dim() == 3 and nested.requires_grad
    jagged = torch.nested.nested_tensor([torch.ones(length, 2, device="lazy") for length in (1, 3)], layout=torch.jagged)
    assert [part.shape[0] for part in (jagged * 2).unbind()] == [1, 3]


def test_an_error_at_a_wait_names_its_call():
    def pick(index):
        return x[torch.tensor([index], device="lazy")] * 2

    line = pick.__code__.co_firstlineno + 1
    x = torch.arange(3.0, device="lazy")
    for index in (0, 1, 2):
        assert pick(index).tolist() == [2 * index]
    said = rf"^index 7 is out of bounds .*\(aten::index\.Tensor, call \d+ of \d+, first made at {re.escape(__file__)}:{line} in pick\)$"
    picked = pick(7)
    later = x + 1
    with pytest.raises(IndexError, match=said):
        picked.tolist()
    with pytest.raises(RuntimeError, match=f"has no value.*errors_test.py:{line} in pick"):
        picked.add(1).tolist()
    assert pick(1).tolist() == [2] and (x + 1).tolist() == [1, 2, 3], later
