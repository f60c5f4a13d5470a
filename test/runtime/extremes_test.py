# SPDX-License-Identifier: Apache-2.0
"""Extreme inputs are errors of eager's kind, or have eager's values: no process ends by them.

Each child imports the package anew, with an environment of its own; `EXTREME_CALLS=20000` tries more calls.
"""
import contextlib
import multiprocessing
import os
import random
import resource
import sys
import threading
import traceback

import pytest
import torch

from extremes import CALLS, Draw

CONTEXT = multiprocessing.get_context("fork")
# Everything is planned and nothing compiled: a trace runs call by call, as eager's would.
PLANNED = {"LAZY_COMPILE": "sync", "LAZY_COMPILER": "/bin/false"}


def _run(pipe, errors, environment, program, arguments):
    torch.set_num_threads(1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    os.environ.update(environment)
    try:
        import torch_lazy  # noqa: F401

        pipe.send(("done", program(*arguments)))
    except BaseException as error:  # MemoryError among them
        pipe.send((type(error).__name__, "".join(traceback.format_exception(error))[-2000:]))


def run(program, *arguments, errors="/dev/null", **environment):
    """("done", what the program returned) or (an error's type, its text). A child that dies fails the test."""
    assert "torch_lazy" not in sys.modules
    ours, theirs = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_run, args=(theirs, errors, environment, program, arguments))
    child.start()
    theirs.close()
    try:
        outcome = ours.recv()
    except EOFError:
        outcome = None
    child.join()
    said = open(errors, errors="replace").read()[-2000:]
    assert child.exitcode == 0 and outcome is not None, f"ended with {child.exitcode}: {said}"
    return outcome


def train(steps=3):
    """A net's losses on the device; they must be those of the CPU."""

    def losses(device):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to(device)
        found = []
        for step in range(steps):
            loss = torch.log_softmax(net(torch.full((3, 4), step + 0.5, device=device)), 1).square().sum()
            loss.backward()
            with torch.no_grad():  # torch.optim imports Dynamo, for seconds
                for parameter in net.parameters():
                    parameter -= 0.1 * parameter.grad / (parameter.grad.square().sqrt() + 1e-8)
                    parameter.grad = None
            found.append(loss.item())
        return found

    torch.testing.assert_close(losses("lazy"), losses("cpu"), rtol=1e-4, atol=0)
    return "right"


# --- many operands


def lists_of(count):
    def results(device):
        numbers = torch.arange(count, dtype=torch.float32).remainder(97).to(device)
        for _ in range(2):  # the second time its shape is known
            parts = list(numbers.unbind())
            sums = torch._foreach_add(parts, 1.0)
            torch._foreach_mul_(sums, parts)
            yield torch.stack(sums)
            yield torch.cat([part.view(1) for part in sums])
            yield torch.stack(torch.unsafe_split(numbers, 1)).sum()
            yield torch._foreach_norm(sums)[-1]

    for ours, theirs in zip(results("lazy"), results("cpu")):
        assert torch.equal(ours.cpu(), theirs)


@pytest.mark.parametrize("count", [3000, 8193, 32769, 70001])
def test_lists_of_tensors(count):
    assert run(lists_of, count, **PLANNED) == ("done", None)


# --- calls


def outcome_of(name, seed, device):
    try:
        with contextlib.redirect_stdout(None):
            result = CALLS[name](Draw(seed, device))
            results = result if isinstance(result, (tuple, list)) else [result]
            return [value.cpu() if isinstance(value, torch.Tensor) else value for value in results]
    except Exception as error:
        return error


def is_same(ours, theirs):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        memory = (torch.OutOfMemoryError, MemoryError)
        both = isinstance(ours, Exception) and isinstance(theirs, Exception)
        return both and (type(ours) is type(theirs) or isinstance(ours, memory))
    for one, other in zip(ours, theirs):
        if not isinstance(one, torch.Tensor):
            if one != other:
                return False
        elif one.dtype != other.dtype or one.shape != other.shape or not torch.equal(one.isnan(), other.isnan()):
            return False
        elif not torch.equal(one[~one.isnan()], other[~other.isnan()]):
            return False
    return len(ours) == len(theirs)


def calls(first, number, progress):
    size_bytes = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size_bytes + (2 << 30), resource.RLIM_INFINITY))
    names = sorted(CALLS)
    different, errors = [], 0
    for seed in range(first, first + number):
        name = random.Random(seed).choice(names)
        with open(progress, "w") as file:
            print(name, seed, file=file)
        theirs, ours = outcome_of(name, seed, "cpu"), outcome_of(name, seed, "lazy")
        errors += isinstance(theirs, Exception)
        if not is_same(ours, theirs):
            different.append(f"{name}, seed {seed}: {ours!r:.300} where eager has {theirs!r:.300}")
    assert train() == "right"
    return different, errors


