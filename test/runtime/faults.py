# SPDX-License-Identifier: Apache-2.0
"""Faults on demand (test/faults). To be imported before torch_lazy, which looks for them when it is loaded."""

import ctypes
import os
import sys

assert "torch_lazy" not in sys.modules, "import faults before torch_lazy"
_library = ctypes.CDLL(f"{os.environ['LAZY_BUILD_DIR']}/lib/libtorch_lazy_faults.so", ctypes.RTLD_GLOBAL)
_library.torch_lazy_fail_after.argtypes = [ctypes.c_int64]
_library.torch_lazy_spoil_kernels.argtypes = [ctypes.c_int64, ctypes.c_int64]
_library.torch_lazy_fault_pending.restype = ctypes.c_bool


def fail_after(places):
    """After so many more places that may fail, one does; negative: none."""
    _library.torch_lazy_fail_after(places)


def fault_pending():
    """Whether a fault was asked for that has not come yet."""
    return _library.torch_lazy_fault_pending()


def spoil_kernels(number, after):
    """The compiler is to refuse so many kernels, after as many that are left as they are."""
    _library.torch_lazy_spoil_kernels(number, after)
