# SPDX-License-Identifier: Apache-2.0
"""Runs each test of a GoogleTest program in a process of its own: each_alone.py [--jobs 4] [--limit 90] -- PROGRAM [FLAG ...]

Prints what failed, and what the tests said of themselves; ends with 1 unless all have passed.
"""

import argparse
import concurrent.futures
import subprocess
import sys


def tests_of(command):
    listed = subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite = ""
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            yield suite + name.strip()
        elif name.endswith("."):
            suite = name


def run(command, test, limit_s):
    """(passed, output)"""
    try:
        ended = subprocess.run([*command, f"--gtest_filter={test}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", timeout=limit_s)
    except subprocess.TimeoutExpired as hung:
        return False, f"hung: killed after {limit_s} s\n{hung.stdout or ''}"
    return ended.returncode == 0 and "[  PASSED  ] 1 test" in ended.stdout, f"exit code {ended.returncode}\n{ended.stdout}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--limit", type=float, default=90)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    tests = list(tests_of(arguments.command))
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {test: pool.submit(run, arguments.command, test, arguments.limit) for test in tests}
        for test, result in runs.items():
            good, output = result.result()
            passed += good
            said = [line for line in output.splitlines() if "drift" in line]
            print(*(f"{test}: {line}" for line in said), sep="\n", end="\n" if said else "", flush=True)
            if not good:
                print(output)
                print(f"FAILED {test}: {output.splitlines()[0]}", flush=True)
    print(f"each alone: {passed} of {len(tests)} tests passed")
    sys.exit(passed != len(tests) or not tests)


if __name__ == "__main__":
    main()
