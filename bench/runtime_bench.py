# SPDX-License-Identifier: Apache-2.0
"""What the host side costs a program: growth, new sizes, cold starts, many processes and threads, small traces.

    bench/runtime_bench [SECTION ...] [--build FOLDER] [--json FILE]

A figure a line, beside what it should be. Sections are the modules of bench/figures; each program runs in a process of its
own, with a kernel cache of its own that is empty at first. Times are ratios within one run.
"""

import argparse
import importlib
import json
import pathlib

SECTIONS = ["growth", "sizes", "lengths", "cold", "processes", "threads", "small", "peaks", "host"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        raise SystemExit(f"unknown {sorted(unknown)}; there are {', '.join(SECTIONS)}")
    results = []
    for section in arguments.sections or SECTIONS:
        for figure in importlib.import_module(f"figures.{section}").figures(arguments.build.resolve()):
            print(f"{section:10} {figure.title:72} {figure.value:>10.4g} {figure.target:>10}", flush=True)
            results.append({"section": section, **figure._asdict()})
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
