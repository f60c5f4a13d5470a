# SPDX-License-Identifier: Apache-2.0
"""The devices that these tests compare, and functions in processes of their own."""

import multiprocessing
import os
import traceback

EAGER = os.environ.get("LAZY_TEST_EAGER", "cuda")
CONTEXT = multiprocessing.get_context("spawn")  # a child of a process that has used CUDA cannot use it
LIMIT_S = 100


def wait_for(device):
    """Runs what is pending, and waits for a GPU."""
    import torch

    if device != "cpu":
        getattr(torch, device).synchronize()


def replays():
    import torch_lazy

    return torch_lazy.metrics()["graph_replays"]


def results_copied():
    import torch_lazy

    return torch_lazy.metrics()["results_copied"]


def early_reads():
    import torch_lazy

    return torch_lazy.metrics()["early_reads"]


def traces_ahead():
    import torch_lazy

    return torch_lazy.metrics()["traces_ahead"]


def traces_taken_back():
    import torch_lazy

    return torch_lazy.metrics()["traces_taken_back"]


def _call(function, arguments, pipe, options):
    try:
        import torch
        import torch_lazy

        torch.set_num_threads(1)
        for name, value in options.items():
            torch_lazy.set_option(name, value)
        pipe.send((True, function(*arguments)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))


class Child:
    """Runs function(*arguments) under these options, where no trace is known yet."""

    def __init__(self, function, *arguments, **options):
        self.pipe, theirs = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=_call, args=(function, arguments, theirs, options), daemon=True)
        self.process.start()
        theirs.close()

    def result(self):
        """What the function returned; AssertionError with its traceback if it raised."""
        try:
            assert self.pipe.poll(LIMIT_S), f"no result after {LIMIT_S} s"
            done, result = self.pipe.recv()
        except EOFError:
            self.process.join()
            raise AssertionError(f"the process ended: exit code {self.process.exitcode}") from None
        finally:
            self.process.kill()
        assert done, result
        return result


def in_child(function, *arguments, **options):
    return Child(function, *arguments, **options).result()


def numbers(tree):
    """All numbers of nested lists, in order."""
    if isinstance(tree, (list, tuple)):
        return [number for part in tree for number in numbers(part)]
    return [float(tree)]
