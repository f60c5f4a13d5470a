# SPDX-License-Identifier: Apache-2.0
"""A Wasserstein GAN of linear layers with a gradient penalty (Gulrajani et al., 2017): critic and generator in turn; losses collected."""

import torch
from torch import nn

IMAGE, NOISE, BATCH, PENALTY = 784, 100, 64, 10.0


def _generator():
    widths = [NOISE, 128, 256, 512]
    blocks = [nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.LeakyReLU(0.2)) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*blocks, nn.Linear(widths[-1], IMAGE), nn.Tanh())


def _critic():
    return nn.Sequential(nn.Linear(IMAGE, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))


def make(variant):
    generator, critic = _generator().to(variant.device), _critic().to(variant.device)
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9), **variant.optimizer)
    of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.9), **variant.optimizer)
    batches = variant.batches(lambda g: [torch.rand(BATCH, IMAGE, generator=g) * 2 - 1])

    def critic_loss(real, fake, mix):
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(2, dim=1) - 1).square().mean()
        return critic(fake).mean() - critic(real).mean() + PENALTY * penalty

    make_images = variant.compile(generator)
    step_critic, step_generator = variant.compile_update(of_critic.step), variant.compile_update(of_generator.step)

    def step(index):
        (real,) = batches(index)
        fake = make_images(torch.randn(BATCH, NOISE, device=variant.device))
        of_critic.zero_grad()
        loss = critic_loss(real, fake.detach(), torch.rand(BATCH, 1, device=variant.device))
        loss.backward()
        step_critic()
        of_generator.zero_grad()
        (-critic(fake).mean()).backward()
        step_generator()
        return loss.detach()

    return step
