# SPDX-License-Identifier: Apache-2.0
"""Where libtorch_lazy.so lies, loading it, and its functions that are no operators (torch_lazy/torch_lazy.h)."""
import ctypes
import functools
import pathlib
import struct

import torch

_PACKAGE = pathlib.Path(__file__).parent
_NAME = "libtorch_lazy.so"
_WAYS_OUT = "install the one it was built for, or build it anew: `pip install --no-build-isolation .`"


@functools.cache
def _folders():
    """{version of PyTorch: the folder with the library for it}: those of the package, or the one of the build tree."""
    installed = {folder.name.removeprefix("torch-"): folder for folder in sorted((_PACKAGE / "lib").glob("torch-*"))}
    built = _PACKAGE.parent.parent / "lib"
    if not installed and (built / _NAME).is_file():
        return {(built / "libtorch_lazy.torch_version").read_text().strip(): built}
    if not installed:
        raise ImportError(f"torch_lazy: {_NAME} is neither in {_PACKAGE}/lib nor in {built}; "
                          "run `make build`, or install the package with `pip install --no-build-isolation .`")
    return installed


@functools.cache
def path():
    """The library for this PyTorch. ImportError if there is none: each minor version has an interface of its own."""
    minor = torch.__version__.split(".")[:2]
    for version, folder in _folders().items():
        if version.split(".")[:2] == minor:
            return str(folder / _NAME)
    raise ImportError(f"torch_lazy: it was built for PyTorch {', '.join(_folders())}, and this is PyTorch {torch.__version__}; "
                      f"{_WAYS_OUT}")


def _check_whole():
    """ImportError if the file is cut off: loading what is left may end the process."""
    size = pathlib.Path(path()).stat().st_size
    with open(path(), "rb") as file:
        header = file.read(64)
    if len(header) == 64:  # the table of sections is what ends the file
        (start,), (entry, entries) = struct.unpack_from("<Q", header, 40), struct.unpack_from("<HH", header, 58)
        if header.startswith(b"\x7fELF") and size >= start + entry * entries:
            return
    raise ImportError(f"torch_lazy: {path()} is damaged, of {size} bytes; install the package anew: "
                      "`pip install --force-reinstall --no-deps torch-lazy`")


def load():
    _check_whole()
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
    return str(_PACKAGE)
