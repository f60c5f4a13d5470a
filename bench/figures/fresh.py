# SPDX-License-Identifier: Apache-2.0
"""Functions in processes of their own, and what a section is made of."""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import typing

BENCH = pathlib.Path(__file__).parent.parent


class Figure(typing.NamedTuple):
    title: str
    value: float
    target: str = ""


def start(build, function, *arguments, **environment):
    """A process that runs function(*arguments), which JSON can write; `finish` returns what it returns."""
    command = [sys.executable, "-m", "figures.fresh", function.__module__, function.__name__, json.dumps(arguments)]
    paths = [str(build / "python"), str(BENCH), str(BENCH.parent / "test" / "programs"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
    )


def finish(process):
    output, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(process.args[3:])} ended: exit code {process.returncode}")
    return json.loads(output.splitlines()[-1])


def run(build, function, *arguments, **environment):
    return finish(start(build, function, *arguments, **environment))


def use(device):
    """The metrics of the device as a function, and its sync; the library is loaded for lazy alone."""
    if device != "lazy":
        return dict, lambda: None
    import torch_lazy

    return torch_lazy.metrics, torch_lazy.sync


if __name__ == "__main__":
    module, name, given = sys.argv[1:]
    print(json.dumps(getattr(importlib.import_module(module), name)(*json.loads(given))))
