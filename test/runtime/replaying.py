# SPDX-License-Identifier: Apache-2.0
"""What tests of replayed functions share: each runs interpreted and compiled."""

import pytest
import torch_lazy


@pytest.fixture(autouse=True, params=["off", "sync"])
def compile_mode(request):
    torch_lazy.set_option("compile", request.param)
    yield
    torch_lazy.set_option("compile", "async")


def replays():
    return torch_lazy.metrics()["replays"]
