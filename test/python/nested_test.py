# SPDX-License-Identifier: Apache-2.0
"""Nested tensors of the device: strided ones are PyTorch's own over a lazy buffer, jagged ones are made of recorded calls."""
import pytest
import torch
import torch_lazy  # noqa: F401
from torch import nn

PARTS = [[[0.0, 1, 2], [3, 4, 5]], [[6.0, 7, 8]]]


def nested(device, layout=torch.strided, **options):
    return torch.nested.nested_tensor([torch.tensor(part) for part in PARTS], device=device, layout=layout, **options)


def parts(tensor):
    assert tensor.is_nested
    return [part.cpu() for part in tensor.unbind()]


def assert_same(lazy, cpu):
    assert lazy.device.type == "lazy"
    torch.testing.assert_close(parts(lazy), parts(cpu), rtol=0, atol=0)


def linear(x):
    torch.manual_seed(0)
    return nn.Linear(3, 2).to(x.device)(x)


UNARY = {
    "a part": lambda x: x[0],
    "added": lambda x: x + x,
    "copied": lambda x: x.clone(),
    "linear": lambda x: linear(x).detach(),
    "padded": lambda x: x.to_padded_tensor(-1.0),
    "softmax": lambda x: torch.softmax(x, -1),
    "there and back": lambda x: x.to("cpu").to(x.device),
    "transposed": lambda x: x.transpose(1, 2),
    "values": lambda x: x.values(),
    "zeros": torch.zeros_like,
}


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("name", UNARY)
def test_equals_the_cpu(name, layout):
    lazy, cpu = (UNARY[name](nested(device, layout)) for device in ("lazy", "cpu"))
    if cpu.is_nested:
        assert_same(lazy, cpu)
    else:
        torch.testing.assert_close(lazy.cpu(), cpu, rtol=0, atol=0)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_gradients(layout):
    def gradient(device):
        x = nested(device, layout, requires_grad=True)
        (x * x).to_padded_tensor(0.0).sum().backward()
        return x.grad

    assert_same(gradient("lazy"), gradient("cpu"))


def test_parts_share_memory():
    x = nested("lazy")
    x.unbind()[0].zero_()
    x.add_(x)
    assert parts(x)[0].sum() == 0 and parts(x)[1].tolist() == [[12, 14, 16]]


def test_copied_from_the_host():
    x = torch.zeros_like(nested("lazy"))
    x.copy_(nested("cpu"))
    assert_same(x, nested("cpu"))
    assert_same(nested("cpu").to("lazy"), nested("cpu"))


def test_printed():
    assert repr(nested("lazy")) == repr(nested("cpu"))[:-1] + ", device='lazy:0')"


# In evaluation, PyTorch makes nested tensors of a padding mask by itself.
def test_transformer_encoder_with_a_padding_mask():
    def result(device):
        torch.manual_seed(0)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval().to(device)
        x = torch.randn(2, 5, 8).to(device)
        mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2], device=device)
        with torch.no_grad():
            return model(x, src_key_padding_mask=mask).cpu()

    torch.testing.assert_close(result("lazy"), result("cpu"))


def quantized():
    return torch.quantize_per_tensor(torch.ones(3), 0.1, 10, torch.quint8)


@pytest.mark.parametrize("make", [
    lambda: torch.quantize_per_tensor(torch.ones(3, device="lazy"), 0.1, 10, torch.quint8),
    lambda: quantized().to("lazy"),
    lambda: torch.ones(3, device="lazy").copy_(quantized()),
    lambda: torch.empty(3, dtype=torch.quint8, device="lazy"),
])
def test_quantized_tensors_are_refused_by_name(make):
    with pytest.raises(NotImplementedError, match="quantized tensors are not supported on device lazy"):
        make()
