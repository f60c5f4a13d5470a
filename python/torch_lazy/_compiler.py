# SPDX-License-Identifier: Apache-2.0
"""The C++ compiler that `pip install torch-lazy[compiler]` brings, for machines that have none."""
import importlib.util
import os
import pathlib
import shutil

from . import _library


def use_what_pip_has():
    """Takes Clang of the package ziglang where nobody names a compiler and the machine has none."""
    if os.environ.get("LAZY_COMPILER") or os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++"):
        return
    package = importlib.util.find_spec("ziglang")
    if package is not None:
        _library.set_option("compiler", f"{pathlib.Path(package.origin).parent / 'zig'} c++")
