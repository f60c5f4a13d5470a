# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh names in one line what a machine lacks."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A machine that has all there is to have: what each program prints.
PROGRAMS = {"g++": "12.2.0", "cmake": "cmake version 3.25.1", "ninja": "1.11.1", "ccache": "4.8", "python3": "3.11",
            "uname": "Linux x86_64", "id": "0"}


def run(tmp_path, part="demo-packages", without=(), **programs):
    """Runs a part of the script where the programs print what they are said to; returns its exit code, and its lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "dirname", "sha256sum", "cut", "mktemp", "rm", "head", "sort", "grep", "tail"):
        (folder / tool).symlink_to(f"/usr/bin/{tool}")
    for name, printed in (PROGRAMS | programs).items():
        if name not in without:
            (folder / name).write_text(f"#!/usr/bin/bash\necho '{printed}'\n")
            (folder / name).chmod(0o755)
    done = subprocess.run(["/usr/bin/bash", ROOT / "tools/setup.sh", part], env={"PATH": str(folder)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def test_says_nothing_where_all_is_there(tmp_path):
    assert run(tmp_path) == (0, [])


@pytest.mark.parametrize("program, printed, sentence", [
    ("cmake", "cmake version 3.22.1", "CMake 3.25 is needed, and cmake is 3.22.1; a newer one: python3 -m pip install cmake"),
    ("g++", "11.4.0", "GCC 12 is needed, and g++ is 11.4.0; install g++-12, and make it g++"),
    ("python3", "3.10", "Python 3.11 to 3.13 is needed, and python3 is 3.10; PYTHON=<program> names another"),
    ("uname", "Darwin arm64", "PyTorch's package for Linux x86_64 is used, and this is Darwin arm64"),
])
def test_names_what_is_too_old(tmp_path, program, printed, sentence):
    assert run(tmp_path, **{program: printed}) == (1, [f"setup: {sentence}"])


def test_names_what_is_missing_where_there_is_no_apt(tmp_path):
    assert run(tmp_path, without=["g++", "cmake"]) == (
        1, ["setup: missing g++ cmake, by Debian's names; install them with this system's own installer"])


def test_names_what_cannot_be_installed(tmp_path):
    apt = "E: Unable to locate package'; exit 100; echo '"
    assert run(tmp_path, without=["ninja"], **{"apt-get": apt}) == (1, [
        "setup: installing ninja-build", "E: Unable to locate package",
        "setup: missing ninja-build; install with: sudo apt-get install -y --no-install-recommends ninja-build"])


def test_refuses_a_part_that_there_is_not(tmp_path):
    assert run(tmp_path, "demos") == (1, ["setup: no part demos: tools/setup.sh [demo-packages|demo-python]"])
