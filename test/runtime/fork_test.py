# SPDX-License-Identifier: Apache-2.0
"""Children that are forked while other threads work on the device let go of its tensors, and end."""
import os
import threading
import time

import torch

from child import in_child

FORKS, THREADS = 60, 3


def fork_while_threads_work():
    """The exit statuses of the children; -1 of one that hangs."""
    done = threading.Event()

    def work():
        w = torch.full((64, 64), 0.5, device="lazy")
        while not done.is_set():
            for _ in range(5):
                y = w.mm(w).mul(0.01).tanh()
                w.sub_(y.sum(0, keepdim=True), alpha=1e-3)
            y.sum().item()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    statuses = []
    while len(statuses) < FORKS:
        kept = [torch.ones(2000, device="lazy").mul(2), torch.ones(2000, device="lazy"), torch.ones(2000)]
        kept[1].add_(1).sum().item()
        child = os.fork()
        if child == 0:
            kept.clear()
            torch.ones(5000).add(1)
            os._exit(5)
        statuses.append(status_of(child))
    done.set()
    for thread in threads:
        thread.join()
    return statuses


def status_of(child, limit_s=30):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def test_children_of_a_program_with_busy_threads_end():
    assert in_child(fork_while_threads_work) == [5] * FORKS
