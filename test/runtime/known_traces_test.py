# SPDX-License-Identifier: Apache-2.0
"""Threads share what is known: eight loops on eight threads meet no more unknown traces than on one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import loops
from child import in_child
from counting import counts

LOOPS = 8


def _run(threads):
    def loop(_):
        for _ in loops.training(12, read_every=1):
            pass

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(loop, range(LOOPS)))
    return counts()[0]


@pytest.mark.parametrize("mode", ["async", "off"])
def test_eight_threads_miss_no_more_than_one(mode):
    one, eight = (in_child(_run, threads, compile=mode) for threads in (1, LOOPS))
    assert eight <= one == 2
