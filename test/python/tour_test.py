# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/tour.md are what its program makes; LAZY_UPDATE_GOLDENS=1 rewrites them."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/tour.md"
BLOCK = re.compile(r"(<!-- made by (\S+) -->\n```\w*\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
PROGRAM = "step.py"


def blocks():
    """Name -> text, of the page."""
    return {name: text for _, name, text, _ in BLOCK.findall(PAGE.read_text())}


def text_of(folder, pattern):
    """Of the only file, or of the last one."""
    return sorted(folder.glob(pattern))[-1].read_text()


def printed_by(folder, device):
    """The losses, and what else the page's program prints on the device."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (folder / PROGRAM).write_text(program.replace('"lazy"', f'"{device}"'))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LAZY_")}
    environment |= {"LAZY_BACKEND": "cpu", "LAZY_COMPILE": "sync", "LAZY_CACHE_DIR": f"{folder}/cache", "LAZY_DUMP": f"{folder}/dump"}
    done = subprocess.run([sys.executable, PROGRAM], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace(f"{folder}/", "").splitlines(keepends=True)
    return ("".join(line for line in lines if line.startswith("loss ") == is_loss) for is_loss in (True, False))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Name -> text, as the program makes it now."""
    folder = tmp_path_factory.mktemp("tour")
    losses, explained = printed_by(folder, "lazy")
    (trace,) = (folder / "dump").iterdir()  # one step, one trace
    return {
        "losses": losses,
        "explain": explained,
        "trace": text_of(trace, "*-trace.txt"),
        "graph": text_of(trace, "*-dce.lir"),
        "plan": text_of(trace, "*-plan.txt"),
        "gradient": text_of(trace, "*-k1.cc"),
    }


def test_update(made):
    if "LAZY_UPDATE_GOLDENS" in os.environ:
        PAGE.write_text(BLOCK.sub(lambda block: block[1] + made[block[2]] + block[4], PAGE.read_text()))


def test_every_block_is_one_that_the_program_makes(made):
    assert blocks() and blocks().keys() <= made.keys()


@pytest.mark.parametrize("name", blocks())
def test_block(name, made):
    assert blocks()[name] == made[name]


def test_eager_prints_the_same_losses(made, tmp_path):
    losses, _ = printed_by(tmp_path, "cpu")
    assert losses == made["losses"]
