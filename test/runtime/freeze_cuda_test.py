# SPDX-License-Identifier: Apache-2.0
"""On a GPU, and here on what stands in for one: convolutions of weights that stay end with ReLU, batch norm and residuals being theirs."""

import contextlib
import copy
import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from accumulating import accumulate  # noqa: E402
from child import in_child  # noqa: E402

RUNS = 8  # equal ones; constants are there after three and a run
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}  # of the largest result


class Block(nn.Module):
    """As ResNet's: two convolutions and a shortcut, which is one where images shrink."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Net(nn.Module):
    """Seven convolutions: six that are, or are added to, one that ends with ReLU, and one that is neither."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.pool = nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Block(8, 16, 2), Block(16, 16, 1))
        self.last, self.head = nn.Conv2d(16, 16, 3, 1, 1, groups=4), nn.Linear(16, 5)

    def forward(self, x):
        x = self.blocks(self.pool(torch.relu(self.norm(self.first(x)))))
        return self.head(torch.tanh(self.last(x)).mean((2, 3)))


PACKED = 6
CALLS = 9  # of libraries: seven convolutions, pooling, a product
LAUNCHES = {torch.channels_last: 1, torch.contiguous_format: 5}  # of kernels: tanh and mean, or what turns images around
LAUNCHES_APART = 7


def _net():
    torch.manual_seed(0)
    net = Net().eval()
    for norm in net.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    return net


def _check(exact, net, x, context=contextlib.nullcontext):
    """Weights packed in so many equal runs, and what the last of them did. `exact`: the net in float64; `net`, on the device."""
    dtype = x.dtype if context is contextlib.nullcontext else torch.bfloat16
    with torch.no_grad():
        expected = exact(x.double())
        before = torch_lazy.metrics()
        for _ in range(RUNS):
            last = torch_lazy.metrics()
            with context():
                got = net(x.to("lazy"))
            torch_lazy.sync()
            scale = expected[~expected.isnan()].abs().max()
            torch.testing.assert_close(got.cpu().double(), expected, rtol=0, atol=float(TOLERANCES[dtype] * scale), equal_nan=True)
        after = torch_lazy.metrics()
    return after["weights_packed"] - before["weights_packed"], {name: after[name] - last[name] for name in ("kernel_launches", "library_calls", "graph_replays")}


def _evaluates(dtype, batch, memory_format, autocast=False):
    net, x = _net(), torch.randn(batch, 3, 37, 34).contiguous(memory_format=memory_format)
    if not autocast:
        net, x = net.to(dtype), x.to(dtype)
    exact = copy.deepcopy(net).double()
    net = net.to(memory_format=memory_format).to("lazy")
    return _check(exact, net, x, (lambda: torch.autocast("lazy", dtype=dtype)) if autocast else contextlib.nullcontext)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_values(dtype, batch, memory_format):
    packed, last = in_child(_evaluates, dtype, batch, memory_format, compile="sync")
    bias = dtype == torch.float32  # of the product, a launch of its own
    assert packed == PACKED
    row = batch == 1 and dtype != torch.float32  # by the last layer's weight: a kernel of ours
    launches, calls = LAUNCHES[memory_format] + bias + row, CALLS - row
    assert last == {"kernel_launches": launches, "library_calls": calls, "graph_replays": 1}
    _, apart = in_child(_evaluates, dtype, batch, memory_format, compile="sync", disable="freeze")
    assert apart == {"kernel_launches": LAUNCHES_APART + bias + row, "library_calls": calls, "graph_replays": 1}


def test_autocast_weights_are_constants():
    packed, last = in_child(_evaluates, torch.bfloat16, 4, torch.channels_last, True, compile="sync")
    assert packed == PACKED and last["graph_replays"] == 1


@pytest.mark.parametrize("mode", ["async", "off"])
def test_other_modes(mode):
    packed, _ = in_child(_evaluates, torch.bfloat16, 4, torch.channels_last, compile=mode)
    assert packed in {"async": (0, PACKED), "off": (0,)}[mode]


def test_disabled():
    assert in_child(_evaluates, torch.bfloat16, 4, torch.channels_last, compile="sync", disable="freeze")[0] == 0


def _deterministic(benchmark):
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = benchmark
    return _evaluates(torch.float32, 4, torch.channels_last)[0]


@pytest.mark.parametrize("benchmark", [False, True])
def test_deterministic_algorithms(benchmark):
    assert in_child(_deterministic, benchmark, compile="sync") == (0 if benchmark else PACKED)


def _changes(name):
    net = _net()
    exact, net, x = copy.deepcopy(net).double(), net.to("lazy"), torch.randn(2, 3, 37, 34)
    seen = [_check(exact, net, x)[0]]
    for _ in range(2):
        for each in (exact, net):
            with torch.no_grad():
                each.state_dict()[name].mul_(2)
        seen.append(_check(exact, net, x)[0])
    return seen


