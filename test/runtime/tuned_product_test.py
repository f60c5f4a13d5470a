# SPDX-License-Identifier: Apache-2.0
"""Large products take turns between two libraries, then the faster one; alike sizes and other processes know it from them."""

import os
import shutil
import subprocess
import sys
import time

import pytest
import torch
import torch_lazy

from child import in_child

MOST_TIMED = 20  # runs of one size, before it is decided
TRIALS = 2  # sizes of a class that are tried
SIZE = 192  # its product is large enough
LONGEST_S = 60  # a loaded machine spends what may be spent on waiting, and is given more as time passes
IS_SUPPORTED = "_is_mkldnn_bf16_supported"  # of namespace mkldnn: whether PyTorch gives oneDNN products, of any type
takes_products = pytest.mark.skipif(not getattr(torch.ops.mkldnn, IS_SUPPORTED)(),
                                    reason="PyTorch gives oneDNN no products on a processor without instructions for 16-bit floats")


def _counts():
    counts = torch_lazy.metrics()["tuned_products"]
    return {name: counts.get(name, 0) for name in ("mkl", "onednn", "timed", "undecided")}


def _multiply(runs, shapes=((SIZE, SIZE, SIZE),), dtype=torch.float32, deterministic=False, until=lambda: False):
    """The counts before the first run and after each, up to where `until` is true."""
    torch.use_deterministic_algorithms(deterministic)
    seen = [_counts()]
    begin = time.monotonic()
    while len(seen) <= runs and not until() and time.monotonic() - begin < LONGEST_S:
        for rows, inner, columns in shapes:
            x, y = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
            expected = (x.double() @ y.double().t()).to(dtype)
            result = x.to("lazy") @ y.to("lazy").t()
            torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
        seen.append(_counts())
    return seen


def _files(cache, of="products"):
    finished = [file for file in cache.glob("*/words/*") if "." not in file.name]
    return [file for file in finished if file.read_bytes().startswith(of.encode())]


def _words(cache):
    return [file.read_text().splitlines()[1] for file in _files(cache)]


def _decide(cache, shapes=((SIZE, SIZE, SIZE),)):
    """The counts of a process that runs until something is on disk."""
    return in_child(lambda: _multiply(10**6, shapes, until=lambda: _words(cache)), compile="sync", cache_dir=str(cache))


FIRST = "first of onednn"  # how long that took


@pytest.fixture(scope="module")
def with_first(tmp_path_factory):
    """A cache in which one choice is kept, and what oneDNN's first product took."""
    cache = tmp_path_factory.mktemp("decided") / "cache"
    _decide(cache)
    return cache


@pytest.fixture(scope="module")
def decided(with_first, tmp_path_factory):
    """One in which the choice alone is kept."""
    cache = tmp_path_factory.mktemp("decided") / "cache"
    shutil.copytree(with_first, cache)
    for file in _files(cache, FIRST):
        file.unlink()
    return cache


@takes_products
def test_turns_then_the_winner(tmp_path):
    seen = _decide(tmp_path / "cache")
    assert 7 <= seen[-1]["timed"] <= MOST_TIMED  # at least three runs of MKL, and oneDNN's first and three more
    assert seen[-1]["undecided"] > 0
    (word,) = _words(tmp_path / "cache")
    assert word == "mkl" or word.startswith("onednn ")

    runs = 40
    other = in_child(_multiply, runs, compile="sync", cache_dir=str(tmp_path / "cache"))[-1]
    assert other["timed"] == other["undecided"] == 0
    first = runs if word == "mkl" else min(runs, int(word.split()[1]))
    interpreted = runs - other["mkl"] - other["onednn"]  # the first run may be
    assert interpreted <= 1 and other["mkl"] in (first, first - interpreted)


@takes_products
@pytest.mark.parametrize("word, by_onednn", [("mkl", 0), ("onednn 0", 20), ("onednn 8", 12), ("onednn 4096", 0)])
def test_a_size_takes_onednn_from_the_run_on_that_is_kept(tmp_path, word, by_onednn, decided):
    """Whatever the times are."""
    cache = tmp_path / "cache"
    shutil.copytree(decided, cache)
    (path,) = _files(cache)
    key, _ = path.read_text().splitlines()
    path.write_text(f"{key}\n{word}\n")
    other = in_child(_multiply, 21, compile="sync", cache_dir=str(cache))[-1]
    assert other == {"mkl": other["mkl"], "onednn": other["onednn"], "timed": 0, "undecided": 0}
    assert other["onednn"] - by_onednn in (0, 1) if by_onednn else other["onednn"] == 0


@takes_products
def test_alike_sizes_share_a_choice(tmp_path):
    """Few are tried, one decides for all, and a process that meets others of them tries nothing."""
    cache = tmp_path / "cache"
    shapes = [(rows, SIZE, SIZE) for rows in range(186, 202, 2)]
    seen = _decide(cache, shapes)
    assert len(_words(cache)) == 1 and seen[-1]["timed"] <= TRIALS * MOST_TIMED
    shapes = [(rows, SIZE, SIZE) for rows in range(187, 203, 2)]
    assert in_child(_multiply, 20, shapes, compile="sync", cache_dir=str(cache))[-1]["timed"] == 0


