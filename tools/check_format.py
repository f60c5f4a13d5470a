#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a C++ file that is not as .clang-format wants it; with --fix, writes it so.

    tools/check_format.py [--fix] [FILE ...]

FILE: default: all C++ files that git knows. The version of clang-format is the one that requirements.txt pins,
in .venv: another one breaks lines elsewhere.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(sys.prefix) / "bin" / "clang-format"
PATTERNS = ("*.h", "*.cc", "*.cu", "*.cpp")


def output_of(command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def pinned_version():
    return re.search(r"^clang-format==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE).group(1)


def complaints_of(files):
    """Returns a line for each file that would change."""
    run = subprocess.run([PROGRAM, "--dry-run", *files], cwd=ROOT, check=True, capture_output=True, text=True)
    places = re.findall(r"^([^:\n]+):(\d+):\d+: warning: ", run.stderr, re.MULTILINE)
    first = {}
    for file, line in places:
        first.setdefault(file, line)
    return [f"{file}:{line}: not as .clang-format wants it; tools/check_format.py --fix" for file, line in first.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if not PROGRAM.is_file():
        return f"format: {PROGRAM} is missing; run tools/setup.sh, and this with .venv/bin/python"
    version = output_of([PROGRAM, "--version"])
    if pinned_version() not in version:
        return f"format: {version.strip()} is there, requirements.txt pins {pinned_version()}; run tools/setup.sh"
    listed = output_of(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PATTERNS])
    files = arguments.files or [file for file in listed.split("\0") if file and (ROOT / file).is_file()]
    if arguments.fix:
        output_of([PROGRAM, "-i", *files])
    complaints = complaints_of(files)
    print("\n".join(complaints) or f"format: {len(files)} files as .clang-format wants them")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