@pytest.mark.parametrize("name", ["first.weight", "blocks.0.shortcut.0.bias", "blocks.0.norm2.running_var", "blocks.1.norm1.bias"])
def test_a_parameter_changes(name):
    assert in_child(_changes, name, compile="sync") == [PACKED, PACKED, 0]  # patience: 3, 6 and 12 runs


def _sizes():
    net = _net()
    exact, net = copy.deepcopy(net).double(), net.to("lazy")
    return [_check(exact, net, torch.randn(2, 3, 33 + 4 * k, 34))[0] for k in range(12)]


def test_sizes_share_weights():
    assert in_child(_sizes, compile="sync") == [PACKED] + [0] * 11


def _parts_of_one_weight():
    weight, blur = torch.randn(40, 4, 3, 3).to("lazy"), torch.randn(1, 1, 3, 3).to("lazy")
    exact = {weight: weight.cpu().double(), blur: blur.cpu().double()}
    x = torch.randn(2, 4, 9, 9)
    seen = []
    for begin in (10, 20, 30):
        def net(x, w=weight, begin=begin):
            return torch.relu(torch.conv2d(x, w[begin : begin + 7])).mean((2, 3))

        seen.append(_check(lambda x, net=net: net(x, exact[weight]), net, x)[0])
    for channels in (4, 2):
        def net(x, w=blur, c=channels):
            return torch.relu(torch.conv2d(x[:, :c], w.expand(c, 1, 3, 3), groups=c)).mean((2, 3))

        seen.append(_check(lambda x, net=net: net(x, exact[blur]), net, x)[0])
    return seen


def test_other_parts_of_a_weight_are_other_constants():
    assert in_child(_parts_of_one_weight, compile="sync") == [1] * 5


class BiasedResidual(nn.Module):
    """Without batch norm: what is added has a bias, and is read by others."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.a(x)
        return torch.relu(self.c(torch.relu(self.b(x))) + x).mean((2, 3))


def _biased_residual():
    net = BiasedResidual().eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 9, 9).contiguous(memory_format=torch.channels_last)
    return _check(copy.deepcopy(net).double(), net.to("lazy"), x)[0]


def test_a_sum_that_others_read_keeps_its_bias():
    assert in_child(_biased_residual, compile="sync") == 2


class OtherChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.eight = nn.Conv2d(3, 1, 1), nn.Conv2d(3, 8, 1)

    def forward(self, x):
        column = self.eight(x[:, :, :, :1]).permute(0, 2, 3, 1).reshape(x.shape[0], 1, x.shape[2], 8)
        return torch.relu(self.one(x[:, :, :, :8]) + column).mean((2, 3))


def _other_channels():
    net = OtherChannels().eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 5, 9).contiguous(memory_format=torch.channels_last)
    return _check(copy.deepcopy(net).double(), net.to("lazy"), x)[0]


def test_a_bias_stays_with_its_channels():
    assert in_child(_other_channels, compile="sync") == 1


def _not_a_number():
    net = _net()
    exact, net, x = copy.deepcopy(net).double(), net.to("lazy"), torch.randn(4, 3, 37, 34)
    assert _check(exact, net, x)[0] == PACKED
    x[1, 2, 3, 4] = float("nan")
    return _check(exact, net, x)[0]


def test_relu_lets_nan_through():
    assert in_child(_not_a_number, compile="sync") == 0


def _scaled(images, variance, weight):
    net = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8, eps=1e-12), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    net, x = net.eval().half(), torch.randn(2, 3, 9, 9)
    net[1].running_var.fill_(variance)
    net[1].weight.data.fill_(weight)
    return _check(copy.deepcopy(net).double(), net.to("lazy"), (x * images).half())[0]


# As they are; too small; too large.
@pytest.mark.parametrize("images, variance, weight, packed", [(1, 1, 1, 1), (1, 6e4, 1, 0), (1e-2, 1e-6, 1e3, 0)])
def test_weights_that_f16_cannot_hold_are_not_folded(images, variance, weight, packed):
    assert in_child(_scaled, images, variance, weight, compile="sync") == packed


class NoRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return self.b(nn.functional.silu(self.norm(self.a(x)))).sigmoid()


def _without_relu():
    net = NoRelu().eval()
    return _check(copy.deepcopy(net).double(), net.to("lazy"), torch.randn(2, 3, 9, 9))[0]


def test_nothing_is_packed_where_nothing_ends_with_relu():
    assert in_child(_without_relu, compile="sync") == 0


def _fine_tunes():
    """Batch norm stays, and its parameters need no gradients: the backward pass reads what ReLU has made."""
    net = _net().double()
    for name, parameter in net.named_parameters():
        parameter.requires_grad_("norm" not in name and "shortcut.1" not in name)
    lazy_net = copy.deepcopy(net).float().to(memory_format=torch.channels_last).to("lazy")
    before = torch_lazy.metrics()["weights_packed"]
    accumulate(net, lazy_net, torch.randn(2, 3, 37, 34).double().contiguous(memory_format=torch.channels_last))
    return torch_lazy.metrics()["weights_packed"] - before


def test_fine_tuning():
    assert in_child(_fine_tunes, compile="sync") == PACKED
