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


def complaints(tmp_path, table=TABLE, **files):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text(table)
    for name, text in files.items():
        folder, stem = name.split("_", 1)
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{stem}.h").write_text(text)
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


def test_refuses_a_cycle_of_files(tmp_path):
    found = complaints(tmp_path, low_a='#include "low/b.h"\n', low_b='#include "low/a.h"\n')
    assert found == ["cycle of files: low/a.h -> low/b.h -> low/a.h"]


def test_refuses_a_cycle_in_the_table(tmp_path):
    found = complaints(tmp_path, table=TABLE.replace("Abseil, std", "middle"))
    assert found == ["cycle of folders: low -> middle -> low"]


def test_refuses_a_page_without_a_table(tmp_path):
    assert complaints(tmp_path, table="# Nothing") == ["docs/architecture.md: no table of folders found"]
