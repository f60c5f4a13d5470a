#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a file that pages or comments name and that is not there, and on a Note that is cited and nowhere written.

    Note [Pure steps] in `lazy/trace/step_detector.h`     a file by its path from the root; `.h` and `.cc` may be left out
    is asked for its address (graph_result.h)             a header by its name alone, in a comment
"""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("base", "ir", "codegen", "backends", "lazy", "device")
SOURCES = (".h", ".cc", ".cu", ".inc")
PATH = re.compile(rf"(?<![\w./<-])((?:{'|'.join(FOLDERS)})/\w[\w/]*(?:\.(?:h|cc|cu|inc|txt|map))?)(?![\w/<{{*-])")
HEADER = re.compile(r"(?<![\w./<-])(\w+\.(?:h|cc))(?![\w>])")
COMMENT = re.compile(r"//.*|^ *#(?!include|define|if|el|end|pragma|undef|error).*", re.MULTILINE)
OTHERS = {"cuda.h", "kernels.cc"}  # CUDA's, and one that the compiler is given
NOTE = re.compile(r"Note \[([^\]]+)\]")


def exists(path, files):
    """True for a file, a folder, or what .h or .cc makes a file."""
    path = path.rstrip("/")
    return any(path + suffix in files for suffix in ("", ".h", ".cc")) or any(f.startswith(path + "/") for f in files)


def check(texts):
    """Returns the complaints about {path: text}, all files of the tree."""
    headers = OTHERS | {path.rpartition("/")[2] for path in texts}
    notes = {}
    complaints = []
    for path, text in texts.items():
        if path.startswith(("test/tools/", "tools/check_")) or path == "docs/measurements.md":
            continue
        is_page = path.endswith(".md")
        for line, part in enumerate(text.splitlines(), start=1):
            said = part if is_page else " ".join(COMMENT.findall(part))
            wrong = [name for name in PATH.findall(said) if not exists(name, texts)]
            if not is_page and path.endswith(SOURCES):
                wrong += [name for name in HEADER.findall(said) if name not in headers]
            complaints += [f"{path}:{line}: there is no {name}" for name in wrong]
            for title in NOTE.findall(said):
                notes.setdefault(title, []).append((path, line, part.strip() == f"// Note [{title}]" or
                                                    part.strip().startswith(f"// Note [{title}]:")))
    for title, places in notes.items():
        if not any(is_written for _, _, is_written in places):
            path, line, _ = places[0]
            complaints.append(f"{path}:{line}: Note [{title}] is nowhere written")
    return complaints


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    readable = SOURCES + (".md", ".py", ".txt", ".cmake")
    texts = {name: (root / name).read_text() if name.endswith(readable) else ""
             for name in listed if name and (root / name).is_file()}
    complaints = check(texts)
    print("\n".join(complaints) or "paths: all that are named are there")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
