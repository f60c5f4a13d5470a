# SPDX-License-Identifier: Apache-2.0
"""Copies to and from the host, pinned or not, waited for or not; streams and events; numbers that are read."""

import numpy
import pytest
import torch
import torch_lazy

from devices import EAGER


@pytest.fixture(autouse=True, params=["off", "sync"])
def _compile(request):
    torch_lazy.set_option("compile", request.param)
    yield
    torch_lazy.sync()


def test_pinned_memory_to_the_device():
    """Three times, since the third run is captured."""
    for step in range(5):
        x = torch.arange(1 << 16, dtype=torch.float32).add_(step).pin_memory()
        assert x.is_pinned()
        y = x.to("lazy", non_blocking=True) * 2
        assert torch.equal(y.cpu(), x * 2)


def test_the_source_is_free_after_a_plain_copy():
    x = torch.ones(1 << 20)
    y = x.to("lazy")
    x.fill_(7)  # y has been read
    assert y.sum().item() == 1 << 20


def test_from_the_device_without_waiting():
    for step in range(4):
        x = torch.full((1 << 20,), float(step), device="lazy")
        host = torch.empty(1 << 20).pin_memory()
        host.copy_(x + 1, non_blocking=True)
        torch.lazy.synchronize()
        assert torch.equal(host, torch.full((1 << 20,), step + 1.0))


def test_to_cpu_without_waiting():
    x = torch.arange(1000.0, device="lazy") * 3
    host = x.to("cpu", non_blocking=True)
    torch.lazy.synchronize()
    assert torch.equal(host, torch.arange(1000.0) * 3)


def test_data_loader_that_pins():
    data = torch.utils.data.TensorDataset(torch.arange(64.0).view(32, 2))
    total = torch.zeros(2, device="lazy")
    for (x,) in torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True):
        total += x.to("lazy", non_blocking=True).sum(0)
    assert total.tolist() == torch.arange(64.0).view(32, 2).sum(0).tolist()


def test_between_the_two_devices():
    x = torch.randn(100, 100)
    on_eager = x.to(EAGER, copy=True)
    y = on_eager.to("lazy") + 1
    back = y.to(EAGER)
    assert back.device.type == EAGER and torch.equal(back.cpu(), x + 1)
    on_eager.zero_()
    assert torch.equal(y.cpu(), x + 1)


def test_gradients_across_the_two_devices():
    def gradient(near, far):
        x = torch.linspace(-1, 1, 12).view(3, 4).to(near).requires_grad_()
        h = x * 2
        there = torch.sigmoid(h.to(far) * 3) * h.to(far)
        (torch.tanh(there.to(near) * h) + h).sum().add((there * there).sum().to(near)).backward()
        return x.grad.cpu()

    torch.testing.assert_close(gradient("lazy", EAGER), gradient("cpu", "cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool, torch.complex64], ids=str)
def test_numbers_that_are_read(dtype):
    x = torch.tensor([[1, 0], [3, 2]]).to(dtype)
    y = x.to("lazy")
    assert y.tolist() == x.tolist()
    assert y[1, 0].item() == x[1, 0].item()
    assert bool(y.any()) and str(y).replace(", device='lazy:0'", "") == str(x).replace(", device='cpu'", "")
    if dtype != torch.complex64:
        assert int(y[1, 1]) == int(x[1, 1]) and float(y[1, 1]) == float(x[1, 1])


def test_shapes_that_follow_from_values():
    x = torch.tensor([0.0, 2.0, 0.0, 3.0, 2.0], device="lazy")
    assert x.nonzero().tolist() == [[1], [3], [4]]
    assert x[x > 0].tolist() == [2.0, 3.0, 2.0]
    assert x.unique().tolist() == [0.0, 2.0, 3.0]
    assert [part.tolist() for part in x.split([2, 3])] == [[0.0, 2.0], [0.0, 3.0, 2.0]]


def test_numpy_wants_the_host():
    with pytest.raises(TypeError):
        torch.ones(3, device="lazy").numpy()
    assert numpy.array_equal(torch.ones(3, device="lazy").cpu().numpy(), numpy.ones(3, dtype="float32"))


def test_events_measure_time():
    begin, end = (torch.Event(device="lazy", enable_timing=True) for _ in range(2))
    x = torch.ones(1 << 22, device="lazy")
    torch.lazy.synchronize()
    begin.record()
    for _ in range(20):
        x = x * 1.5 - x
    end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0
    assert x[0].item() == pytest.approx(0.5**20)


def test_streams_are_one_queue():
    side = torch.Stream(device="lazy")
    x = torch.ones(1 << 20, device="lazy")
    for step in range(6):
        with torch.lazy.stream(side):
            x = x + 1
        x = x * 1
        side.synchronize()
        assert side.query()
        assert x[step].item() == step + 2


@pytest.mark.skipif(EAGER == "cpu", reason="CUDA's streams; the tests themselves are tried on the CPU")
def test_on_a_stream_of_cudas():
    """Whichever stream of CUDA's is current, ours follow it; the program orders the streams, as in eager."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Softmax(-1)).to("lazy")
    x = torch.randn(32, 64).to("lazy")
    with torch.no_grad():
        expected = net(x).cpu()
        for _ in range(6):
            side = torch.cuda.Stream()
            torch.lazy.synchronize()
            with torch.cuda.stream(side):
                y = net(x)
                torch_lazy.sync()
                side.synchronize()
            torch.testing.assert_close(y.cpu(), expected, rtol=1e-5, atol=1e-6)
