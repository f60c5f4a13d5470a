# SPDX-License-Identifier: Apache-2.0
"""All workloads, with the ratio to eager that each must reach."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    title: str
    module: str  # in workloads/, or the name that train_bench knows
    target: float  # eager's time over lazy's
    block: int = 10  # steps between two syncs
    is_cpp: bool = False
    has_optimizer: bool = True
    warm_blocks: int = 4

    @property
    def name(self):
        return self.module + ("-cpp" if self.is_cpp else "")


WORKLOADS = [
    Workload("12 pointwise ops, 2048 x 2048", "pointwise", 5.0, block=5, has_optimizer=False),
    Workload("layer norm + softmax, 2048 x 2048", "norm", 3.0, block=5, has_optimizer=False),
    Workload("Adam, 64 of 256 x 256", "adam", 2.5),
    Workload("Adam, 64 of 256 x 256, C++", "adam64", 2.5, is_cpp=True),
    Workload("Adam, 300 of 64 x 64, C++", "adam300", 4.0, is_cpp=True),
    Workload("MLP training", "mlp", 1.15),
    Workload("MLP training, C++", "mlp", 1.15, is_cpp=True),
    Workload("ResNet training", "resnet", 1.05, block=5),
    Workload("GPT training", "gpt", 1.0, block=3),
    Workload("GRU by hand, training", "gru", 1.1),
]

# What a user waits for at the start: the first two steps with an empty cache, as a multiple of eager's.
COLD_TARGET = 1.3
COLD = ["mlp", "resnet", "gpt", "gru", "mlp-cpp"]
