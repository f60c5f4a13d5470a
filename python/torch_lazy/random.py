# SPDX-License-Identifier: Apache-2.0
"""Random state of the device: that of the default generator of the eager device it stands on, the CPU or CUDA, so that the
same seed gives eager's numbers.

A seed is set for both, since CUDA takes it when it is used for the first time, and is not woken up for it.
"""
import functools

import torch


@functools.cache
def on_gpu():
    """Whether the device stands on CUDA; decided when first asked for."""
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.ops.torch_lazy.eager_device() == "cuda"


def _generator():
    return torch.cuda.default_generators[0] if on_gpu() else torch.default_generator


def __getattr__(name):
    if name == "default_generators":
        return (_generator(),)
    raise AttributeError(name)


def manual_seed(seed):
    torch.default_generator.manual_seed(int(seed))
    torch.cuda.manual_seed_all(int(seed))


def manual_seed_all(seed):
    manual_seed(seed)


def seed():
    _generator().seed()


def seed_all():
    seed()


def initial_seed():
    return _generator().initial_seed()


def get_rng_state(device="lazy"):
    return _generator().get_state()


def get_rng_state_all():
    return [get_rng_state()]


def set_rng_state(new_state, device="lazy"):
    _generator().set_state(new_state)


def set_rng_state_all(new_states):
    for state in new_states:
        set_rng_state(state)
