# SPDX-License-Identifier: Apache-2.0
"""What tools/check_pages.py says of small books; and the graphs in the pages are canonical."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = [
    pytest.param(graph, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for number, graph in enumerate(re.findall(r"(?<!-->)\n```lir\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
]


def said_of(folder, page, **files):
    """The complaints about a book of one page, and what else `files` hold."""
    for name, text in {"README.md": page, "Makefile": "build:\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, ROOT / "tools/check_pages.py", folder], capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("README.md: ")]
    assert done.returncode == (1 if found else 0), done.stdout + done.stderr
    return [line.removeprefix("README.md: ") for line in found]


def test_a_good_page(tmp_path):
    page = "# Page\n\n`ir::Graph` is a struct, and [a link](README.md#page) leads here.\n\n```sh\nmake build\n```\n"
    assert said_of(tmp_path, page, **{"ir/graph.h": "struct Graph;"}) == []


def test_a_long_page(tmp_path):
    assert said_of(tmp_path, "A line.\n" * 201) == ["201 lines, at most 200"]


def test_long_sentences(tmp_path):
    assert said_of(tmp_path, "word " * 16 + "\n") == ["half of its sentences have more than 15 words (median 16)"]


@pytest.mark.parametrize("figure", ["3 ms", "12.5 µs", "40 GB/s", "an H200"])
def test_figures_stand_in_measurements_alone(tmp_path, figure):
    assert len(said_of(tmp_path, f"It takes {figure} now.\n")) == 1
    assert said_of(tmp_path, "Nothing here.\n", **{"docs/measurements.md": f"It takes {figure} now.\n"}) == []


def test_paths_names_and_links_exist(tmp_path):
    page = "See `tools/nowhere.py`, `Plan::Gone`, [this](none.md) and [that](README.md#nothing).\n"
    assert said_of(tmp_path, page) == [
        "tools/nowhere.py is not there", "no source knows Gone", "link to none.md, which is not there",
        "link to README.md#nothing, which is no heading there"]


def test_blocks_are_checked(tmp_path):
    page = "```\nx\n```\n\n<!-- from a.txt -->\n```cpp\none\nthree\n```\n\n```sh\nmake nothing\n```\n"
    assert said_of(tmp_path, page, **{"a.txt": "one\ntwo\nthree\n"}) == [
        "a block that nothing checks: x", "block of 2 lines is not in a.txt: one", "no target of make: nothing"]


def test_a_block_from_a_file_may_be_indented_otherwise(tmp_path):
    page = "<!-- from a.txt -->\n```cpp\none\n  two\n```\n"
    assert said_of(tmp_path, page, **{"a.txt": "  one\n    two\n"}) == []


@pytest.mark.parametrize("graph", GRAPHS)
def test_graph_of_a_page_is_canonical(graph):
    program = pathlib.Path(os.environ["LAZY_BUILD_DIR"]) / "bin/lazy_opt"
    done = subprocess.run([program, "--run=dce", "-"], input=graph, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == graph.strip()