@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_calls(backend, tmp_path):
    number, progress = int(os.environ.get("EXTREME_CALLS", "400")), tmp_path / "call"
    try:
        kind, found = run(calls, 0, number, progress, errors=tmp_path / "errors", LAZY_BACKEND=backend, **PLANNED)
    except AssertionError as error:
        raise AssertionError(f"{progress.read_text()}: {error}") from None
    assert kind == "done", found
    different, errors = found
    assert not different, "\n".join(different)
    assert number / 10 < errors < number  # some of these calls are refused, and others are not


# --- options, and what the system gives

VALUES = ["", "0", "-1", "9223372036854775807", "99999999999999999999999", "sync,off", "\x01\udcff", "x" * 100_000, "/dev/null"]
OPTIONS = ["BACKEND", "DEVICES", "COMPILE", "COMPILER", "CACHE_DIR", "DISABLE", "COMPARE", "LOG", "DUMP", "MAX_TRACE_OPS",
           "MAX_TRACE_BYTES", "MAX_KNOWN_OPS", "OVERLAP", "VERIFY", "NUMERICS"]


@pytest.mark.parametrize("option", OPTIONS)
def test_absurd_values_of_options(option, tmp_path):
    (tmp_path / "work").mkdir()
    os.chdir(tmp_path / "work")
    for value in VALUES[OPTIONS.index(option) % 3::3]:  # a third of them for each
        environment = {**PLANNED, "LAZY_CACHE_DIR": str(tmp_path / "cache"), f"LAZY_{option}": value}
        assert run(train, errors=tmp_path / "errors", **environment) == ("done", "right"), value


def names_an_error():
    with pytest.raises(RuntimeError, match="backend=cuda"):
        torch.ones(2, device="lazy")
    return torch.accelerator.device_count(), torch.lazy.device_count()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_backend_that_is_not_there_is_an_error():
    assert run(names_an_error, LAZY_BACKEND="cuda") == ("done", (1, 1))


COMPILERS = {
    "killed": "kill -9 $$",
    "aborted": "kill -6 $$",
    "nothing": "exit 0",
    "garbage": 'for last; do :; done; echo garbage | tee "$last" kernels.so',
    "talks": "head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 1",
    "closes": "exec 1>&- 2>&-; exit 3",
}


@pytest.mark.parametrize("name", [*COMPILERS, "a folder", "no program", "missing"])
def test_compilers_that_fail(name, tmp_path):
    compiler = tmp_path / "compiler"
    if name == "a folder":
        compiler.mkdir()
    elif name != "missing":
        compiler.write_text(f"#!/bin/sh\n{COMPILERS.get(name, '')}\n")
        compiler.chmod(0o600 if name == "no program" else 0o700)
    environment = {"LAZY_COMPILE": "sync", "LAZY_COMPILER": str(compiler), "LAZY_CACHE_DIR": str(tmp_path / "cache")}
    assert run(train, errors=tmp_path / "errors", **environment) == ("done", "right")


def with_memory(mebibytes, steps=4):
    import torch_lazy

    train()
    size_bytes = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size_bytes + (mebibytes << 20), resource.RLIM_INFINITY))
    refused = 0
    for step in range(steps):
        try:
            held = [torch.ones((1 << 20) + step, device="lazy") * k for k in range(mebibytes // 2)]
            torch_lazy.sync()
            assert held[-1][-1].item() == len(held) - 1
        except (RuntimeError, MemoryError):
            refused += 1
        held = None
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert refused > 0
    return train()


@pytest.mark.parametrize("mebibytes", [48, 96, 192])
def test_refused_memory(mebibytes, tmp_path):
    assert run(with_memory, mebibytes, errors=tmp_path / "errors", **PLANNED) == ("done", "right")


def without_threads():
    torch.ones(1, requires_grad=True).sum().backward()  # PyTorch's own threads
    resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
    if os.getuid() == 0:
        os.setuid(65534)  # root is not limited
    with pytest.raises(RuntimeError):
        threading.Thread(target=print).start()
    return train(steps=6)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_refused_threads_and_processes(mode, tmp_path):
    outcome = run(without_threads, errors=tmp_path / "errors", LAZY_COMPILE=mode, LAZY_CACHE_DIR="/nonexistent/folder")
    assert outcome == ("done", "right")


def deep(number):
    """A chain of calls, and its backward pass, in a thread with little stack."""
    found = []

    def work():
        x = torch.ones(2, device="lazy", requires_grad=True)
        y = x
        for k in range(number):
            y = y + 1 if k % 2 else y.neg()
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist()))

    threading.stack_size(512 << 10)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found


def test_deep_graphs_need_no_stack(tmp_path):
    assert run(deep, 40_000, errors=tmp_path / "errors", **PLANNED) == ("done", [([1.0, 1.0], [1.0, 1.0])])
