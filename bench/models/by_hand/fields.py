# SPDX-License-Identifier: Apache-2.0
"""Functions of space: a differential equation that a network solves, and a radiance field that rays are sent through."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from models.row import Model, Row


def pinn(points, width, layers):
    """Burgers' equation: u_t + u u_x = v u_xx, whose derivatives are those of the network, and are differentiated again."""
    widths = [2, *[width] * layers, 1]
    steps = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.Tanh())]
    net = nn.Sequential(*steps[:-1])

    def make(g):
        inside = torch.rand(points, 2, generator=g) * torch.tensor([1.0, 2.0]) - torch.tensor([0.0, 1.0])
        begin = torch.stack([torch.zeros(points // 4), torch.rand(points // 4, generator=g) * 2 - 1], 1)
        return inside, begin

    def gradient(y, x):
        return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]

    def loss(net, inside, begin):
        place = inside.detach().requires_grad_()
        u = net(place).float()
        first = gradient(u, place)
        second = gradient(first[:, 1:], place)[:, 1:]
        residual = first[:, :1] + u * first[:, 1:] - 0.01 / math.pi * second
        return residual.square().mean() + F.mse_loss(net(begin).float(), -torch.sin(math.pi * begin[:, 1:]))

    return Model(net, make, loss)


class Nerf(nn.Module):
    """Colour and density at points that rays pass, from waves of place and direction."""

    def __init__(self, width, waves):
        super().__init__()
        self.waves = waves
        size = 3 + 6 * waves
        self.first = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(width + size, width), nn.ReLU())
        self.density = nn.Linear(width, 1)
        self.colour = nn.Sequential(nn.Linear(width + size, width // 2), nn.ReLU(), nn.Linear(width // 2, 3), nn.Sigmoid())

    def encode(self, x):
        angles = x[..., None, :] * (2.0 ** torch.arange(self.waves, device=x.device))[:, None]
        return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)

    def forward(self, origin, direction, depths):
        points = origin[:, None] + direction[:, None] * depths[..., None]
        places, ways = self.encode(points), self.encode(F.normalize(direction, dim=-1))[:, None].expand(*depths.shape, -1)
        h = self.second(torch.cat([self.first(places), places], -1))
        density = F.relu(self.density(h).squeeze(-1)).float()
        gaps = torch.cat([depths.diff(), torch.full_like(depths[:, :1], 1e10)], 1)
        stopped = 1 - torch.exp(-density * gaps)
        passed = torch.cumprod(torch.cat([torch.ones_like(stopped[:, :1]), 1 - stopped + 1e-10], 1), 1)[:, :-1]
        weights = stopped * passed
        return (weights[..., None] * self.colour(torch.cat([h, ways], -1))).sum(1)


def nerf(rays, samples, width, waves):
    def make(g):
        depths = (2 + 4 * torch.rand(rays, samples, generator=g)).sort(1).values
        return torch.randn(rays, 3, generator=g), torch.randn(rays, 3, generator=g), depths, torch.rand(rays, 3, generator=g)

    def loss(net, origin, direction, depths, seen):
        return F.mse_loss(net(origin, direction, depths), seen)

    return Model(Nerf(width, waves), make, loss, lambda net, origin, direction, depths, seen: net(origin, direction, depths))


ROWS = [
    Row("pinn", "hand", pinn, dict(points=64, width=20, layers=4), dict(points=20000, width=128, layers=8), "adam"),
    Row("nerf", "hand", nerf, dict(rays=32, samples=16, width=32, waves=4), dict(rays=4096, samples=64, width=256, waves=10), "adam"),
]
