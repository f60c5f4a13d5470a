# SPDX-License-Identifier: Apache-2.0
"""Every optimizer, with numbers that change at every step: no trace is new after the third step, and no kernel.

Learning rates of 0, 1 and eps are among them, and betas, eps and weight decay change as well. The first step makes the optimizer's
state, so it is like no other. A program that never waits is found to repeat when the third step of the kind begins, the fourth of all.
"""

import inspect

import pytest
import torch
from torch import nn

from counting import counts_by_step, last_change

RATES = [1e-3, 2e-3, 1.5e-3, 1e-3, 0.0, 1.0, 1e-8, 2e-8, 1e-3, 0.5, 2.0, 1e-4, 0.1, 1e-3]
SETTINGS = {
    "Adadelta": [{"weight_decay": 0.1}],
    "Adafactor": [{}],
    "Adagrad": [{"lr_decay": 0.1, "weight_decay": 0.1}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.01}],
    "AdamW": [{}, {"amsgrad": True}],
    "Adamax": [{"weight_decay": 0.1}],
    "ASGD": [{"weight_decay": 0.1}],
    "LBFGS": [{}],
    "Muon": [{}],
    "NAdam": [{}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [{"weight_decay": 0.1}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}],
    "Rprop": [{}],
    "SGD": [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True}],
}
# A program that does something else at a later step meets a new trace there.
LATER = {
    "RAdam": 7,  # rectifies from the sixth step on
}


def implementations(name):
    parameters = inspect.signature(getattr(torch.optim, name)).parameters
    found = [{"foreach": False}, {"foreach": True}] if "foreach" in parameters else [{}]
    found += [{"fused": True}] if "fused" in parameters else []
    found += [{"capturable": True, "foreach": True}] if "capturable" in parameters else []
    return found


CASES = [
    (name, {**settings, **implementation}, scaled)
    for name in SETTINGS
    for settings in SETTINGS[name]
    for implementation in implementations(name)
    for scaled in ([False, True] if name in ("Adam", "SGD") else [False])
]


def change(group, step, rate):
    group["lr"] = rate
    if "betas" in group:
        group["betas"] = (0.9 - 0.01 * step, 0.99)
    if isinstance(group.get("eps"), float):
        group["eps"] = 1e-8 * (step + 1)
    if group.get("weight_decay"):
        group["weight_decay"] = 0.01 * (step + 1)


def training(name, options, scaled, waits=True):
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    net.to("lazy")
    parameters = [p for p in net.parameters() if name != "Muon" or p.dim() == 2]
    optimizer = getattr(torch.optim, name)(parameters, **options)
    scaler = torch.amp.GradScaler("lazy", enabled=scaled)
    for step, rate in enumerate(RATES):
        for group in optimizer.param_groups:
            change(group, step, rate)
        x = torch.full((3, 4), 0.1 * step, device="lazy")

        def closure(x=x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            scaler.scale(loss).backward()
            return loss

        if name == "LBFGS":
            loss = optimizer.step(closure)
        else:
            loss = closure()
            scaler.step(optimizer)
            scaler.update()
        if waits:
            loss.item()
        yield


def title(case):
    name, options, scaled = case
    return "-".join([name, *(f"{key}={value}" for key, value in options.items()), *(["scaled"] if scaled else [])])


@pytest.mark.parametrize("case", CASES, ids=title)
def test_no_number_is_news(case):
    seen = counts_by_step(lambda: training(*case))
    assert last_change(seen) <= LATER.get(case[0], 3), seen


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_no_number_is_news_to_a_program_that_never_waits(name):
    seen = counts_by_step(lambda: training(name, SETTINGS[name][-1], scaled=False, waits=False))
    assert last_change(seen) <= 4, seen
