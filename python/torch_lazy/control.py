# SPDX-License-Identifier: Apache-2.0
"""What a program may ask of the device beyond PyTorch's own functions."""
import json

import torch

from . import _library

_ops = torch.ops.torch_lazy


def sync():
    """Runs all that is pending, and waits for it."""
    _ops.sync()


def metrics():
    """The device's counters, as a dict."""
    return json.loads(_ops.metrics())


def reset_metrics():
    """Sets all counters to zero."""
    _ops.reset_metrics()


def explain():
    """Why traces were cut, missed and compiled, for a reader."""
    return _ops.explain()


def set_option(name, value):
    """Sets an option, as the environment variable LAZY_<NAME> would have: set_option("compile", "sync").

    ValueError for an unknown name or value, and for an option in use that cannot change any more: "compiler", "cache_dir"
    and "dump"."""
    _library.set_option(name, str(int(value)) if isinstance(value, bool) else str(value))
