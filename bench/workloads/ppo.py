# SPDX-License-Identifier: Apache-2.0
"""An update of PPO: four minibatches in a shuffled order, clipped gradients, Adam; losses collected. Policy of 256 numbers wide."""

import torch
from torch import nn

SAMPLES, OBSERVATIONS, ACTIONS, WIDTH, MINIBATCHES = 2048, 64, 8, 256, 4
CLIP, LARGEST_NORM = 0.2, 0.5


def _tower(outputs):
    return nn.Sequential(nn.Linear(OBSERVATIONS, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, outputs))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = _tower(ACTIONS), _tower(1)

    def forward(self, observations, actions):
        """(log probabilities of the actions, entropies, values), each [samples]."""
        log_probabilities = self.actor(observations).log_softmax(1)
        entropies = -(log_probabilities.exp() * log_probabilities).sum(1)
        return log_probabilities.gather(1, actions[:, None])[:, 0], entropies, self.critic(observations)[:, 0]


def make(variant):
    net = Policy().to(variant.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4, **variant.optimizer)
    observations = torch.randn(SAMPLES, OBSERVATIONS).to(variant.device)
    actions = torch.randint(ACTIONS, (SAMPLES,)).to(variant.device)
    old, advantages, returns = (torch.randn(SAMPLES).to(variant.device) for _ in range(3))

    def loss_of(x, actions, old, advantages, returns):
        log_probabilities, entropies, values = net(x, actions)
        ratios = (log_probabilities - old).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        surrogate = torch.minimum(ratios * advantages, ratios.clamp(1 - CLIP, 1 + CLIP) * advantages)
        return (values - returns).square().mean() / 2 - surrogate.mean() - 0.01 * entropies.mean()

    loss_of = variant.compile(loss_of)
    update = variant.compile_update(optimizer.step)

    def step(_):
        losses = []
        for rows in torch.randperm(SAMPLES, device=variant.device).chunk(MINIBATCHES):
            loss = loss_of(observations[rows], actions[rows], old[rows], advantages[rows], returns[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), LARGEST_NORM)
            update()
            losses.append(loss.detach())
        return torch.stack(losses).mean()

    return step
