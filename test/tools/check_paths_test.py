# SPDX-License-Identifier: Apache-2.0
"""tools/check_paths.py on small trees."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_paths", ROOT / "tools/check_paths.py")
check_paths = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_paths)

TREE = {"lazy/run/plans.h": "// Note [Plans]\n", "lazy/run/plans.cc": "", "base/flags.h": ""}


@pytest.mark.parametrize("name, text", [
    ("docs/a.md", "Plans (`lazy/run/plans`, `lazy/run/plans.cc`) of a room (`lazy/run/`).\n"),
    ("base/a.h", "int a;  // as plans.h says: Note [Plans] in lazy/run/plans.h\n"),
    ("base/a.h", '#include "lazy/gone.h"\nconst char* text = "lazy/gone.h";\n'),  # the compiler's and nobody's
    ("docs/a.md", "The device `lazy:0`, `torch_lazy/gone` and build/lazy/gone.\n"),
])
def test_accepts(name, text):
    assert check_paths.check({**TREE, name: text}) == []


@pytest.mark.parametrize("name, text, complaint", [
    ("docs/a.md", "text\nSee `lazy/plans.h`.\n", "docs/a.md:2: there is no lazy/plans.h"),
    ("docs/a.md", "See `lazy/plans`.\n", "docs/a.md:1: there is no lazy/plans"),
    ("base/a.h", "int a;  // see gone.h\n", "base/a.h:1: there is no gone.h"),
    ("test/a.py", "# of lazy/gone\n", "test/a.py:1: there is no lazy/gone"),
    ("base/a.h", "int a;  // Note [Gone]\n", "base/a.h:1: Note [Gone] is nowhere written"),
])
def test_refuses(name, text, complaint):
    assert check_paths.check({**TREE, name: text}) == [complaint]
