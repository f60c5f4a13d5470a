# SPDX-License-Identifier: Apache-2.0
"""What both programs here share: which rows are asked for, and a process of its own for each."""

import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from models import ROWS  # noqa: E402


def parser(description):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--rows", default="*", help="names, or patterns of names, separated by commas")
    made.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="rows at a time")
    made.add_argument("--seconds", type=int, default=1200, help="that a row may take")
    return made


def chosen(patterns):
    """The rows that any of the patterns names, in the list's order. Each pattern must name one."""
    patterns = patterns.split(",")
    for pattern in patterns:
        if not any(fnmatch.fnmatch(row.name, pattern) for row in ROWS):
            sys.exit(f"no model is called {pattern}")
    return [row for row in ROWS if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def in_process(file, *arguments, seconds, **environment):
    """(True, what the program printed), or (False, the end of what it said)."""
    command = [sys.executable, "-W", "ignore", file, *map(str, arguments)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False, f"not done after {seconds} s"
    if done.returncode == 0:
        return True, done.stdout
    return False, f"status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"


def for_each(rows, jobs, function):
    """What `function` returns for each row, some rows at a time, as they are done."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(function, row) for row in rows]):
            yield done.result()
