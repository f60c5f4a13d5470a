# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share."""

import pytest
import torch_lazy


@pytest.fixture(params=["off", "sync"])
def compile_mode(request):
    """The test runs interpreted, then compiled."""
    torch_lazy.set_option("compile", request.param)
    yield request.param
    torch_lazy.set_option("compile", "async")
