# SPDX-License-Identifier: Apache-2.0
"""Where libtorch_lazy.so lies, and loading it."""
import pathlib

import torch

_PACKAGE = pathlib.Path(__file__).parent
_NAME = "libtorch_lazy.so"


def _prefix():
    """The folder that has lib/libtorch_lazy.so: the package where it is installed, or the build tree two above it."""
    for prefix in (_PACKAGE, _PACKAGE.parent.parent):
        if (prefix / "lib" / _NAME).is_file():
            return prefix
    raise ImportError(f"torch_lazy: {_NAME} is neither in {_PACKAGE}/lib nor in {_PACKAGE.parent.parent}/lib; "
                      "run `make build`, or install the package with `pip install --no-build-isolation .`")


def path():
    return str(_prefix() / "lib" / _NAME)


def load():
    torch.ops.load_library(path())


def cmake_prefix_path():
    """What CMAKE_PREFIX_PATH needs for find_package(TorchLazy); of use where the package is installed."""
    return str(_prefix())
