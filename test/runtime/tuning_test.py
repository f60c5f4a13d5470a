# SPDX-License-Identifier: Apache-2.0
"""Large products take turns between two libraries, then the faster one; other processes know it from the disk."""

import time

import pytest
import torch
import torch_lazy

from child import in_child

EACH = 12  # runs of each library
SIZE = 192  # its product is large enough


def _counts():
    counts = torch_lazy.metrics()["tuned_products"]
    return [counts.get(name, 0) for name in ("mkl", "onednn")]


def _multiply(runs, shapes=((SIZE, SIZE, SIZE),), dtype=torch.float32, deterministic=False):
    """The counts before the first run and after each."""
    torch.use_deterministic_algorithms(deterministic)
    seen = [_counts()]
    for run in range(runs):
        for rows, inner, columns in shapes:
            x, y = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
            expected = (x.double() @ y.double().t()).to(dtype)
            result = x.to("lazy") @ y.to("lazy").t()
            torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
        seen.append(_counts())
    time.sleep(0.3)  # the word is written by a thread in the background
    return seen


def test_turns_then_the_winner(tmp_path):
    runs = 2 * EACH + 8
    seen = in_child(_multiply, runs, compile="sync", cache_dir=str(tmp_path / "cache"))
    last = seen[-1]
    begin = next(k for k in range(len(seen)) if seen[k] != [0, 0])  # the first run may be the interpreter's
    assert seen[begin + 2 * EACH - 1] == [EACH, EACH]
    assert sorted(last)[0] == EACH and sum(last) == runs - begin + 1
    words = list((tmp_path / "cache").glob("*/words/*"))
    winner = "mkl" if last[0] > last[1] else "onednn"
    assert [word.read_text().splitlines()[1] for word in words] == [winner]

    other = in_child(_multiply, runs, compile="sync", cache_dir=str(tmp_path / "cache"))[-1]
    assert other == ([sum(last), 0] if winner == "mkl" else [0, sum(last)])


@pytest.mark.parametrize("damage", [b"", b"product", b"product f32\nneither\n", b"\xff" * 100])
def test_a_damaged_word_is_no_word(tmp_path, damage):
    cache = str(tmp_path / "cache")
    in_child(_multiply, 2 * EACH + 2, compile="sync", cache_dir=cache)
    for word in (tmp_path / "cache").glob("*/words/*"):
        word.write_bytes(damage)
    seen = in_child(_multiply, 2 * EACH + 2, compile="sync", cache_dir=cache)[-1]
    assert min(seen) == EACH


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
        return _multiply(2 * EACH + 4, **arguments)

    assert in_child(run, compile="sync", cache_dir=str(tmp_path / "cache"), **options)[-1] == [0, 0]


def test_no_disk(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    seen = in_child(_multiply, 2 * EACH + 2, compile="sync", cache_dir=str(blocked))
    assert min(seen[-1]) == EACH
