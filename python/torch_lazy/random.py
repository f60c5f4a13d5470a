# SPDX-License-Identifier: Apache-2.0
"""Random state of the device.

The CPU backend draws from PyTorch's default CPU generator, as eager does, so that the same seed gives the same numbers.
torch.manual_seed therefore sets one state, twice.
"""
import torch

_generator = torch.default_generator
default_generators = (_generator,)


def manual_seed(seed):
    _generator.manual_seed(int(seed))


def manual_seed_all(seed):
    manual_seed(seed)


def seed():
    _generator.seed()


def seed_all():
    seed()


def initial_seed():
    return _generator.initial_seed()


def get_rng_state(device="lazy"):
    return _generator.get_state()


def get_rng_state_all():
    return [get_rng_state()]


def set_rng_state(new_state, device="lazy"):
    _generator.set_state(new_state)


def set_rng_state_all(new_states):
    for state in new_states:
        set_rng_state(state)
