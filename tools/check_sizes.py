#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a source file of more than 500 lines, or a committed file of more than 1 MiB."""
import pathlib
import subprocess
import sys

SOURCES = {".h", ".cc", ".cu", ".py", ".cmake", ".sh"}
MAX_LINES = 500
MAX_BYTES = 1 << 20


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    complaints = []
    for name in filter(None, listed.split("\0")):
        file = root / name
        if not file.is_file():
            continue
        if file.stat().st_size > MAX_BYTES:
            complaints.append(f"{name}: {file.stat().st_size} bytes, at most {MAX_BYTES}")
        if file.suffix in SOURCES:
            lines = len(file.read_text().splitlines())
            if lines > MAX_LINES:
                complaints.append(f"{name}: {lines} lines, at most {MAX_LINES}")
    print("\n".join(complaints) or "sizes: as the rules allow")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
