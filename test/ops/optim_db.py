# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own optimizer database on device lazy, step by step against eager execution on the CPU.

    optim_db.py [--mode interpreted|compiled] [--only Adam,SGD] [--dtype float32] [--steps 6] [--jobs 2]
                [--limit SECONDS] [--json FILE] [--device lazy]

Each configuration of an optimizer runs as a loop over parameters, by lists, fused, and capturable, where it can, with a
learning rate that changes. Parameters and state are compared after every step. Once settled, steps meet no new trace.
"""

import copy
import functools
import sys

import torch
from torch.testing._internal.common_optimizers import optim_db
from torch.utils import _pytree as pytree

import suite
from compare import Mismatch

FORMS = {
    "as it is": {},
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "capturable": {"foreach": False, "capturable": True},
    "capturable foreach": {"foreach": True, "capturable": True},
}
SETTLED = 4  # steps, after which counts must not grow

# Their steps are not all the same program.
CHANGES_COURSE = {
    "LBFGS": "its line search and its growing history depend on values",
    "RAdam": "its first five steps, and those after, differ",
}


def main():
    parser = suite.parser()
    parser.add_argument("--steps", type=int, default=6)
    allow_capturable_on_the_cpu()
    suite.run("optim_db", {info.name: info for info in optim_db}, check, parser.parse_args())


def allow_capturable_on_the_cpu():
    """PyTorch asks for an accelerator, but what a capturable step computes the CPU can compute as well."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.optim.") and hasattr(module, "_get_capturable_supported_devices"):
            supported = module._get_capturable_supported_devices
            module._get_capturable_supported_devices = functools.partial(_and_cpu, supported)


def _and_cpu(supported, *args, **kwargs):
    return [*supported(*args, **kwargs), "cpu"]


def check(info, arguments):
    count = 0
    for config in info.optim_inputs_func(device="cpu"):
        for form in forms_of(info, config):
            try:
                _check_form(info, config, form, arguments)
            except Mismatch as mismatch:
                raise Mismatch(f"{config.desc}, {form}: {mismatch}") from None
            count += 1
    return count


def forms_of(info, config):
    chosen = {"foreach", "fused", "capturable", "differentiable"} & config.kwargs.keys()
    if chosen or not info.supported_impls:
        return ["as it is"] if "capturable" not in chosen else []
    names = ["loop", *(name for name in ("foreach", "fused") if name in info.supported_impls)]
    return names + (["capturable", "capturable foreach"] if info.has_capturable_arg else [])


class Run:
    """One training of a few parameters on a device."""

    def __init__(self, info, config, flags, dtype, device):
        torch.manual_seed(0)
        self.sparse = info.only_supports_sparse_grads
        shapes = [(4, 3), (2, 5)] if info.name == "Muon" else [(4, 3), (5,), (2, 3, 2), (1,)]
        start = [torch.randn(shape, dtype=dtype) for shape in shapes]
        self.params = [torch.nn.Parameter(tensor.to(device)) for tensor in start]
        self.targets = [torch.randn(shape, dtype=dtype).to(device) for shape in shapes]
        self.optimizer = info.optim_cls(self.params, **{**copy.deepcopy(config.kwargs), **flags})
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.9)

    def step(self):
        self.optimizer.step(self.closure)
        self.schedule.step()

    def closure(self):
        self.optimizer.zero_grad()
        loss = sum(((p - t) ** 2).sum() for p, t in zip(self.params, self.targets))
        loss.backward()
        for param in self.params if self.sparse else []:
            param.grad = param.grad.to_sparse()
        return loss

    def state(self):
        return [p.detach() for p in self.params], self.optimizer.state_dict()["state"]


def _check_form(info, config, form, arguments):
    actual, expected = (_start(info, config, FORMS[form], arguments.dtype, device) for device in (arguments.device, "cpu"))
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return _expect_same_type(actual, expected)
    for step in range(arguments.steps):
        before = suite.metrics(arguments.device)
        errors = [suite.error_of(run.step) for run in (actual, expected)]
        if any(errors):
            return _expect_same_type(*errors)
        suite.sync(arguments.device)
        after = suite.metrics(arguments.device)
        _compare(actual.state(), expected.state(), step, arguments.dtype)
        for name in ("trace_misses", "kernels_compiled"):
            if step >= SETTLED and info.name not in CHANGES_COURSE and after.get(name, 0) != before.get(name, 0):
                raise Mismatch(f"step {step}: {name} grew by {after[name] - before[name]}")


def _start(info, config, flags, dtype, device):
    try:
        return Run(info, config, flags, dtype, device)
    except Exception as error:
        return error


def _expect_same_type(actual, expected):
    if type(actual) is not type(expected):
        raise Mismatch(f"{actual!r:.300} instead of {expected!r:.300}")


def _compare(actual, expected, step, dtype):
    actual_leaves, actual_spec = pytree.tree_flatten(actual)
    expected_leaves, expected_spec = pytree.tree_flatten(expected)
    if actual_spec != expected_spec:
        raise Mismatch(f"step {step}: state {actual_spec} instead of {expected_spec}")
    for a, e in zip(actual_leaves, expected_leaves, strict=True):
        try:
            torch.testing.assert_close(_on_host(a), _on_host(e), check_stride=True)
        except AssertionError as error:
            raise Mismatch(f"step {step}: " + " ".join(str(error).split())) from None


def _on_host(leaf):
    return leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf


if __name__ == "__main__":
    main()
