# SPDX-License-Identifier: Apache-2.0
"""All workloads, with the ratios to eager and to torch.compile that each must reach."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    title: str
    module: str  # in workloads/, or the name that train_bench knows
    target: float  # eager's time over lazy's
    compile_target: float | None = None  # torch.compile's time over lazy's; None where it cannot run
    block: int = 10  # steps between two syncs
    is_cpp: bool = False
    has_optimizer: bool = True
    warm_blocks: int = 4
    reads: str = "never"  # when the loss is looked at: reads.py; in Python alone

    @property
    def name(self):
        return self.module + ("-cpp" if self.is_cpp else "") + ("" if self.reads == "never" else f"-{self.reads}")


WORKLOADS = [
    Workload("12 pointwise ops, 2048 x 2048", "pointwise", 8.0, 2.5, block=5, has_optimizer=False),
    Workload("8 pointwise ops, 16 M floats", "large", 8.0, 2.5, block=3, has_optimizer=False),
    Workload("layer norm + softmax, 2048 x 2048", "norm", 6.0, 2.0, block=5, has_optimizer=False),
    Workload("the same, forward and backward", "norm_backward", 3.0, 1.3, block=5, has_optimizer=False),
    Workload("Adam, 64 of 256 x 256", "adam", 4.0, 2.0),
    Workload("Adam, 64 of 256 x 256, C++", "adam64", 4.0, is_cpp=True),
    Workload("Adam, 300 of 64 x 64, C++", "adam300", 8.0, is_cpp=True),
    Workload("MLP training", "mlp", 1.25, 1.4),
    Workload("MLP training, C++", "mlp", 1.25, is_cpp=True),
    Workload("GRU by hand, training", "gru", 1.5, 0.95),
    Workload("GRU by hand, training, C++", "gru", 1.8, is_cpp=True),
    Workload("GPT training", "gpt", 1.06, 1.15, block=3),
    Workload("GPT training, 96 lengths shuffled", "gpt_shuffled", 1.15, block=24),
    Workload("GPT training, loss read each step", "gpt", 1.06, 1.15, block=3, reads="after"),
    Workload("GRU by hand, loss read before backward", "gru", 1.5, 0.95, reads="before"),
    Workload("nanoGPT's characters, training", "nanogpt", 1.3, 1.2, block=5),
    Workload("ResNet training", "resnet", 1.2, 1.05, block=5),
    Workload("ResNet-18, inference, batch 8", "resnet18", 1.4, 1.05, block=3, has_optimizer=False),
]

# What a user waits for at the start: the first two steps with an empty cache, as a multiple of eager's.
COLD_TARGET = 1.3
COLD = ["mlp", "resnet", "gpt", "gru", "mlp-cpp"]

# The first step, with empty caches, over torch.compile's first step.
FIRST_TARGET = 0.1
