# SPDX-License-Identifier: Apache-2.0
"""tools/check_operators.py on small trees, each wrong in one way."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_operators", ROOT / "tools/check_operators.py")
check_operators = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_operators)

ROW = '{"aten::neg", Negate},\n{"aten::neg.out", Negate},\n'


def complaints(tmp_path, allowed=(), **files):
    for name, text in files.items():
        folder, stem = name.split("_", 1)
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{stem}.cc").write_text(text)
    return check_operators.check(tmp_path, dict.fromkeys(allowed, "a reason"))


def test_accepts_one_file_and_comments_elsewhere(tmp_path):
    assert complaints(tmp_path, device_rows=ROW, lazy_op='// "aten::neg", for one\n') == []


def test_refuses_a_name_in_two_files(tmp_path):
    assert complaints(tmp_path, device_rows=ROW, device_more='Call("aten::neg")') == ["aten::neg is named in device/more.cc and device/rows.cc"]


def test_accepts_it_with_a_reason(tmp_path):
    assert complaints(tmp_path, allowed=["aten::neg"], device_rows=ROW, device_more='Call("aten::neg")') == []


def test_refuses_a_reason_that_nobody_needs(tmp_path):
    assert complaints(tmp_path, allowed=["aten::neg"], device_rows=ROW) == ["aten::neg may stand in several files and does not"]


@pytest.mark.parametrize("line", [
    'op.name == "aten::neg"', 'op.name.find("bitwise")', 'name != "torch_lazy::dropout"', "at::_ops::neg::call(x)", "c10::Symbol::attr(x)",
])
def test_refuses_an_operator_in_lazy(tmp_path, line):
    found = complaints(tmp_path, lazy_op=f"return {line};\n")
    assert found == [f"lazy/op.cc:1: lazy/ knows an operator: return {line};"]
