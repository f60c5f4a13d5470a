# SPDX-License-Identifier: Apache-2.0
"""Two that learn what noise was added to an image: a U-Net with time embeddings, and a transformer of patches."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from models.row import Model, Row


def time_waves(times, width):
    rates = torch.exp(-math.log(10000) * torch.arange(width // 2, device=times.device) / (width // 2))
    angles = times[:, None].float() * rates
    return torch.cat([angles.cos(), angles.sin()], 1)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, 2 * outputs))
        self.norm, self.second = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        scale, shift = self.time(time)[:, :, None, None].chunk(2, 1)
        h = self.norm(self.first(x)) * (1 + scale) + shift
        return self.skip(x) + self.second(F.dropout(F.silu(h), 0.1, self.training))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(4, width), heads
        self.project, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.project(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        weights = torch.einsum("bhdi,bhdj->bhij", q, k).mul((c // self.heads) ** -0.5).softmax(-1)
        return x + self.out(torch.einsum("bhij,bhdj->bhdi", weights, v).reshape(b, c, h, w))


class NoiseUNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, time = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.begin = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = Residual(width, width, time), Residual(width, 2 * width, time)
        self.halve1, self.halve2 = nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(2 * width, 2 * width, 3, 2, 1)
        self.middle, self.attention = Residual(2 * width, 2 * width, time), SelfAttention(2 * width, 4)
        self.up2, self.up1 = Residual(4 * width, width, time), Residual(2 * width, width, time)
        self.end = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, times):
        time = self.time(time_waves(times, self.width))
        first = self.down1(self.begin(x), time)
        second = self.down2(self.halve1(first), time)
        h = self.attention(self.middle(self.halve2(second), time))
        h = self.up2(torch.cat([F.interpolate(h, scale_factor=2.0), second], 1), time)
        h = self.up1(torch.cat([F.interpolate(h, scale_factor=2.0), first], 1), time)
        return self.end(h)


class DitBlock(nn.Module):
    """Scale, shift and gate of both halves come from the condition, and begin as zero."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.condition = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))
        nn.init.zeros_(self.condition[1].weight)

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.condition(condition)[:, None].chunk(6, -1)
        b, n, c = x.shape
        q, k, v = self.project(self.norm1(x) * (1 + scale1) + shift1).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + gate1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class Dit(nn.Module):
    def __init__(self, side, patch, width, depth, heads):
        super().__init__()
        self.side, self.patch, self.width = side, patch, width
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(DitBlock(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width, elementwise_affine=False), nn.Linear(width, 3 * patch * patch)

    def forward(self, x, times):
        h = self.embed(x).flatten(2).transpose(1, 2) + self.places
        condition = self.time(time_waves(times, self.width))
        for block in self.blocks:
            h = block(h, condition)
        grid = self.side // self.patch
        h = self.head(self.norm(h)).view(-1, grid, grid, self.patch, self.patch, 3)
        return torch.einsum("bhwpqc->bchpwq", h).reshape(x.shape)


def denoiser(images, side, make, **sizes):
    def batch(g):
        return torch.rand(images, 3, side, side, generator=g) * 2 - 1, torch.randint(1000, (images,), generator=g)

    def loss(net, x, times):
        kept = torch.cos(times.float() / 1000 * math.pi / 2)[:, None, None, None]
        noise = torch.randn_like(x)
        return F.mse_loss(net(kept * x + (1 - kept**2).clamp(min=0).sqrt() * noise, times), noise)

    return Model(make(**sizes), batch, loss, lambda net, x, times: net(x, times))


ROWS = [
    Row("diffusion_unet", "hand", denoiser, dict(images=2, side=16, make=NoiseUNet, width=16),
        dict(images=32, side=64, make=NoiseUNet, width=128)),
    Row("dit", "hand", denoiser, dict(images=2, side=16, make=lambda **k: Dit(side=16, **k), patch=4, width=64, depth=2, heads=4),
        dict(images=32, side=32, make=lambda **k: Dit(side=32, **k), patch=2, width=768, depth=12, heads=12)),
]
