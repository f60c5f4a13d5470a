# SPDX-License-Identifier: Apache-2.0
"""What Python does with a tensor: printing, converting, handing it to other libraries."""
import numpy
import pytest
import torch
import torch_lazy  # noqa: F401


def in_inference_mode(device):
    with torch.inference_mode():
        return torch.ones(3, device=device) + 1


PRINTED = {
    "bfloat16": lambda device: torch.ones(3, dtype=torch.bfloat16, device=device),
    "bool": lambda device: torch.tensor([True, False], device=device),
    "complex": lambda device: torch.tensor([1 + 2j, 3 - 1j], device=device),
    "conjugate": lambda device: torch.tensor([1 + 2j], device=device).conj(),
    "empty": lambda device: torch.empty(0, 3, device=device),
    "float8": lambda device: torch.ones(3, device=device).to(torch.float8_e4m3fn),
    "gradient's function": lambda device: torch.ones(3, device=device, requires_grad=True) * 2,
    "inference": in_inference_mode,
    "integers": lambda device: torch.arange(5, device=device),
    "large": lambda device: torch.arange(3000.0, device=device).view(30, 100),
    "negative": lambda device: torch.tensor([1 + 2j], device=device).conj().imag,
    "not finite": lambda device: torch.tensor([float("nan"), float("inf"), 1e-8], device=device),
    "parameter": lambda device: torch.nn.Parameter(torch.ones(2, 2, device=device)),
    "requires grad": lambda device: torch.ones(3, device=device, requires_grad=True),
    "scalar": lambda device: torch.tensor(3.5, device=device),
    "view": lambda device: (torch.ones(3, 2, device=device, requires_grad=True) * 2).view(6),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_as_on_the_cpu_with_the_device(name):
    printed = repr(PRINTED[name]("lazy"))
    assert "device='lazy:0'" in printed
    without = printed.replace("device='lazy:0', ", "").replace(", device='lazy:0'", "")
    assert "".join(without.split()) == "".join(repr(PRINTED[name]("cpu")).split())


def test_formatted():
    assert f"{torch.tensor(2.5, device='lazy'):.3f} {torch.tensor(2, device='lazy'):d}" == "2.500 2"
    assert f"{torch.ones(1, device='lazy')}" == "tensor([1.], device='lazy:0')"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{torch.ones(2, device='lazy'):.2f}"


def test_python_values():
    x = torch.arange(6.0, device="lazy").view(2, 3)
    one = torch.tensor(1, device="lazy")
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] == [[float(item) for item in row] for row in x]
    assert (bool(one), int(one), float(one), complex(one), len(x), [5, 6][one]) == (True, 1, 1.0, 1 + 0j, 2, 6)
    assert 3.0 in x and 10 not in x and {x: 1}[x] == 1


REFUSED_BY_NUMPY = {
    "add": lambda x: numpy.add(numpy.ones(3), x),
    "array": numpy.array,
    "asarray": numpy.asarray,
    "numpy": lambda x: x.numpy(),
    "plus an array": lambda x: x + numpy.ones(3),
}


@pytest.mark.parametrize("name", REFUSED_BY_NUMPY)
def test_numpy_is_refused_in_the_words_of_cuda(name):
    text = "can't convert lazy:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    with pytest.raises(TypeError) as error:
        REFUSED_BY_NUMPY[name](torch.ones(3, device="lazy"))
    assert str(error.value) == text


def test_numpy_by_force_and_numbers():
    x = torch.ones(3, device="lazy")
    assert x.numpy(force=True).tolist() == [1, 1, 1]
    for product in (x * numpy.float32(2), numpy.float32(2) * x):
        assert product.device.type == "lazy" and product.tolist() == [2, 2, 2]


