# SPDX-License-Identifier: Apache-2.0
"""Loops that do more, or less, than train: agents, simulations. Each yields after each of its steps; see loops_test.py."""

import random

import torch
from torch import nn
from torch.nn.functional import mse_loss

from loops import batch, network, update


def q_learning(steps):
    """An environment that is read at each step, a buffer of what happened, and a target that follows now and then."""
    net, target = network(), network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    chance, state, buffer = random.Random(0), [0.1] * 8, []
    for step in range(steps):
        if chance.random() < 0.3:
            action = chance.randrange(4)
        else:
            with torch.no_grad():
                action = net(torch.tensor(state, device="lazy").unsqueeze(0)).argmax(1).item()
        new = [0.9 * v + 0.1 * action for v in state]
        buffer.append((state, action, sum(new), new))
        state = new
        if len(buffer) >= 8:
            some = chance.sample(buffer, 8)
            old, did, won, after = (torch.tensor(column, device="lazy") for column in zip(*some, strict=True))
            with torch.no_grad():
                wanted = won + 0.9 * target(after).max(1).values
            loss = mse_loss(net(old).gather(1, did.unsqueeze(1)).squeeze(1), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 4:
                target.load_state_dict(net.state_dict())
        yield


def policy_gradient(steps, length=6, epochs=2):
    """PPO: a rollout that reads each action, then epochs over it in a random order."""
    actor, critic = network(), network(outputs=1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
    state = torch.full((4, 8), 0.1)
    for _ in range(steps):
        seen = []
        for _ in range(length):
            with torch.no_grad():
                x = state.to("lazy")
                policy = torch.distributions.Categorical(logits=actor(x), validate_args=False)
                action = policy.sample()
                seen.append((x, action, policy.log_prob(action), critic(x).squeeze(1)))
            state = state * 0.9 + 0.1 * action.cpu().float().unsqueeze(1)
        states, actions, before, values = (torch.stack(column).flatten(0, 1) for column in zip(*seen, strict=True))
        gain = states.sum(1) - values
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        for _ in range(epochs):
            order = torch.randperm(4 * length, device="lazy")
            for some in order.split(2 * length):
                policy = torch.distributions.Categorical(logits=actor(states[some]), validate_args=False)
                ratio = (policy.log_prob(actions[some]) - before[some]).exp()
                clipped = ratio.clamp(0.8, 1.2)
                loss = -torch.min(ratio * gain[some], clipped * gain[some]).mean() - 0.01 * policy.entropy().mean()
                loss = loss + 0.5 * mse_loss(critic(states[some]).squeeze(1), states[some].sum(1))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
                optimizer.step()
        yield


def simulation_in_place(steps):
    """Heat, in place, that nobody looks at before its end."""
    heat = torch.zeros(16, 16, device="lazy")
    heat[4:8, 4:8] = 1
    for _ in range(steps):
        around = heat[2:, 1:-1] + heat[:-2, 1:-1] + heat[1:-1, 2:] + heat[1:-1, :-2]
        heat[1:-1, 1:-1] += 0.1 * (around - 4 * heat[1:-1, 1:-1])
        yield
    assert heat.sum().item() > 0


def clusters(steps, every=5):
    """k-means until the centres stay, begun anew with other points."""
    points, centres = None, None
    for step in range(steps):
        if step % every == 0:
            points = torch.randn(64, 2, device="lazy")
            centres = points[:4].clone()
        nearest = torch.cdist(points, centres).argmin(1)
        members = torch.nn.functional.one_hot(nearest, 4).float()
        new = members.T @ points / members.sum(0).clamp(min=1).unsqueeze(1)
        moved = (new - centres).norm().item()
        centres = new
        yield
        if moved < 1e-9:
            continue


def adversary(steps, inner=4):
    """Training on inputs that were moved along the sign of their gradient."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    for step in range(steps):
        x = batch(step)
        moved = torch.zeros_like(x)
        for _ in range(inner):
            moved.requires_grad_()
            (gradient,) = torch.autograd.grad(net(x + moved).square().mean(), moved)
            moved = (moved + 0.01 * gradient.sign()).clamp(-0.03, 0.03).detach()
        update(net, optimizer, x + moved)
        yield
