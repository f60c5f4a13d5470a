# SPDX-License-Identifier: Apache-2.0
"""torch_lazy::dropout, which a GPU's dropout is recorded as: numbers of CUDA's generator, drawn by our kernels. On the CPU the
call itself runs, on the stand-in the kernels for CUDA do."""

import json
import os

import numpy
import pytest
import torch

import torch_lazy
from torch_lazy._library import take_draw

FOR_CUDA = os.environ.get("LAZY_BACKEND") == "stand_in"
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
P, SEED, OFFSET, THREADS = 0.3, 0x7EDCBA9876543211, 12, 64
LOW = numpy.uint64(0xFFFFFFFF)


def philox(count, thread):
    """Philox4x32-10 of arrays of 64-bit counts and threads: four arrays."""
    shift = numpy.uint64(32)
    c = [count & LOW, count >> shift, thread & LOW, thread >> shift]
    key = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        a, b = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(b >> shift) ^ c[1] ^ numpy.uint64(key[0]), b & LOW, (a >> shift) ^ c[3] ^ numpy.uint64(key[1]), a & LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniforms(count, width):
    """The kernel's walk: a round at a time, and four numbers of each thread at a time."""
    numbers = numpy.zeros(0, numpy.float32)
    drawn, threads = OFFSET // 4, numpy.arange(THREADS, dtype=numpy.uint64)
    while numbers.size < count:
        fours = []
        for _ in range(max(1, width // 4)):
            fours.append(numpy.stack(philox(numpy.full(THREADS, drawn, numpy.uint64), threads)))
            drawn += 1
        # Each thread's `width` neighbours; or element by element, `threads` apart.
        drawn_now = fours[0] if width == 1 else numpy.concatenate(fours)[:width].T
        as_float = drawn_now.reshape(-1).astype(numpy.uint32).astype(numpy.float32)
        numbers = numpy.concatenate([numbers, as_float * numpy.float32(2**-32) + numpy.float32(2**-33)])
    return torch.from_numpy(numbers[:count])


def threshold(dtype):
    """How many of the 2**32 numbers are below 1 - p as float."""
    kept = 1 - P if dtype == torch.float64 else float(numpy.float32(1 - P))
    low, high = 0, 2**32
    while low < high:
        middle = (low + high) // 2
        is_below = float(numpy.float32(numpy.uint32(middle)) * numpy.float32(2**-32) + numpy.float32(2**-33)) < kept
        low, high = (middle + 1, high) if is_below else (low, middle)
    return low


def scale(dtype):
    return 1 / (1 - P) if dtype == torch.float64 else float(numpy.float32(1 / float(numpy.float32(1 - P))))


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def order_of(x, width):
    return sorted(range(x.dim()), key=lambda d: -x.stride(d)) if width > 1 else list(range(x.dim()))


def expected(x, width):
    order = order_of(x, width)
    kept = 1 - P if x.dtype == torch.float64 else float(numpy.float32(1 - P))
    mask = torch.empty_like(x, dtype=torch.bool)
    mask.permute(order).copy_((uniforms(x.numel(), width).double() < kept).view(x.permute(order).shape))
    return (wide(x) * mask * scale(x.dtype)).to(x.dtype), mask


def dropout(x, width):
    return torch.ops.torch_lazy.dropout(
        x, P, scale(x.dtype), threshold(x.dtype), SEED, OFFSET, THREADS, width, order_of(x, width))


def numbers(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "columns": lambda x: x[:, 1:7],
    "channels last": lambda x: x.view(1, 8, -1, 4).to(memory_format=torch.channels_last),
}


def counted(call):
    """What the call returns from a trace that was seen before, and (kernel launches, calls without a lowering)."""
    torch_lazy.set_option("compile", "sync")
    for _ in range(3):
        torch.ops.torch_lazy.sync()
        before = json.loads(torch.ops.torch_lazy.metrics())
        results = call()
        torch.ops.torch_lazy.sync()
        after = json.loads(torch.ops.torch_lazy.metrics())
    return results, tuple(after[name] - before[name] for name in ("kernel_launches", "calls_recorded"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("layout", "width"), [(name, w) for name in LAYOUTS for w in (1, 2, 4, 8) if name != "columns" or w == 1])
def test_draws_as_cuda(layout, width, dtype):
    x = numbers(64, 24).to(dtype)  # several rounds
    on_device = LAYOUTS[layout](x.to("lazy"))
    (output, mask), (launches, recorded) = counted(lambda: dropout(on_device, width))
    for actual, right in zip((output, mask), expected(LAYOUTS[layout](x), width), strict=True):
        assert actual.stride() == right.stride() and torch.equal(actual.cpu(), right)
    if FOR_CUDA:  # across memory, the mask is made before it is stored
        assert recorded == 0 and launches <= (2 if width == 1 else 1)


@pytest.mark.parametrize("count", [1, 3, 255, 1027])
def test_odd_counts(count):
    x = numbers(count)
    (output, _), _ = counted(lambda: dropout(x.to("lazy"), 1))
    assert torch.equal(output.cpu(), expected(x, 1)[0])


def test_sizes_share_a_kernel():
    torch_lazy.set_option("compile", "sync")
    for rows in (16, 24, 40):
        x = numbers(rows, 64)
        output, _ = dropout(x.to("lazy") * 1, 4)
        assert torch.equal(output.cpu(), expected(x, 4)[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_step(dtype):
    """Forward, with what stands around a dropout, and backward, which reads the mask."""
    x, residual, weight = numbers(40, 256).to(dtype), numbers(256, 40).t().contiguous().to(dtype), numbers(256).to(dtype)
    gradient = numbers(40, 256).flip(0).to(dtype)

    def step(x, residual, weight, gradient, drop):
        output, mask = drop(torch.relu(x))
        total = residual + output
        mean = wide(total * weight).amax(1)
        return output, mask, total, mean, torch.ops.aten.native_dropout_backward(gradient, mask, 1 / (1 - P))

    on_device = [t.to("lazy") for t in (x, residual, weight, gradient)]
    results, (launches, recorded) = counted(lambda: step(*on_device, lambda y: dropout(y, 4)))
    right = list(step(x, residual, weight, gradient, lambda y: expected(y, 4))[:4])
    right.append((wide(gradient) * right[1] * (1 / (1 - P))).to(dtype))
    for actual, e in zip(results, right, strict=True):
        assert torch.equal(actual.cpu(), e)
    if FOR_CUDA:
        assert recorded == 0 and launches <= 2


@pytest.mark.parametrize("compile", ["off", "sync"])
def test_replayed(compile):
    """Each replay draws the generator's next numbers, as the code does, whatever else draws in between."""
    torch_lazy.set_option("compile", compile)

    def drop_twice(x):
        for per_thread in (3, 8):
            seed, offset = take_draw(per_thread)
            x = torch.ops.torch_lazy.dropout(x + 1, P, scale(x.dtype), threshold(x.dtype), seed, offset, THREADS, 4, [0, 1])[0]
        return x

    def steps(function):
        for seed in 1, 5:  # another seed begins at offset 0
            torch.manual_seed(seed)
            take_draw(0)
        outputs = []
        for k in range(6):
            outputs.append(function(numbers(8, 32).to("lazy") * k).cpu())
            if k > 3:
                outputs.append(drop_twice(numbers(4, 64).to("lazy")).cpu())
        return outputs, take_draw(1)

    expected_outputs, expected_draw = steps(drop_twice)
    before = torch_lazy.metrics()["replays"]
    outputs, draw = steps(torch_lazy.make_replayable(drop_twice))
    assert torch_lazy.metrics()["replays"] - before == 4
    assert draw == expected_draw == (5, (6 + 2) * 12)
    assert all(torch.equal(a, b) for a, b in zip(outputs, expected_outputs, strict=True))
    assert not torch.equal(outputs[2], outputs[3])
