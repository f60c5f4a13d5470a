# SPDX-License-Identifier: Apache-2.0
"""Kernels on disk whatever happens to the disk: right results, and one warning at most."""

import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch_lazy

from child import Child, in_child
from loops import network, update


def train(steps=4):
    """Losses, kernels compiled, and kernels found on disk, where they are two files: those of a step, and of its input's sum."""
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        x = torch.full((16, 8), 0.1 * (step + 1), device="lazy")
        x = torch.sin(x) + torch.ones_like(x) * step
        losses += [x.sum().item(), update(net, optimizer, x).item()]
    metrics = torch_lazy.metrics()
    return losses, metrics["kernels_compiled"], metrics["kernels_from_disk"]


def run(cache, errors=None, function=train):
    return in_child(function, compile="sync", cache_dir=str(cache), errors=errors)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache in which all is right, and the losses."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    losses, compiled, found = run(cache)
    assert compiled > 3 and found == 0
    return cache, losses, compiled


@pytest.fixture
def copied(filled, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(filled[0], cache)
    return cache


def files(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


def warnings(errors):
    return [line for line in pathlib.Path(errors).read_text().splitlines() if "warning" in line]


def test_a_second_process_compiles_nothing(filled):
    cache, losses, kernels = filled
    assert run(cache) == (losses, 0, kernels)


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "remove"])
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_is_made_again(filled, copied, damage, seed):
    losses = filled[1]
    generator = random.Random(seed)
    path = generator.choice(files(copied))
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        if damage == "flip":
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(content[: {"flip": None, "truncate": len(content) // 2, "empty": 0}[damage]])
    seen, compiled, found = run(copied)
    assert seen == losses
    assert compiled > 0 and compiled + found == filled[2]
    assert run(copied) == (losses, 0, filled[2])


def test_killed_at_random_moments(filled, tmp_path):
    _, losses, kernels = filled
    cache, generator = tmp_path / "cache", random.Random(0)
    for _ in range(12):
        child = Child(train, compile="sync", cache_dir=str(cache))
        time.sleep(generator.uniform(0.0, 0.6))
        child.process.kill()
        child.process.join()
    seen, compiled, found = run(cache)
    assert (seen, compiled + found) == (losses, kernels)
    assert run(cache) == (losses, 0, kernels)


def _train_with_small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    return train()


def test_a_full_disk_costs_no_result(filled, tmp_path):
    errors = tmp_path / "errors"
    losses, compiled, found = run(tmp_path / "cache", errors, _train_with_small_files)
    assert losses == pytest.approx(filled[1], rel=1e-5)  # op by op
    assert found == 0
    assert len(warnings(errors)) == 1
    assert not files(tmp_path / "cache")


def test_a_folder_that_vanishes_costs_no_result(filled, copied, tmp_path):
    errors = tmp_path / "errors"

    def train_without_folder():
        first = train(1)[0]
        shutil.rmtree(copied)
        return first, train()[0]

    first, losses = run(copied, errors, train_without_folder)
    assert first == filled[1][:2]
    assert losses == pytest.approx(filled[1], rel=1e-5)  # known shapes: a step is one trace now, and sums in another order
    assert len(warnings(errors)) <= 1


def foreign(cache):
    cache.mkdir(mode=0o700)
    os.chown(cache, 65534, 65534)


def linked(cache):
    target = cache.with_name("target")
    target.mkdir(mode=0o700)
    cache.symlink_to(target)


def open_to_others(cache):
    cache.mkdir()
    cache.chmod(0o777)


def a_file(cache):
    cache.write_text("in the way")


@pytest.mark.parametrize("make", [foreign, linked, open_to_others, a_file])
def test_a_folder_that_is_not_ours_alone_is_not_used(filled, tmp_path, make):
    if make is foreign and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    make(tmp_path / "cache")
    errors = tmp_path / "errors"
    assert run(tmp_path / "cache", errors) == (filled[1], filled[2], 0)
    assert len(warnings(errors)) == 1
    assert not [path for path in tmp_path.rglob("*.so")]


def test_a_home_that_cannot_be_written(filled, tmp_path):
    errors = tmp_path / "errors"
    assert run("/proc/self/cache", errors) == (filled[1], filled[2], 0)
    assert len(warnings(errors)) == 1


def test_sixteen_processes_at_once(filled, tmp_path):
    _, losses, kernels = filled
    children = [Child(train, compile="sync", cache_dir=str(tmp_path / "cache")) for _ in range(16)]
    results = [child.result() for child in children]
    assert [seen for seen, _, _ in results] == [losses] * 16
    assert sum(compiled for _, compiled, _ in results) <= 1.2 * kernels


def steps_by_calls(cache, steps, settle):
    """Of so many equal steps, those that ran call by call. With `settle`, after all until their kernels have run one and that is noted."""

    def train_on():
        weight = torch.linspace(-1, 1, 960, device="lazy").view(24, 40)
        deadline = time.monotonic() + 120
        while True:
            before = torch_lazy.metrics()
            for _ in range(steps):
                torch.layer_norm(weight * 1.5, (40,)).sum(0).softmax(0).tolist()
            after = torch_lazy.metrics()
            by_calls = after["traces_interpreted"] - before["traces_interpreted"]
            is_compiled = by_calls == 0 and after["kernel_launches"] > before["kernel_launches"]
            is_noted = any(path.suffix != ".tmp" for path in cache.rglob("words/*"))
            if not settle or time.monotonic() > deadline or (is_compiled and is_noted):
                return by_calls

    return in_child(train_on, cache_dir=str(cache), compile="async")


def test_what_is_on_disk_is_used_from_the_same_step_on(tmp_path):
    cache = tmp_path / "cache"
    assert steps_by_calls(cache, 4, settle=True) == 0
    # Calls whose shapes are not known yet, and the first cut like any: a graph is planned when it comes again.
    assert [steps_by_calls(cache, 12, settle=False) for _ in range(3)] == 3 * [steps_by_calls(cache, 4, settle=False)]


SHORT_PROGRAM = """
import sys
import torch
import torch_lazy
from loops import network, update

net = network()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(int(sys.argv[1])):
    update(net, optimizer, torch.full((16, 8), 0.1 * (step + 1), device="lazy")).item()
print(*[torch_lazy.metrics()[name] for name in ("traces_interpreted", "kernels_compiled", "kernels_from_disk")])
"""


def run_short(cache, steps):
    """Traces that ran call by call, kernels compiled, and kernels found on disk, of a program that then ends as any does."""
    environment = {**os.environ, "LAZY_CACHE_DIR": str(cache), "LAZY_COMPILE": "async",
                   "PYTHONPATH": f"{pathlib.Path(__file__).parent}:{os.environ['PYTHONPATH']}"}
    words = subprocess.run([sys.executable, "-c", SHORT_PROGRAM, str(steps)], env=environment, check=True, capture_output=True, text=True)
    return tuple(map(int, words.stdout.split()))


def has_all(cache):
    """Are all kernels on disk that a plan wants, and is there such a plan?"""
    notes = [path.read_text().splitlines() for path in cache.glob("*/words/*") if path.suffix != ".tmp"]
    wanted = {kernel for key, word in notes if key.startswith("plan ") for kernel in word.split()[1:]}
    indices = "".join(path.read_text() for path in cache.glob("*/*.index"))
    return bool(wanted) and all(f"{kernel} " in indices for kernel in wanted)


def test_a_program_that_ends_leaves_its_kernels_to_the_next(tmp_path):
    """It ends when it has just asked for them."""
    cache = tmp_path / "cache"
    runs = 0
    while not has_all(cache) and runs < 4:  # on a busy machine, what goes on without the program may have too little time
        run_short(cache, 4)
        runs, deadline = runs + 1, time.monotonic() + 15
        while not has_all(cache) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert has_all(cache)
    by_calls, compiled, found = run_short(cache, 6)
    assert compiled == 0 and found > 3
    assert [run_short(cache, steps) for steps in (6, 12)] == 2 * [(by_calls, 0, found)]


def sequences_by_calls(cache, lengths, settle):
    """Of sequences of these lengths, a trace each, how many ran call by call. With `settle`, all again and again until none does."""

    def run_all():
        weight, x = torch.linspace(-1, 1, 64, device="lazy").view(8, 8), torch.linspace(0, 1, 16, device="lazy").view(2, 8)
        deadline = time.monotonic() + 120
        while True:
            before = torch_lazy.metrics()["traces_interpreted"]
            for length in lengths:
                state = x
                for _ in range(length):
                    state = torch.tanh(state @ weight + x)
                state.tolist()
            by_calls = torch_lazy.metrics()["traces_interpreted"] - before
            if not settle or time.monotonic() > deadline or (by_calls == 0 and has_all(cache)):
                return by_calls

    return in_child(run_all, cache_dir=str(cache), compile="async")


def test_what_a_former_process_has_run_is_compiled_at_its_first_cut(tmp_path):
    cache, lengths = tmp_path / "cache", [3, 4, 5, 6, 7]
    assert sequences_by_calls(cache, lengths, settle=True) == 0
    # The first one's calls have shapes that are not known yet.
    assert sequences_by_calls(cache, lengths, settle=False) == sequences_by_calls(cache, lengths[:1], settle=False)
