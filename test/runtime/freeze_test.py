# SPDX-License-Identifier: Apache-2.0
"""Weights that stay are packed, with batch norm folded into them, and only while they stay."""

import copy
import ctypes
import threading

import faults  # before torch_lazy
import pytest
import torch
import torch_lazy
from torch import nn

from accumulating import accumulate
from child import in_child

RUNS = 8  # equal ones; constants are there after three and a run
WEIGHTS = 4  # of Net


class Net(nn.Module):
    """Convolutions of all kinds: biases, strides, groups, dilation, residuals, one used three times, an average and a maximum."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8, affine=False)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.twice = nn.Conv2d(8, 8, 1)
        self.pool, self.last = nn.MaxPool2d(3, stride=2, padding=1), nn.Linear(8, 5)

    def forward(self, x):
        x = self.pool(torch.relu(self.norm1(self.conv1(x.flip(0)))))
        x = torch.relu(x + self.norm2(self.conv2(x)))
        x = self.depthwise(x) * 0.5
        x = torch.tanh(x + self.twice(x))  # adds to the images that it reads
        x = self.twice(torch.relu(self.twice(x))) + 1
        return self.last(x.mean((2, 3)))


def _net():
    torch.manual_seed(0)
    net = Net().eval()
    for norm in (net.norm1, net.norm2):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(net.norm1.weight)
    return net


def _packed():
    return torch_lazy.metrics()["weights_packed"]


def _check(net, lazy_net, x):
    """Weights that were packed in so many equal runs."""
    before = _packed()
    for _ in range(RUNS):
        with torch.no_grad():
            torch.testing.assert_close(lazy_net(x.to("lazy")).cpu(), net(x), rtol=1e-4, atol=1e-5)
    return _packed() - before


def _evaluates(batch):
    net = _net()
    return _check(net, copy.deepcopy(net).to("lazy"), torch.randn(batch, 3, 33, 30))


@pytest.mark.parametrize("mode", ["sync", "async", "off"])
@pytest.mark.parametrize("batch", [1, 4])
def test_values(mode, batch):
    packed = in_child(_evaluates, batch, compile=mode)
    assert packed == {"sync": WEIGHTS, "off": 0}.get(mode, packed)


def _evaluates_without_a_kernel():
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    for _ in range(2):  # shapes are learnt, and the plan of weights that may change is there
        with torch.no_grad():
            lazy_net(x.to("lazy")).cpu()
    faults.spoil_kernels(1, 0)
    interpreted = torch_lazy.metrics()["traces_interpreted"]
    packed = _check(net, lazy_net, x)
    return packed, torch_lazy.metrics()["kernels_failed"], torch_lazy.metrics()["traces_interpreted"] - interpreted


def test_without_a_kernel_for_it(tmp_path):
    assert in_child(_evaluates_without_a_kernel, compile="sync", cache_dir=str(tmp_path)) == (0, 1, 0)


def _runs_until_packed():
    """In each of three rounds, after updates that run ahead: the images' trace then inherits the weights, or would find them done."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in range(4))).to("lazy")
    images = torch.randn(2, 8, 9, 9).to("lazy")
    rounds = []
    with torch.no_grad():
        for _ in range(3):
            for _ in range(6):
                for parameter in net.parameters():
                    parameter.mul_(0.9)
            before, runs = _packed(), 0
            while _packed() == before and runs < 30:
                net(images).cpu()
                runs += 1
            rounds.append(runs)
    return rounds, torch_lazy.metrics()["traces_ahead"]


def test_runs_ahead_do_not_count():
    waiting, none = in_child(_runs_until_packed, compile="sync", overlap="0")
    beside, ahead = in_child(_runs_until_packed, compile="sync")
    assert none == 0 < ahead
    assert beside == waiting and max(waiting) < 30


def test_disabled():
    assert in_child(_evaluates, 4, compile="sync", disable="freeze") == 0


def _write(weight, how):
    """Doubles a parameter, on the CPU or the device."""
    if how == "in_place":
        weight.mul_(2)
    elif how == "data":
        weight.data = weight.data * 2
    elif how == "at_once":
        weight.copy_(weight.cpu() * 2)
    elif how == "view":
        weight.view(-1)[:] *= 2
    elif how == "address":
        count = weight.numel()
        memory = (ctypes.c_float * count).from_address(weight.data_ptr())
        for k in range(count):
            memory[k] *= 2


def _writes(how, name):
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    seen = [_check(net, lazy_net, x)]
    for _ in range(2):
        for each in (net, lazy_net):
            with torch.no_grad():
                _write(each.get_parameter(name) if name != "norm2.running_var" else each.get_buffer(name), how)
        seen.append(_check(net, lazy_net, x))
    return seen


