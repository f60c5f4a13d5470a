# SPDX-License-Identifier: Apache-2.0
"""These tests need a GPU, and fail without one. LAZY_TEST_EAGER=cpu LAZY_BACKEND=stand_in tries the tests themselves, not CUDA."""

import pathlib
import sys

import pytest
import torch
from devices import EAGER

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TEST / "programs"), str(TEST.parent / "bench")]


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="K/N: of all tests the Kth, the one N after it, and so on")


def pytest_collection_modifyitems(config, items):
    share, shares = map(int, config.getoption("--share").split("/"))
    items[:] = items[share - 1 :: shares]


@pytest.fixture(autouse=True, scope="session")
def _gpu():
    assert EAGER == "cpu" or torch.cuda.is_available(), "no GPU"
