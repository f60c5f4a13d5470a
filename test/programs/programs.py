# SPDX-License-Identifier: Apache-2.0
"""What the training programs share: options, data, initial values, losses, the schedule.

A program is a plain PyTorch training loop: it knows a device and nothing else of ours. Parameters and data are drawn
on the CPU from generators of its own and then moved, so that every device and run sees the same numbers; the learning
rate changes at every step.
"""

import dataclasses
import math
from collections.abc import Callable

import torch


@dataclasses.dataclass
class Options:
    device: str = "cpu"
    steps: int = 50
    # The loss is read (`item()`) at steps 0, n, 2n, ...; 0 reads none before the end.
    read_every: int = 1
    # Each number of the first weights is moved to one of its neighbours, up or down by chance.
    is_off_by_a_rounding: bool = False
    # Called after each step with the number of steps done.
    after_step: Callable[[int], None] = lambda step: None


class Data:
    """Fresh inputs for every step, drawn on the CPU."""

    def __init__(self, options):
        self.device = options.device
        self.generator = torch.Generator().manual_seed(2)

    def normal(self, *sizes):
        return torch.randn(sizes, generator=self.generator).to(self.device)

    def integers(self, high, *sizes):
        return torch.randint(high, sizes, generator=self.generator).to(self.device)


class LossLog:
    """The losses of a run, read as the options say."""

    def __init__(self, options):
        self.options = options
        self.losses = []

    def add(self, loss):
        step = len(self.losses)
        self.losses.append(loss.detach())
        if self.options.read_every and step % self.options.read_every == 0:
            self.losses[-1].item()
        self.options.after_step(step + 1)

    def values(self):
        return [loss.item() for loss in self.losses]


def initialize(module, options):
    """Draws every matrix of the module anew, sets biases to zero, and moves the module."""
    generator, directions = torch.Generator().manual_seed(1), torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, value in module.named_parameters():
            if value.dim() > 1:
                value.normal_(0.0, 1.0 / math.sqrt(value.numel() // value.size(0)), generator=generator)
                if options.is_off_by_a_rounding:
                    value.copy_(torch.nextafter(value, torch.randn(value.shape, generator=directions) * math.inf))
            elif "bias" in name:
                value.zero_()
    torch.manual_seed(3)
    return module.to(options.device)


def schedule(optimizer, base, step):
    """Sets a learning rate that differs at every step."""
    for group in optimizer.param_groups:
        group["lr"] = base * (0.6 + 0.4 * math.cos(0.1 * step))
