# SPDX-License-Identifier: Apache-2.0
"""Functions in children of this process, which has loaded the device and not used it: each finds an empty trie."""

import multiprocessing
import os
import traceback

import torch
import torch._dynamo  # which optimizers import at their first use: here once, and not in each child
import torch_lazy

CONTEXT = multiprocessing.get_context("fork")


def _call(function, arguments, pipe, errors, options):
    torch.set_num_threads(1)
    if errors is not None:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    for name, value in options.items():
        torch_lazy.set_option(name, value)
    try:
        result = function(*arguments)
        torch_lazy.sync()
        pipe.send((True, result))
    except BaseException:
        pipe.send((False, traceback.format_exc()))


class Child:
    """Runs function(*arguments) under these options. `errors`: a file that gets what is written to standard error."""

    def __init__(self, function, *arguments, errors=None, **options):
        self._pipe, theirs = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=_call, args=(function, arguments, theirs, errors, options))
        self.process.start()
        theirs.close()

    def result(self):
        """What the function returned; AssertionError with its traceback if it raised."""
        done, result = self._pipe.recv()
        self.process.join()
        assert done, result
        return result


def in_child(function, *arguments, **options):
    return Child(function, *arguments, **options).result()
