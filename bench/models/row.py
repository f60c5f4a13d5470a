# SPDX-License-Identifier: Apache-2.0
"""One model of the list: how it is built, what it is given, what it is trained to do."""

import dataclasses
import random
from collections.abc import Callable

import numpy
import torch


@dataclasses.dataclass(frozen=True)
class Model:
    """A built model, on the CPU, with random weights.

    `batch(generator)` returns the inputs of one step, a tuple of tensors on the CPU. `loss(net, *batch)` is a number to be made
    small. `infer(net, *batch)` is what the model is for, tensors in any nest; by default the net of the first input. A model
    that is trained in turns (a GAN) has further pairs of a part of `net` and its loss in `others`; the first loss trains `part`.
    """

    net: torch.nn.Module
    batch: Callable
    loss: Callable
    infer: Callable = lambda net, *batch: net(batch[0])
    part: torch.nn.Module | None = None
    others: tuple = ()

    @property
    def turns(self):
        return ((self.part or self.net, self.loss), *self.others)


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """`make(**small)` builds it so that a step takes two processors a second or less; `make(**full)` as it is used on a GPU."""

    name: str
    library: str  # transformers, timm, torchvision, or "hand"
    make: Callable[..., Model]
    small: dict
    full: dict
    optimizer: str = "adamw"
    clip: float | None = None  # the largest norm that all gradients together may have
    needs_values: bool = False  # what it computes decides what it does next: it cannot be recorded without being run

    def model(self, size="small"):
        return self.make(**getattr(self, size))


def seed(number):
    """Seeds all that a model may draw from."""
    random.seed(number)
    numpy.random.seed(number)
    torch.manual_seed(number)


def build(row, device, size="small"):
    """(the model, its net on the device; a function of a step's number: inputs there). The same for each device."""
    seed(0)
    model = row.model(size)
    model.net.to(device)
    generator = torch.Generator().manual_seed(1)
    made = [model.batch(generator) for _ in range(2)]
    return model, lambda index: [tensor.to(device) for tensor in made[index % len(made)]]


def training(row, device, size="small", dtype=torch.bfloat16):
    """A function of a step's number that does one training step under autocast, and returns the sum of its losses, not read."""
    model, batches = build(row, device, size)
    model.net.train()
    optimizers = [OPTIMIZERS[row.optimizer](part.parameters()) for part, _ in model.turns]
    seed(2)

    def step(index):
        batch, losses = batches(index), []
        for (part, loss_of), optimizer in zip(model.turns, optimizers):
            optimizer.zero_grad()
            with torch.autocast(device, dtype):
                loss = loss_of(model.net, *batch)
            loss.backward()
            if row.clip is not None:
                torch.nn.utils.clip_grad_norm_(part.parameters(), row.clip)
            optimizer.step()
            losses.append(loss.detach().float())
        return torch.stack(losses).sum()

    return step


def inference(row, device, size="small", dtype=torch.bfloat16):
    """A function of a step's number: the results of one step without gradients, under autocast, as a list of tensors."""
    model, batches = build(row, device, size)
    model.net.eval()
    seed(2)

    @torch.no_grad()
    def step(index):
        with torch.autocast(device, dtype):
            results = model.infer(model.net, *batches(index))
        return [leaf for leaf in torch.utils._pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]

    return step
