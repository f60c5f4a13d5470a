#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what script_module and exported_program load, into a folder: write_models.py FOLDER"""
import pathlib
import sys

import torch
import torch_lazy  # noqa: F401  so that a program can be exported for the device


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4), torch.nn.Softmax(1)).eval()


class WithWeights(torch.nn.Module):
    """The model as a function of its weights too: see README.md."""

    def __init__(self, model):
        super().__init__()
        self.model = [model]  # in a list, so that its weights are not this module's

    def forward(self, weights, x):
        return torch.func.functional_call(self.model[0], weights, (x,))


def export(model, path, device="lazy"):
    model = model.to(device)
    weights = {name: weight.detach() for name, weight in model.state_dict().items()}
    x = torch.ones(8, 8, device=device)
    shapes = (dict.fromkeys(weights), {0: torch.export.Dim("rows")})
    torch.export.save(torch.export.export(WithWeights(model), (weights, x), dynamic_shapes=shapes), path)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.jit.script(make_model()).save(folder / "model.pt")
    torch.save(dict(make_model().state_dict()), folder / "weights.pt")
    export(make_model(), folder / "model.pt2")


if __name__ == "__main__":
    main()
