# SPDX-License-Identifier: Apache-2.0
"""Several devices: each call is its tensors' device's, each trace one device's, and kernels are all devices' (lazy/eager/current_device).

All stand on the CPU (option `devices`), where only our own checks can tell one's tensors from another's; with LAZY_TEST_EAGER=cuda
each stands on a GPU.
"""

import copy
import io
import os
import threading

os.environ["LAZY_DEVICES"] = "3"
os.environ["LAZY_COMPILE"] = "sync"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402, F401

FIRST, OTHER = torch.device("lazy:0"), torch.device("lazy:1")
COUNT = torch.cuda.device_count() if os.environ.get("LAZY_TEST_EAGER") == "cuda" else 3
LAST = torch.device("lazy", COUNT - 1)


def test_the_current_device():
    assert torch.lazy.device_count() == COUNT and torch.lazy.current_device() == 0
    with torch.lazy.device(1):
        assert torch.lazy.current_device() == 1 and torch.ones(2, device="lazy").device == OTHER
        with torch.lazy.device(f"lazy:{COUNT - 1}"):
            assert torch.lazy.current_device() == COUNT - 1
        with torch.lazy.device(None):
            assert torch.lazy.current_device() == 1
        assert torch.ones(2, device=FIRST).device == FIRST
    assert torch.ones(2, device="lazy").device == FIRST and torch.lazy.current_device() == 0


def test_each_thread_has_its_own():
    seen = []
    with torch.lazy.device(1):
        thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="lazy").device))
        thread.start()
        thread.join()
        assert seen == [FIRST]


@pytest.mark.parametrize("ask", [
    lambda: torch.lazy.set_device(COUNT),
    lambda: torch.ones(2, device=f"lazy:{COUNT}"),
    lambda: torch.eye(2, device=f"lazy:{COUNT}"),
])  # fmt: skip
def test_there_are_no_more(ask):
    with pytest.raises(RuntimeError, match=f"device index {COUNT} is out of range: there are {COUNT} devices"):
        ask()


