# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows: both devices side by side, compiled; where the time went; the digits it was least sure of."""
import os
import re
import subprocess

BUILD = os.environ["LAZY_BUILD_DIR"]
KERNELS_A_STEP = 10.1  # ten, and what reads the loss at an epoch's end
WITHOUT_THE_LAST = 9.5  # step of an epoch's 19, whose batch is smaller: its graph is asked for once the others' kernels are there


def run(*arguments, **variables):
    done = subprocess.run([f"{BUILD}/bin/digits", *arguments], env=os.environ | variables, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def table(printed):
    """The rows of numbers under the titles."""
    lines = printed.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("epoch")) + 1
    rows = []
    for line in lines[start:]:
        if not line.strip():
            return rows
        if line[:5].strip().isdigit():
            rows.append([float(word) for word in line.split()])
    raise AssertionError(printed)


def test_shows_both_devices_and_kernels(tmp_path):
    printed = run("--epochs", "4", LAZY_COMPILE="sync", LAZY_BACKEND="cpu", LAZY_CACHE_DIR=str(tmp_path))
    rows = table(printed)
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    for _, loss, ms, lazy_loss, lazy_ms, kernels in rows:
        assert abs(lazy_loss - loss) < 0.01 and ms > 0 and lazy_ms > 0
        assert kernels > 0
    assert rows[2][5] == rows[3][5] == KERNELS_A_STEP
    accuracies = re.findall(r"^(\w+) +[\d.]+ ms a step in the second half, +([\d.]+) % of the test images right$", printed, re.M)
    assert [device for device, _ in accuracies] == ["cpu", "lazy"]
    assert all(float(accuracy) > 95 for _, accuracy in accuracies)


def test_shows_where_the_time_went(tmp_path):
    printed = run("--epochs", "4", LAZY_COMPILE="sync", LAZY_BACKEND="cpu", LAZY_CACHE_DIR=str(tmp_path))
    whole = float(re.search(r"^where a step's ([\d.]+) ms went:$", printed, re.M)[1])
    parts = [float(ms) for ms in re.findall(r"^  (?:running|recording) .* ([\d.]+) ms  \u2588*$", printed, re.M)]
    assert len(parts) == 2 and abs(sum(parts) - whole) < 0.02
    assert re.search(r"^compiled [1-9]\d* kernels in [\d.]+ s beside the program, found 0 on disk; waited 0.0 s$", printed, re.M)


def test_second_run_finds_its_kernels_on_disk(tmp_path):
    arguments = ("--epochs", "2", "--device", "lazy")
    where = {"LAZY_COMPILE": "sync", "LAZY_BACKEND": "cpu", "LAZY_CACHE_DIR": str(tmp_path)}
    compiled = int(re.search(r"^compiled (\d+) kernels", run(*arguments, **where), re.M)[1])
    assert f"compiled 0 kernels in 0.0 s beside the program, found {compiled} on disk; waited 0.0 s" in run(*arguments, **where)


def test_waits_for_the_compiler_half_way(tmp_path):
    printed = run("--epochs", "6", LAZY_BACKEND="cpu", LAZY_CACHE_DIR=str(tmp_path))
    assert re.search(r"^      \.\.\. [\d.]+ s for the compiler; the next run finds its kernels on disk$", printed, re.M)
    assert table(printed)[-1][5] in (KERNELS_A_STEP, WITHOUT_THE_LAST)


def test_shows_four_digits():
    lines = run("--epochs", "1", "--device", "cpu").splitlines()
    start = lines.index("least sure of:") + 1
    for line in lines[start:start + 8]:
        assert len(line) == 4 * 18 and set(line) <= set(" \u2591\u2592\u2593\u2588")
    assert len(re.findall(r"a \d(?:, rightly|, taken for \d)", lines[start + 8])) == 4
    assert len(lines) == start + 9
