#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an #include that the tables in docs/architecture.md do not allow, and on a cycle.

A row of a table reads `folder/ | one sentence | what it may include`. The last cell lists folders of ours, some with
the only headers that may be used ("codegen (`plan.h`)"), and ATen, c10, Abseil, std. LibTorch's headers may be used
where the cell says ATen or c10; Abseil and std may be used everywhere. Tests, benches and programs are free.

A row `folder/room/` names the other rooms of the folder that this one may include; of other folders it may include what
the folder may. <filesystem> is nobody's. Once a folder has such rows, each of its subfolders needs one, and what lies beside them lies above them.

A cycle is looked for among the rows, and among the pairs of x.h and x.cc.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
TORCH = ("ATen/", "c10/", "torch/", "caffe2/", "torchgen/")
SUFFIXES = (".h", ".cc", ".cu", ".inc")


def read_table(text):
    """Returns {folder: {allowed name: headers, or None for all}} from the page's tables."""
    table = {}
    for folder, cell in re.findall(r"^\| `([\w/]+)/` \|[^|]*\|([^|]*)\|", text, re.MULTILINE):
        table[folder] = {}
        for name, headers in re.findall(r"([\w/]+)\s*(\([^)]*\))?", cell):
            table[folder][name] = set(re.findall(r"`([^`]+)`", headers)) or None
    return table


def row_of(path, table):
    """Returns the deepest folder with a row that the file lies in."""
    return max((folder for folder in table if path.startswith(folder + "/")), key=len)


def why_not_in_folder(name, path, table):
    """Returns why a file may not include another one of its folder, or None."""
    folder = name.partition("/")[0]
    if not any(row.startswith(folder + "/") for row in table):
        return None
    own, other = row_of(name, table), row_of(path, table)
    if own == other or own == folder:
        return None
    if other == folder:
        return f"what lies beside the rooms of {folder} lies above them"
    room = other[len(folder) + 1:]
    return None if room in table[own] else f"{room} is not in its row"


def why_not(name, quote, path, table):
    """Returns why the file `name` may not include `path`, or None."""
    if path == "filesystem":
        return "Note [No std::filesystem] in backends/disk/temporary_folder.h"
    folder = name.partition("/")[0]
    row = table[folder]
    if path.startswith(TORCH):
        return None if "ATen" in row or "c10" in row else "LibTorch is not in its row"
    target, _, header = path.partition("/")
    if target not in table:
        own = quote == '"' and not path.startswith(("absl/", "torch_lazy/"))
        return "not a full path from the root" if own else None
    if target == folder:
        return why_not_in_folder(name, path, table)
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


def room_of(path):
    """Returns what x.h and x.cc have in common."""
    return path.rpartition(".")[0]


def check(root):
    """Returns the list of complaints about the tree at `root`."""
    table = read_table((root / "docs/architecture.md").read_text())
    if not table:
        return ["docs/architecture.md: no table of folders found"]
    tops = sorted({folder.partition("/")[0] for folder in table})
    complaints = [f"docs/architecture.md: no folder {folder}" for folder in table if not (root / folder).is_dir()]
    includes = {}
    for top in tops:
        for file in sorted(f for f in (root / top).rglob("*") if f.suffix in SUFFIXES):
            includes[file.relative_to(root).as_posix()] = INCLUDE.findall(file.read_text())
    edges = {}
    for name, paths in includes.items():
        own = row_of(name, table)
        if own == name.partition("/")[0] != name.rpartition("/")[0] and any(row.startswith(own + "/") for row in table):
            complaints.append(f"{name}: its folder has no row")
        for quote, path in paths:
            reason = why_not(name, quote, path, table)
            if reason:
                complaints.append(f"{name}: may not include {path}: {reason}")
            if path in includes and room_of(path) != room_of(name):
                edges.setdefault(room_of(name), []).append(room_of(path))
    rows = {}
    for folder, row in table.items():
        top, is_room, _ = folder.partition("/")
        names = [f"{top}/{name}" if is_room else name for name in row]
        rows[folder] = [name for name in names if name in table]
    for what, cycle in (("folders", find_cycle(rows)), ("rooms", find_cycle(edges))):
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
