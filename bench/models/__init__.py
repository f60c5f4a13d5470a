# SPDX-License-Identifier: Apache-2.0
"""Forty models of others' kinds: of transformers, timm and torchvision, built from their configurations, and written by hand.

    row = named("mixer_s32_224")
    step = training(row, "lazy")  # or inference(row, "lazy"), and size="full" on a GPU
    for index in range(10):
        print(step(index).item())

`test/models/kernels.py` compiles their kernels and compares their losses. A row's library is imported when its model is built.
"""

from models.by_hand import ROWS as BY_HAND
from models.of_timm import ROWS as OF_TIMM
from models.of_torchvision import ROWS as OF_TORCHVISION
from models.of_transformers import ROWS as OF_TRANSFORMERS
from models.row import Model, Row, build, inference, seed, training

ROWS = [*BY_HAND, *OF_TIMM, *OF_TORCHVISION, *OF_TRANSFORMERS]
_BY_NAME = {row.name: row for row in ROWS}


def named(name):
    """The row of this name; KeyError without."""
    return _BY_NAME[name]


__all__ = ["ROWS", "Model", "Row", "build", "inference", "named", "seed", "training"]
