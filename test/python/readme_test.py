# SPDX-License-Identifier: Apache-2.0
"""The quick starts of README.md do what they show."""
import os
import pathlib
import re
import subprocess
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def block(language):
    """The only block of README.md in `language`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def loss_in(printed):
    return float(re.search(r"^loss (\S+)$", printed, re.MULTILINE).group(1))


def test_python_quick_start_trains(tmp_path):
    (tmp_path / "quick_start.py").write_text(block("python"))
    printed = run(sys.executable, tmp_path / "quick_start.py")
    assert loss_in(printed) < 0.05 and int(re.search(r"^calls (\d+)$", printed, re.MULTILINE).group(1)) > 0


def test_cpp_quick_start_trains(tmp_path):
    run("cmake", "--install", os.environ["LAZY_BUILD_DIR"], "--prefix", tmp_path / "prefix")
    (tmp_path / "quick_start.cc").write_text(block("cpp"))
    (tmp_path / "CMakeLists.txt").write_text(block("cmake"))
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={tmp_path}/prefix",
        f"-DLAZY_TORCH_DIR={pathlib.Path(torch.__file__).parent}")
    run("cmake", "--build", tmp_path / "build")
    assert loss_in(run(tmp_path / "build/quick_start")) < 0.05
