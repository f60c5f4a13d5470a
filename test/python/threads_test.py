# SPDX-License-Identifier: Apache-2.0
"""Threads of one Python program on one device. Some of PyTorch's bindings call operators with Python's lock held, and
PyTorch takes that lock when a tensor loses its last owner but Python: neither may meet our own lock."""

import threading

import torch
import torch_lazy  # noqa: F401


def fill_and_convert(results, index):
    total = 0
    for k in range(400):
        x = torch.ones(6, device="lazy")
        x.view(-1)[::2] = k % 3  # under Python's lock
        y = x.to(torch.int64).to(torch.float64) + x
        x[0] = y[1]
        if k % 50 == 0:
            total += y.sum().item()
    results[index] = total


def test_two_threads_do_not_wait_for_each_other():
    results = [None] * 4
    team = [threading.Thread(target=fill_and_convert, args=(results, k), daemon=True) for k in range(4)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in team)
    alone = [None]
    fill_and_convert(alone, 0)
    assert results == alone * 4
