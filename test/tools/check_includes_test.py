# SPDX-License-Identifier: Apache-2.0
"""tools/check_includes.py on small trees, each wrong in one way."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_includes", ROOT / "tools/check_includes.py")
check_includes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_includes)

TABLE = """
| folder | its one sentence | may include |
|---|---|---|
| `top/` | the face: names, guard, hooks | middle (`plan.h`, `run.h`), low, ATen |
| `middle/` | how it is computed | low |
| `low/` | the rest | Abseil, std |
"""


ROOMS = """
| room | its one sentence | may include |
|---|---|---|
| `low/attic/` | what lies on top | cellar, cellar/safe |
| `low/cellar/` | what lies below | |
| `low/cellar/safe/` | what is locked away | cellar |
"""


def complaints(tmp_path, table=TABLE, **files):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text(table)
    for folder in check_includes.read_table(table):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in files.items():
        path = tmp_path / name.replace("__", ".").replace("_", "/")
        path = path if path.suffix else path.with_suffix(".h")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return check_includes.check(tmp_path)


@pytest.mark.parametrize("name, text", [
    ("top_a", '#include "middle/plan.h"\n#include "low/x.h"\n#include <ATen/core/Tensor.h>\n'),
    ("middle_a", '#include "absl/strings/str_cat.h"\n#include <sys/mman.h>\n#include "middle/b.h"\n'),
])
def test_accepts_what_the_row_allows(tmp_path, name, text):
    assert complaints(tmp_path, **{name: text}) == []


@pytest.mark.parametrize("name, text, reason", [
    ("middle_a", '#include "top/a.h"\n', "top is not in its row"),
    ("top_a", '#include "middle/secret.h"\n', "of middle only plan.h, run.h"),
    ("low_a", "#  include <c10/core/Device.h>\n", "LibTorch is not in its row"),
    ("low_a", '#include "b.h"\n', "not a full path from the root"),
])
def test_refuses_what_it_does_not(tmp_path, name, text, reason):
    found = complaints(tmp_path, **{name: text})
    assert len(found) == 1 and found[0].endswith(reason)


def test_refuses_a_cycle_of_rooms(tmp_path):
    found = complaints(tmp_path, low_a="", low_a__cc='#include "low/b.h"\n', low_b='#include "low/a.h"\n')
    assert found == ["cycle of rooms: low/a -> low/b -> low/a"]


def test_a_header_and_its_source_are_one_room(tmp_path):
    assert complaints(tmp_path, low_a="", low_a__cc='#include "low/a.h"\n#include "low/b.h"\n', low_b="") == []


@pytest.mark.parametrize("name, text", [
    ("low_attic_a", '#include "low/cellar/b.h"\n#include "low/cellar/safe/c.h"\n#include "low/attic/d.h"\n'),
    ("low_cellar_safe_a", '#include "low/cellar/b.h"\n'),
    ("low_a", '#include "low/attic/b.h"\n#include "low/cellar/b.h"\n'),
    ("top_a", '#include "low/attic/b.h"\n'),
])
def test_accepts_what_a_rooms_row_allows(tmp_path, name, text):
    assert complaints(tmp_path, table=TABLE + ROOMS, **{name: text}) == []


@pytest.mark.parametrize("name, text, reason", [
    ("low_cellar_a", '#include "low/attic/b.h"\n', "attic is not in its row"),
    ("low_cellar_a", '#include "low/cellar/safe/b.h"\n', "cellar/safe is not in its row"),
    ("low_cellar_a", '#include "low/b.h"\n', "what lies beside the rooms of low lies above them"),
    ("low_attic_a", '#include "middle/b.h"\n', "middle is not in its row"),
    ("low_shed_a", "", "its folder has no row"),
])
def test_refuses_what_a_rooms_row_does_not(tmp_path, name, text, reason):
    found = complaints(tmp_path, table=TABLE + ROOMS, **{name: text})
    assert len(found) == 1 and found[0].endswith(reason)


def test_refuses_a_cycle_of_a_folders_rooms_in_the_table(tmp_path):
    table = TABLE + ROOMS.replace("what lies below | |", "what lies below | attic |")
    assert complaints(tmp_path, table=table) == ["cycle of folders: low/attic -> low/cellar -> low/attic"]


def test_refuses_a_row_without_its_folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text("| `low/` | the rest | Abseil, std |\n")
    assert check_includes.check(tmp_path) == ["docs/architecture.md: no folder low"]


def test_refuses_a_cycle_in_the_table(tmp_path):
    found = complaints(tmp_path, table=TABLE.replace("Abseil, std", "middle"))
    assert found == ["cycle of folders: low -> middle -> low"]


def test_refuses_a_page_without_a_table(tmp_path):
    assert complaints(tmp_path, table="# Nothing") == ["docs/architecture.md: no table of folders found"]


def test_refuses_the_filesystem_of_the_standard_library(tmp_path):
    found = complaints(tmp_path, low_a="#include <filesystem>\n")
    assert len(found) == 1 and "may not include filesystem" in found[0]
