#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an #include that the table in docs/architecture.md does not allow, and on a cycle.

A row of the table reads `folder/ | one sentence | what it may include`. The last cell lists folders of ours, some with
the only headers that may be used ("codegen (`plan.h`)"), and ATen, c10, Abseil, std. LibTorch's headers may be used
where the cell says ATen or c10; Abseil and std may be used everywhere. Tests, benches and programs are free.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
TORCH = ("ATen/", "c10/", "torch/", "caffe2/", "torchgen/")
SUFFIXES = (".h", ".cc", ".cu", ".inc")


def read_table(text):
    """Returns {folder: {allowed name: headers, or None for all}} from the page's table."""
    table = {}
    for folder, cell in re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|", text, re.MULTILINE):
        table[folder] = {}
        for name, headers in re.findall(r"(\w+)\s*(\([^)]*\))?", cell):
            table[folder][name] = set(re.findall(r"`([^`]+)`", headers)) or None
    return table


def why_not(folder, quote, path, table):
    """Returns why a file of `folder` may not include `path`, or None."""
    row = table[folder]
    if path.startswith(TORCH):
        return None if "ATen" in row or "c10" in row else "LibTorch is not in its row"
    target, _, header = path.partition("/")
    if target not in table:
        own = quote == '"' and not path.startswith(("absl/", "torch_lazy/"))
        return "not a full path from the root" if own else None
    if target == folder:
        return None
    if target not in row:
        return f"{target} is not in its row"
    if row[target] is not None and header not in row[target]:
        return f"of {target} only {', '.join(sorted(row[target]))}"
    return None


def find_cycle(edges):
    """Returns one cycle of the graph {name: [names]} as a list of names, or None."""
    done = set()

    def visit(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        for target in sorted(edges.get(name, ())):
            cycle = visit(target, path + [name])
            if cycle:
                return cycle
        done.add(name)
        return None

    return next((cycle for cycle in (visit(name, []) for name in sorted(edges)) if cycle), None)


def check(root):
    """Returns the list of complaints about the tree at `root`."""
    table = read_table((root / "docs/architecture.md").read_text())
    if not table:
        return ["docs/architecture.md: no table of folders found"]
    complaints, edges = [], {}
    for folder in table:
        for file in sorted(f for f in (root / folder).rglob("*") if f.suffix in SUFFIXES):
            name = file.relative_to(root).as_posix()
            includes = INCLUDE.findall(file.read_text())
            edges[name] = [path for _, path in includes]
            for quote, path in includes:
                reason = why_not(folder, quote, path, table)
                if reason:
                    complaints.append(f"{name}: may not include {path}: {reason}")
    folders = {folder: [name for name in row if name in table] for folder, row in table.items()}
    for what, cycle in (("folders", find_cycle(folders)), ("files", find_cycle(edges))):
        if cycle:
            complaints.append(f"cycle of {what}: {' -> '.join(cycle)}")
    return complaints


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
    complaints = check(root)
    print("\n".join(complaints) or "includes: as the table allows")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
