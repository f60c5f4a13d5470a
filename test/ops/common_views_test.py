# SPDX-License-Identifier: Apache-2.0
"""The views that have a kernel of their own are eager's: geometry, values, names, aliases, and what is refused in which words."""

import itertools

import pytest
import torch
import torch_lazy  # noqa: F401

DIMS = range(-4, 4)


def numbers(*shape):
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


def shrunk(device):
    x = numbers(3, 4).to(device)
    x.untyped_storage().resize_(32)
    return x


BASES = {
    "number": lambda device: torch.tensor(2.0).to(device),
    "row": lambda device: numbers(5).to(device),
    "matrix": lambda device: numbers(3, 4).to(device),
    "part": lambda device: numbers(6, 5).to(device)[1::2, 1:4],
    "transposed": lambda device: numbers(2, 3, 4).to(device).permute(2, 0, 1),
    "expanded": lambda device: numbers(3, 1).to(device).expand(2, 3, 4),
    "empty": lambda device: numbers(3, 0, 2).to(device),
    "conjugated": lambda device: torch.complex(numbers(2, 3), numbers(2, 3)).to(device).conj(),
    "named": lambda device: numbers(2, 3).to(device).rename("n", "c"),
    "shrunk": shrunk,
}
CALLS = {
    "t": [()],
    "transpose": list(itertools.product(DIMS, DIMS)),
    "select": list(itertools.product(DIMS, (-4, -3, -1, 0, 2, 5))),
    "split": list(itertools.product((-1, 0, 1, 2, 3, 100, 2**62), DIMS)),
    "slice": list(itertools.product(DIMS, (None, -7, -1, 0, 2, 2**62), (None, -2, 1, 9), (-1, 0, 1, 2, 50))),
}


def call(x, name, args):
    try:
        if name == "slice":
            results = torch.ops.aten.slice.Tensor(x, *args)
        else:
            results = getattr(x, name)(*args)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error).split("\n")[0]
    results = results if isinstance(results, tuple) else (results,)
    for result in results:
        assert result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return [(r.shape, r.stride(), r.storage_offset(), r.names, r.is_conj(), r._version, r._is_view()) for r in results]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:Named tensors", "ignore:The use of `x.T`")
def test_eagers(name, base):
    x, cpu = BASES[base]("lazy"), BASES[base]("cpu")
    for args in CALLS[name]:
        assert call(x, name, args) == call(cpu, name, args), args


@pytest.mark.parametrize("name, args", [("t", ()), ("transpose", (0, -1)), ("select", (1, -2)), ("split", (2, 1)), ("slice", (1, 1, None, 2))])
def test_values_writes_and_gradients(name, args):
    def run(device):
        base = numbers(4, 6).to(device).requires_grad_()
        x = base * 1
        views = getattr(torch.ops.aten, name)(x, *args)
        first = views[0] if isinstance(views, (list, tuple)) else views
        read = first.clone()
        if not isinstance(views, (list, tuple)):  # eager refuses to write into one of several
            first.mul_(first.detach().cos())
        (first.sin().sum() + x.sum()).backward()
        return read.detach().cpu(), x.detach().cpu(), base.grad.cpu(), x._version

    for lazy, cpu in zip(run("lazy"), run("cpu")):
        torch.testing.assert_close(lazy, cpu)
