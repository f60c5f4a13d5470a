#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if lazy/ names an operator, or if one is named in several files.

All that is known of an operator stands in its row (device/rows/rows.h), so its name does, too. Comments may name what
they like. The list of unboxed recorders (device/unboxed.cc) names its operators a second time, as types, since templates
are made of them; kernels of our own (device/eager_overrides) are registered by names without `aten::`.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("base", "ir", "codegen", "backends", "lazy", "device")
NAME = re.compile(r'"((?:aten|torch_lazy)::\w+)')
KNOWS = re.compile(r'"(?:aten|torch_lazy)::|at::_ops::|\bSymbol::|\bname(?:\.\w+\(| [!=]= )"')

PARTS = "autograd is told of the operator and of its parts (whole_or_parts.h)"
CALLED = "the override that makes it calls it"
ALLOWED = {
    "aten::_thnn_fused_gru_cell": PARTS,
    "aten::_thnn_fused_lstm_cell": PARTS,
    "aten::linear": PARTS,
    "aten::linear_backward": PARTS,
    "torch_lazy::arange": CALLED,
    "torch_lazy::attention": CALLED,
    "torch_lazy::attention_backward": CALLED,
    "torch_lazy::cudnn_rnn": CALLED,
    "torch_lazy::cudnn_rnn_backward": CALLED,
    "torch_lazy::dropout": CALLED,
}


def code_of(path):
    """Its text without comments."""
    return re.sub(r"//[^\n]*", "", path.read_text())


def check(root, allowed=None):
    """Returns complaints, each a line."""
    allowed = ALLOWED if allowed is None else allowed
    code = {path.relative_to(root): code_of(path) for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
            if path.suffix in (".h", ".cc")}
    files = collections.defaultdict(list)
    for path, text in code.items():
        for name in sorted(set(NAME.findall(text))):
            files[name].append(str(path))
    complaints = [f"{name} is named in {' and '.join(where)}" for name, where in sorted(files.items())
                  if len(where) > 1 and name not in allowed]
    complaints += [f"{name} may stand in several files and does not" for name in sorted(allowed) if len(files[name]) < 2]
    for path, text in code.items():
        for number, line in enumerate(text.splitlines(), 1):
            if path.parts[0] == "lazy" and KNOWS.search(line):
                complaints.append(f"{path}:{number}: lazy/ knows an operator: {line.strip()}")
    return complaints


def main():
    complaints = check(pathlib.Path(__file__).resolve().parents[1])
    print("\n".join(complaints) or "operators: each in its row")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
