# SPDX-License-Identifier: Apache-2.0
"""What tests of packages share: commands without this tree's Python path, and the outside project, examples/cpp."""
import os
import pathlib
import shutil
import subprocess

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/cpp"


def attempt(*command, **variables):
    """Runs a command; returns its exit status and what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LAZY_AUTOLOAD")} | variables
    done = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, cwd="/")
    return done.returncode, done.stdout


def run(*command, **variables):
    """Returns what it printed."""
    status, printed = attempt(*command, **variables)
    assert status == 0, printed
    return printed


def configure_examples(tmp_path, *arguments):
    """(exit status, words that CMake printed)"""
    source = shutil.copytree(EXAMPLES, tmp_path / "cpp", dirs_exist_ok=True)
    status, printed = attempt("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", *arguments)
    return status, " ".join(printed.split())


def build_examples(tmp_path, *arguments, target="all"):
    """Builds a copy of examples/cpp; returns the folder of its programs."""
    status, printed = configure_examples(tmp_path, *arguments)
    assert status == 0, printed
    run("cmake", "--build", tmp_path / "build", "--target", target)
    return tmp_path / "build"


def prefixes(*folders):
    return f"-DCMAKE_PREFIX_PATH={';'.join(map(str, folders))}"