@takes_products
def test_what_does_not_come_again_is_not_tried(tmp_path):
    def run():
        return [_multiply(1, [(rows, SIZE, SIZE)])[-1] for rows in range(64, 640, 4)]

    last = in_child(run, compile="sync", cache_dir=str(tmp_path / "cache"))[-1]
    assert last["timed"] == last["onednn"] == 0 and last["mkl"] > 100


def _multiplies_unsupported(runs, deterministic):
    library = torch.library.Library("mkldnn", "IMPL")
    library.impl(IS_SUPPORTED, lambda: False, "CompositeImplicitAutograd")
    return _multiply(runs, ((400, 400, 400),), deterministic=deterministic)[-1]


@pytest.mark.parametrize("deterministic", [False, True])
def test_where_onednn_takes_no_products_nothing_is_tried(tmp_path, deterministic):
    """It would raise an error, so neither a trial, nor a choice that another machine left, nor a rule may ask it."""
    for _ in range(2):
        counts = in_child(_multiplies_unsupported, 40, deterministic, compile="sync", cache_dir=str(tmp_path / "cache"))
        assert counts == {"mkl": 0, "onednn": 0, "timed": 0, "undecided": 0}


DAMAGED = [b"", b"products", b"products f32\nmkl\n", b"\xff" * 100, *(b"KEY\n%b\n" % word for word in (b"", b"neither", b"onednn", b"onednn x",
                                                                                                b"onednn -1", b"onednn 99999999999"))]


@takes_products
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_word_is_no_word(tmp_path, damage, decided):
    cache = tmp_path / "cache"
    shutil.copytree(decided, cache)
    (file,) = _files(cache)
    file.write_bytes(damage.replace(b"KEY", file.read_bytes().split(b"\n")[0]))
    seen = in_child(_multiply, 10, compile="sync", cache_dir=str(cache))[-1]
    assert seen["timed"] > 0


@pytest.mark.parametrize(
    "arguments, options",
    [
        ({}, {"disable": "autotune"}),
        ({"deterministic": True}, {}),
        ({"dtype": torch.float64}, {}),
        ({"shapes": ((64, 64, 64),)}, {}),
    ],
    ids=["disabled", "deterministic", "float64", "small"],
)
def test_nothing_to_choose(tmp_path, arguments, options):
    def run():
        return _multiply(20, **arguments)

    assert not any(in_child(run, compile="sync", cache_dir=str(tmp_path / "cache"), **options)[-1].values())


# A tenth of a second is twenty seconds' share.
@takes_products
@pytest.mark.parametrize("seconds, tries", [("0.1", False), ("1e9", False), ("1e-6", True), ("-1", True), ("nan", True), ("soon", True)])
def test_a_process_begins_when_it_can_pay_for_the_first(tmp_path, seconds, tries, with_first):
    cache = tmp_path / "cache"
    shutil.copytree(with_first, cache)
    (choice,), (first,) = _files(cache), _files(cache, FIRST)
    choice.unlink()
    first.write_text(f"{first.read_text().splitlines()[0]}\n{seconds}\n")
    seen = in_child(_multiply, 10, compile="sync", cache_dir=str(cache))[-1]
    assert (seen["timed"] > 0) == tries


@takes_products
def test_no_disk(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    seen = in_child(_multiply, 20, compile="sync", cache_dir=str(blocked))
    assert seen[-1]["timed"] > 0


SHORT = """
import torch, torch_lazy
torch_lazy.set_option("compile", "sync")
for _ in range(12):
    x, y = torch.randn(192, 192), torch.randn(192, 192)
    (x.to("lazy") @ y.to("lazy").t()).cpu()
print(torch_lazy.metrics()["tuned_products"].get("timed", 0))
"""


@takes_products
def test_short_programs_decide_together(tmp_path, with_first):
    """None of them could pay for the first product, which takes as long as five of them may spend."""
    cache = tmp_path / "cache"
    shutil.copytree(with_first, cache)
    (choice,), (first,) = _files(cache), _files(cache, FIRST)
    choice.unlink()
    first.write_text(f"{first.read_text().splitlines()[0]}\n0.05\n")
    timed = []
    while len(timed) < 20 and not _words(cache):
        run = subprocess.run([sys.executable, "-c", SHORT], env={**os.environ, "LAZY_CACHE_DIR": str(cache)}, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        timed.append(int(run.stdout))
    assert timed[0] == 0 and sum(timed) > 0 and _words(cache)
    after = subprocess.run([sys.executable, "-c", SHORT], env={**os.environ, "LAZY_CACHE_DIR": str(cache)}, capture_output=True, text=True)
    assert int(after.stdout) == 0
