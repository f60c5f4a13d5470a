# SPDX-License-Identifier: Apache-2.0
"""Random state of the device: that of the default generator of the eager device it stands on, the CPU or CUDA, so that the
same seed gives eager's numbers. Several devices of the CPU have its one generator.

A seed is set for both, since CUDA takes it when it is used for the first time, and is not woken up for it.
"""
import functools

import torch

from . import _utils


@functools.cache
def on_gpu():
    """Whether the device stands on CUDA; decided when first asked for."""
    return _utils.call("eager_device") == "cuda"


def _generators():
    return tuple(torch.cuda.default_generators) if on_gpu() else (torch.default_generator,) * _utils.call("device_count")


def _generator(device=None):
    return _generators()[_utils._get_device_index(device, optional=True)]


def __getattr__(name):
    if name == "default_generators":
        return _generators()
    raise AttributeError(name)


def manual_seed(seed):
    torch.default_generator.manual_seed(int(seed))
    torch.cuda.manual_seed_all(int(seed))


def manual_seed_all(seed):
    manual_seed(seed)


def seed():
    _generator().seed()


def seed_all():
    for generator in _generators():
        generator.seed()


def initial_seed():
    return _generator().initial_seed()


def get_rng_state(device="lazy"):
    return _generator(device).get_state()


def get_rng_state_all():
    return [generator.get_state() for generator in _generators()]


def set_rng_state(new_state, device="lazy"):
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states):
    for generator, state in zip(_generators(), new_states):
        generator.set_state(state)