MAKERS = {
    "tensor": lambda: torch.tensor([1.0, 2.0], device=OTHER),
    "arange": lambda: torch.arange(4, device=OTHER),
    "full": lambda: torch.full((2,), 3.0, device=OTHER),
    "eye": lambda: torch.eye(2, device=OTHER),
    "linspace": lambda: torch.linspace(0, 1, 3, device=OTHER),
    "empty_strided": lambda: torch.empty_strided((2,), (1,), device=OTHER).zero_(),
    "randperm": lambda: torch.randperm(5, device=OTHER),
    "to": lambda: torch.ones(2).to(OTHER),
    "across": lambda: torch.ones(2, device=FIRST).to(OTHER),
    "lazy": lambda: torch.ones(2).lazy(1),
    "storage": lambda: torch.tensor([], device=OTHER).set_(torch.UntypedStorage(8, device=OTHER)).zero_(),
}
CALLS = {
    "view": lambda x: x.view(2, 2).t(),
    "pointwise": lambda x: x * 2 + 1,
    "in place": lambda x: x.mul_(2),
    "out": lambda x: torch.add(x, 1, out=torch.empty(0, device=x.device)),
    "new": lambda x: x.new_zeros(3),
    "like": lambda x: torch.rand_like(x),
    "several": lambda x: torch.sort(x)[1],
    "at once": lambda x: torch.nonzero(x),
    "list": lambda x: torch.cat([x, x]),
    "split": lambda x: x.chunk(2)[1],
    "for each": lambda x: torch._foreach_add([x, x], 1)[1],
    "resized": lambda x: x.clone().resize_(9),
    "cumulated": lambda x: torch.cumsum(x, 0),
    "number": lambda x: x[1],
    "indexed": lambda x: x[x > 1],
    "random": lambda x: torch.nn.functional.dropout(x, 0.5),
    "fft": lambda x: torch.fft.fft(x),
    "sparse": lambda x: x.view(2, 2).to_sparse(),
    "copied": lambda x: copy.deepcopy(x),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_made_is_on_the_device(name):
    made = MAKERS[name]()
    assert made.device == OTHER and (made + made).device == OTHER
    if name not in ("randperm",):
        assert torch.equal(made.cpu(), {**MAKERS}[name]().cpu())


@pytest.mark.parametrize("name", CALLS)
def test_calls_stay_on_the_device(name):
    made = CALLS[name](torch.arange(4.0, device=OTHER))
    assert made.device == OTHER and made.cpu().device.type == "cpu"
    expected = CALLS[name](torch.arange(4.0, device=FIRST))
    if name not in ("like", "random", "resized"):
        assert torch.equal(made.cpu().to_dense(), expected.cpu().to_dense())
    assert torch.lazy.current_device() == 0


@pytest.mark.parametrize("call", [
    lambda x, y: x + y,
    lambda x, y: x.add_(y),
    lambda x, y: x @ y,
    lambda x, y: x + y[0, 0],
    lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.nonzero(x).to(y.dtype) @ y,
    lambda x, y: torch.where(x > 0, x, y),
    lambda x, y: torch.add(x, 1, out=y),
])  # fmt: skip
def test_tensors_of_two_devices_do_not_mix(call):
    x, y = torch.ones(2, 2, device=FIRST), torch.ones(2, 2, device=OTHER)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices, lazy:[01]"):
        call(x, y)
    assert torch.equal(x.cpu(), torch.ones(2, 2)) and torch.equal(y.cpu(), torch.ones(2, 2))


def test_copies_across():
    x = torch.arange(6.0, device=FIRST).view(2, 3)
    y = (x * 2).t().to(OTHER, torch.float64)
    assert y.device == OTHER and torch.equal(y.cpu(), torch.arange(6.0).view(2, 3).t().double() * 2)
    pending = torch.zeros(2, 3, device=OTHER) + 1
    read = pending * 3  # must not see what comes next
    pending.copy_(x)
    x.zero_()
    assert torch.equal(read.cpu(), torch.full((2, 3), 3.0)) and torch.equal(pending.cpu(), torch.arange(6.0).view(2, 3))
    number = torch.tensor(5.0, device=OTHER)
    assert torch.equal(x.fill_(number).cpu(), torch.full((2, 3), 5.0))


def test_torch_compile_on_another_device():
    compiled = torch.compile(lambda x: (x * 2).sin().sum(), backend="lazy")
    for _ in range(4):
        x = torch.arange(4.0, device=OTHER, requires_grad=True)
        result = compiled(x)
        result.backward()
        assert result.device == OTHER and x.grad.device == OTHER
    assert torch.allclose(x.grad.cpu(), 2 * torch.cos(2 * torch.arange(4.0)))


def test_files_name_the_device():
    file = io.BytesIO()
    torch.save(torch.arange(3.0, device=OTHER), file)
    for location, device in [(None, OTHER), (str(LAST), LAST), ("lazy", FIRST), ("cpu", torch.device("cpu"))]:
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert loaded.device == device and torch.equal(loaded.cpu(), torch.arange(3.0))


def test_streams_and_events_are_a_devices():
    assert torch.lazy.current_stream(1).device == OTHER and torch.lazy.current_stream().device == FIRST
    stream = torch.Stream(device=OTHER)
    with torch.lazy.stream(stream):
        x = torch.ones(3, device=OTHER) * 2
    event = stream.record_event()
    torch.lazy.current_stream(0).wait_event(event)
    torch.lazy.synchronize(1)
    assert event.query() and torch.equal(x.cpu(), torch.full((3,), 2.0)) and torch.lazy.current_device() == 0


def test_seeds_are_all_devices():
    torch.manual_seed(7)
    expected = torch.rand(3, device=FIRST).cpu()
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3, device=OTHER).cpu(), expected)
    generator = torch.Generator(device=OTHER).manual_seed(7)
    assert generator.device == OTHER and torch.equal(torch.rand(3, device=OTHER, generator=generator).cpu(), expected)
