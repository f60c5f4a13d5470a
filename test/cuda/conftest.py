# SPDX-License-Identifier: Apache-2.0
"""These tests need a GPU, and fail without one. LAZY_TEST_EAGER=cpu LAZY_BACKEND=stand_in tries the tests themselves, not CUDA."""

import pathlib
import sys

import pytest
import torch
from devices import EAGER

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TEST / "programs"), str(TEST.parent / "bench")]


@pytest.fixture(autouse=True, scope="session")
def _gpu():
    assert EAGER == "cpu" or torch.cuda.is_available(), "no GPU"
