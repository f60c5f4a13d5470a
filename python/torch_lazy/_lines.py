# SPDX-License-Identifier: Apache-2.0
"""Tells the library which line of the program is being executed, for explain()."""
import atexit
import ctypes
import os
import pathlib
import sys

import torch

from . import _library

_OTHERS = tuple(str(pathlib.Path(file).parent) + os.sep for file in (torch.__file__, __file__))


def _is_of_user(code):
    return not code.co_filename.startswith(_OTHERS) and not code.co_filename.startswith("<")


def _current_line(text, size):
    """Writes "file:line in function" of the innermost frame that is the program's own, and returns its length."""
    frame = sys._getframe()
    while frame is not None and not _is_of_user(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return 0
    line = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}".encode()[:size]
    ctypes.memmove(text, line, len(line))
    return len(line)


_SOURCE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_source = _SOURCE(_current_line)  # as long as the library may call it


def enable():
    library = ctypes.CDLL(_library.path())
    library.torch_lazy_set_line_source(_source)
    atexit.register(library.torch_lazy_set_line_source, None)
