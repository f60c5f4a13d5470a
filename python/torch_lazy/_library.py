# SPDX-License-Identifier: Apache-2.0
"""Where libtorch_lazy.so lies, loading it, and its functions that are no operators (torch_lazy/torch_lazy.h)."""
import ctypes
import functools
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


def _check_torch():
    """ImportError unless PyTorch is of the minor version that the library was built for: each has an interface of its own."""
    built_for = _prefix() / "lib" / "libtorch_lazy.torch_version"
    if not built_for.is_file():
        return
    wanted = built_for.read_text().strip()
    if wanted.split(".")[:2] != torch.__version__.split("+")[0].split(".")[:2]:
        raise ImportError(f"torch_lazy: it was built for PyTorch {wanted}, and this is PyTorch {torch.__version__}; "
                          "install the one it was built for, or build it anew: `pip install --no-build-isolation .`")


def load():
    _check_torch()
    torch.ops.load_library(path())
    why = _functions().torch_lazy_why_unfit()
    if why is not None:
        raise ImportError(f"torch_lazy: {why.decode()}")


@functools.cache
def _functions():
    library = ctypes.CDLL(path())
    library.torch_lazy_set_option.restype = ctypes.c_char_p
    library.torch_lazy_set_option.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.torch_lazy_take_draw.restype = ctypes.c_char_p
    library.torch_lazy_take_draw.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64)]
    library.torch_lazy_why_unfit.restype = ctypes.c_char_p
    library.torch_lazy_why_unfit.argtypes = []
    library.torch_lazy_name_python_lines.restype = None
    library.torch_lazy_name_python_lines.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t]
    return library


def set_option(name, value):
    error = _functions().torch_lazy_set_option(name.encode(), value.encode())
    if error is not None:
        raise ValueError(error.decode())


def take_draw(per_thread):
    """A seed and an offset of the device's generator, for a kernel whose threads draw so many numbers each."""
    seed, offset = ctypes.c_int64(), ctypes.c_int64()
    error = _functions().torch_lazy_take_draw(per_thread, ctypes.byref(seed), ctypes.byref(offset))
    if error is not None:
        raise RuntimeError(error.decode())
    return seed.value, offset.value


def name_python_lines(others):
    """`others`: beginnings of the files whose lines explain() does not name. Empty: it names none."""
    names = [name.encode() for name in others]
    _functions().torch_lazy_name_python_lines((ctypes.c_char_p * len(names))(*names), len(names))


def cmake_prefix_path():
    """What CMAKE_PREFIX_PATH needs for find_package(TorchLazy); of use where the package is installed."""
    return str(_prefix())