@pytest.mark.parametrize("name", ["conv1.weight", "conv2.bias", "norm1.weight", "norm2.running_var"])
@pytest.mark.parametrize("how", ["in_place", "data", "at_once", "view"])
def test_a_parameter_changes(how, name):
    assert in_child(_writes, how, name, compile="sync") == [WEIGHTS, WEIGHTS, 0]  # patience: 3, 6 and 12 runs


def test_others_have_the_address():
    assert in_child(_writes, "address", "conv1.weight", compile="sync") == [WEIGHTS, 0, 0]


def _shared_memory():
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    torch.ops.torch_lazy.memory_of(lazy_net.conv1.weight)  # as when it is sent to another process
    return _check(net, lazy_net, x)


def test_memory_of_another_process():
    assert in_child(_shared_memory, compile="sync") == 0


def _epsilon():
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    seen = [_check(net, lazy_net, x)]
    for each in (net, lazy_net):
        each.norm1.eps = 0.5
    return [*seen, _check(net, lazy_net, x)]


def test_a_number_changes():
    assert in_child(_epsilon, compile="sync") == [WEIGHTS, WEIGHTS]


def _training():
    net, before = _net().train(), _packed()
    accumulate(net, copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30))
    return _packed() - before


def test_training_packs_nothing():
    assert in_child(_training, compile="sync") == 0


def _same_image():
    weight = torch.randn(8, 3, 3, 3)
    images, weights = torch.randn(2, 3, 9, 9).to("lazy"), [weight + k for k in range(RUNS)]
    before = _packed()
    for w in weights:  # a program that convolves one image with ever new weights
        torch.testing.assert_close(torch.conv2d(images, w.to("lazy")).cpu(), torch.conv2d(images.cpu(), w), rtol=1e-4, atol=1e-4)
    return _packed() - before


def test_new_weights_are_no_constants():
    assert in_child(_same_image, compile="sync") == 0


def _not_a_number():
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    assert _check(net, lazy_net, x) == WEIGHTS
    x[1, 2, 3, 4], x[2, 0, 7, 7] = float("nan"), float("inf")
    with torch.no_grad():
        got = lazy_net(x.to("lazy")).cpu()
        torch.testing.assert_close(got, net(x), rtol=1e-4, atol=1e-5, equal_nan=True)
    assert got[1].isnan().all() and not got[0].isnan().any()


def test_relu_lets_nan_through():
    in_child(_not_a_number, compile="sync")


def _sizes():
    net = _net()
    lazy_net = copy.deepcopy(net).to("lazy")
    seen = [_check(net, lazy_net, torch.randn(2, 3, 20 + k, 24)) for k in range(10)]
    return [*seen, _check(net, lazy_net, torch.randn(2, 3, 20, 24)), _check(net, lazy_net, torch.randn(2, 3, 29, 24))]


def test_eight_sizes_are_kept():
    # The first has lost its constants: it finds out, and waits for six runs. The last has them.
    assert in_child(_sizes, compile="sync") == [WEIGHTS] * 10 + [WEIGHTS, 0]


def _threads():
    net = _net()
    lazy_net, x = copy.deepcopy(net).to("lazy"), torch.randn(4, 3, 33, 30)
    with torch.no_grad():
        doubled = copy.deepcopy(net)
        doubled.conv1.weight.mul_(2)
        expected = [net(x), doubled(x)]
    errors = []

    def evaluate():
        for _ in range(40):
            with torch.no_grad():
                got = lazy_net(x.to("lazy")).cpu()
            if not any(torch.allclose(got, value, rtol=1e-4, atol=1e-5) for value in expected):
                errors.append(got)

    threads = [threading.Thread(target=evaluate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(20):
        with torch.no_grad():
            lazy_net.conv1.weight.mul_(0.5 if k % 2 else 2)
            torch_lazy.sync()
    for thread in threads:
        thread.join()
    return len(errors)


def test_threads_beside_one_that_writes():
    assert in_child(_threads, compile="sync") == 0


def _launches():
    net = _net().to("lazy")
    x, seen = torch.randn(4, 3, 33, 30).to("lazy"), []
    with torch.no_grad():
        for _ in range(RUNS):
            before = torch_lazy.metrics()
            net(x).cpu()
            after = torch_lazy.metrics()
            seen.append([after[key] - before[key] for key in ("kernel_launches", "library_calls")])
    return seen[4], seen[-1]


def test_launches():
    assert in_child(_launches, compile="sync") == ([13, 8], [11, 8])
