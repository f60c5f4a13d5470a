# SPDX-License-Identifier: Apache-2.0
"""What makes new data: a GAN of convolutions, a variational autoencoder, a normalising flow."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from models.row import Model, Row


class Gan(nn.Module):
    """Images of 32 x 32 from noise, and who tells them from others."""

    def __init__(self, noise, width):
        super().__init__()
        self.noise = noise
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(noise, 4 * width, 4, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(True),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )
        self.judge = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, width, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(4 * width, 1, 4),
        )

    def make(self, x):
        return self.generator(torch.randn(x.shape[0], self.noise, 1, 1, device=x.device))


def dcgan(images, noise, width):
    net = Gan(noise, width)

    def is_real(scores, real):
        target = torch.ones_like(scores) if real else torch.zeros_like(scores)
        return F.binary_cross_entropy_with_logits(scores, target)

    def judge_loss(net, x):
        return is_real(net.judge(x), True) + is_real(net.judge(net.make(x).detach()), False)

    def generator_loss(net, x):
        return is_real(net.judge(net.make(x)), True)

    def make(g):
        return (torch.rand(images, 3, 32, 32, generator=g) * 2 - 1,)

    return Model(net, make, judge_loss, lambda net, x: net.make(x), net.judge, ((net.generator, generator_loss),))


class Vae(nn.Module):
    def __init__(self, width, latent, side):
        super().__init__()
        small = side // 4
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.SiLU(), nn.Flatten(),
            nn.Linear(2 * width * small * small, 2 * latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 2 * width * small * small), nn.Unflatten(1, (2 * width, small, small)), nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(2 * width, width, 3, padding=1), nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(latent), mean, log_variance


def vae(images, side, width, latent):
    def make(g):
        return (torch.rand(images, 1, side, side, generator=g),)

    def loss(net, x):
        seen, mean, log_variance = net(x)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1)
        return F.binary_cross_entropy_with_logits(seen, x, reduction="sum") / images + divergence.mean()

    return Model(Vae(width, latent, side), make, loss)


class Coupling(nn.Module):
    """Half of the numbers scales and shifts the other half; which half is said by a mask."""

    def __init__(self, size, width, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2 * size))
        self.scale = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        log_scale, shift = self.net(x * self.mask).chunk(2, -1)
        log_scale = torch.tanh(log_scale) * self.scale.exp() * (1 - self.mask)
        return x * log_scale.exp() + shift * (1 - self.mask), log_scale.sum(-1)


class RealNvp(nn.Module):
    def __init__(self, size, width, layers):
        super().__init__()
        masks = [(torch.arange(size) % 2 == k % 2).float() for k in range(layers)]
        self.layers = nn.ModuleList(Coupling(size, width, mask) for mask in masks)

    def forward(self, x):
        """The logarithm of the density."""
        volume = torch.zeros(x.shape[0], device=x.device)
        for layer in self.layers:
            x, change = layer(x)
            volume = volume + change
        return volume - 0.5 * (x.float().square() + math.log(2 * math.pi)).sum(-1)


def realnvp(batch, size, width, layers):
    def make(g):
        return (torch.randn(batch, size, generator=g).cumsum(1),)

    return Model(RealNvp(size, width, layers), make, lambda net, x: -net(x).mean())


ROWS = [
    Row("dcgan", "hand", dcgan, dict(images=4, noise=16, width=8), dict(images=128, noise=100, width=64), "adam"),
    Row("vae", "hand", vae, dict(images=4, side=28, width=8, latent=8), dict(images=256, side=28, width=64, latent=64), "adam"),
    Row("realnvp", "hand", realnvp, dict(batch=32, size=6, width=32, layers=4), dict(batch=4096, size=64, width=512, layers=8), "adam"),
]