MADE = {
    "as_tensor": lambda data: torch.as_tensor(data, device="lazy"),
    "asarray": lambda data: torch.asarray(data, device="lazy"),
    "default device": lambda data: with_default_device(data),
    "from_dlpack": lambda data: torch.from_dlpack(data, device="lazy"),
    "from_numpy": lambda data: torch.from_numpy(data).to("lazy"),
    "frombuffer": lambda data: torch.frombuffer(bytearray(data.tobytes()), dtype=torch.float32).to("lazy"),
    "new_tensor": lambda data: torch.ones(1, device="lazy").new_tensor(data),
    "of tensors": lambda data: torch.tensor([torch.tensor(item, device="lazy") for item in data], device="lazy"),
    "tensor": lambda data: torch.tensor(data, device="lazy"),
    "type": lambda data: torch.tensor(data).type("torch.lazy.FloatTensor"),
}


def with_default_device(data):
    with torch.device("lazy"):
        return torch.tensor(data)


@pytest.mark.parametrize("name", MADE)
def test_made_of_host_data(name):
    data = numpy.arange(3, dtype=numpy.float32)
    x = MADE[name](data)
    data[:] = 9
    assert x.device == torch.device("lazy:0") and x.dtype == torch.float32 and x.tolist() == [0, 1, 2]


def test_copies_between_devices():
    x = torch.arange(4.0, device="lazy")
    for non_blocking in (False, True):
        host = torch.zeros(4).copy_(x + 1, non_blocking=non_blocking)
        assert host.tolist() == [1, 2, 3, 4] == x.add(1).to("cpu", non_blocking=non_blocking).tolist()
        assert torch.zeros(4, device="lazy").copy_(host, non_blocking=non_blocking).tolist() == host.tolist()
    assert torch.as_tensor(x) is x and x.to("lazy") is x and x.lazy() is x


def test_dlpack_shares_memory():
    x = torch.arange(6.0, device="lazy").view(2, 3) + 1
    taken = (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)))
    for other in taken:
        other.add_(1)
        assert other.device.type == "lazy" and other.tolist() == x.tolist()
    assert torch.from_dlpack(x.t()).stride() == (1, 3)
    assert torch.from_dlpack(x, device="cpu").tolist() == x.tolist()


@pytest.mark.parametrize("make,error,text", [
    (lambda: torch.from_dlpack(torch.ones(1, device="lazy", requires_grad=True)), BufferError, "require gradient"),
    (lambda: torch.from_dlpack(torch.tensor([1j], device="lazy").conj()), BufferError, "conjugate bit"),
    (lambda: numpy.from_dlpack(torch.ones(1, device="lazy")), RuntimeError, "Unsupported device"),
    (lambda: torch.ones(1, device="lazy").pin_memory(), RuntimeError, "only dense CPU tensors can be pinned"),
    (lambda: torch.empty(1, device="lazy", pin_memory=True), RuntimeError, "Only dense CPU tensors can be pinned"),
    (lambda: torch.ones(1, device="lazy").to_mkldnn(), NotImplementedError, "mkldnn layout: lazy"),
])
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_untyped_storages():
    x = torch.ones(2, device="lazy")
    storage = x.untyped_storage()
    assert storage.nbytes() == 8 and storage.is_lazy and storage.data_ptr() == x.data_ptr() and storage.cpu().tolist() == storage.tolist()
    storage.copy_(torch.full((2,), 3.0).untyped_storage())
    assert x.tolist() == [3, 3] and torch.empty(0, device="lazy").set_(storage.clone()).tolist() == [3, 3]
    storage.fill_(0)
    assert x.tolist() == [0, 0]
    storage.resize_(0)
    assert storage.nbytes() == 0


def test_parts_of_storages_of_other_sizes():
    torch_lazy.set_option("compile", "sync")
    for size in (4, 4, 4, 1 << 20):  # the last one's memory is all there, though the trace is known
        whole, part = torch.empty(size, device="lazy"), torch.ones(2, device="lazy")
        torch_lazy.sync()
        before = torch_lazy.metrics()["bytes_live"]
        whole[:1].copy_(part[:1])
        torch_lazy.sync()
        assert torch_lazy.metrics()["bytes_live"] - before >= 4 * size
    torch_lazy.set_option("compile", "async")
