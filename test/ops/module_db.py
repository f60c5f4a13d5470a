# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own module database on device lazy, against eager execution on the CPU.

    module_db.py [--mode interpreted|compiled] [--only nn.Linear,nn.*Norm*] [--dtype float32] [--jobs 2]
                 [--limit SECONDS] [--json FILE] [--device lazy]

Every sample in training and in evaluation, and where it takes images in channels_last as well: two forward and backward
passes, each with an update of the parameters; results, gradients, parameters and buffers are compared after each.
"""

import copy

import torch
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

import suite
from check import gradients, to_double
from compare import Mismatch, Tolerance, compare, is_as_precise
from replicate import Replica

STEPS = 2

# On every device but the CPU, autograd makes the gradient contiguous before it calls the operator.
CONTIGUOUS_GRADIENTS = {"nn.GroupNorm"}


def main():
    arguments = suite.parser().parse_args()
    entries = {info.name: info for info in module_db if arguments.dtype in info.supported_dtypes("cpu")}
    suite.run(f"module_db {arguments.dtype}", entries, check, arguments)


def check(info, arguments):
    count = 0
    for training in [True, False] if info.train_and_eval_differ else [True]:
        torch.manual_seed(0)
        for index, sample in enumerate(info.module_inputs_func(info, "cpu", arguments.dtype, True, training)):
            for memory_format in formats_of(info, sample):
                try:
                    _check_sample(info, sample, training, memory_format, arguments)
                except Mismatch as mismatch:
                    raise Mismatch(f"sample {index} ({sample.desc}), training={training}, {memory_format}: {mismatch}") from None
                count += 1
    return count


def formats_of(info, sample):
    """Also channels_last, if the first argument is a batch of images."""
    first = next(iter(sample.forward_input.args), None)
    is_image = isinstance(first, torch.Tensor) and first.dim() == 4 and "3d" not in info.name
    if info.is_lazy or info.name in CONTIGUOUS_GRADIENTS:
        return [None]
    return [None, torch.channels_last] if is_image else [None]


def _check_sample(info, sample, training, memory_format, arguments):
    torch.manual_seed(0)
    module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
    module = module.to(dtype=arguments.dtype).train(training)
    if memory_format is not None:
        module = module.to(memory_format=memory_format)
    inputs = _with_format((sample.forward_input.args, sample.forward_input.kwargs), memory_format)
    twin, start = copy.deepcopy(module).to(arguments.device), copy.deepcopy(module)
    settings = {"device": arguments.device, "tolerance": Tolerance(info, arguments.dtype, "TestModule")}
    outcomes = zip(_steps(module, inputs, "cpu"), _steps(twin, inputs, arguments.device), strict=True)
    for step, (expected, actual) in enumerate(outcomes):
        suite.sync(arguments.device)
        try:
            compare(actual, expected, **settings)
        except Mismatch as mismatch:
            if isinstance(expected, Exception) or isinstance(actual, Exception):
                raise
            neighbours = [list(_steps(*_neighbours(start, inputs, seed), "cpu"))[step] for seed in range(8)]
            in_double = pytree.tree_map(lambda leaf: to_double(leaf, arguments.dtype), inputs)
            precise = list(_steps(start.double(), in_double, "cpu"))
            if not _is_precise(actual, expected, precise[min(step, len(precise) - 1)], neighbours, **settings):
                raise Mismatch(f"step {step}: {mismatch}") from None
            return
        if not isinstance(expected, Exception):
            twin.load_state_dict(module.state_dict())  # rounding errors do not add up


def _neighbours(module, inputs, seed):
    """The module and its inputs with parameters and numbers that differ in their last digits."""
    module, generator = copy.deepcopy(module), torch.Generator().manual_seed(seed)

    def near(leaf):
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        noise = torch.rand(leaf.shape, dtype=torch.float64, generator=generator) * 2 - 1
        return (leaf.detach() * (1 + noise * torch.finfo(leaf.dtype).eps).to(leaf.dtype)).requires_grad_(leaf.requires_grad)

    for parameter in module.parameters():
        parameter.data = near(parameter.data)
    return module, pytree.tree_map(near, inputs)


def _is_precise(actual, expected, precise, neighbours, *, device, tolerance):
    try:
        compare(actual, expected, device=device, tolerance=tolerance, values=False)
    except Mismatch:
        return False
    return not isinstance(precise, Exception) and is_as_precise(actual, expected, precise, tolerance, neighbours)


def _steps(module, inputs, device):
    for _ in range(STEPS):
        outcome = _step(module, inputs, device)
        yield outcome
        if isinstance(outcome, Exception):
            return


def _with_format(inputs, memory_format):
    def leaf(value):
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4
        return value.detach().contiguous(memory_format=memory_format).requires_grad_(value.requires_grad) if is_image else value

    return inputs if memory_format is None else pytree.tree_map(leaf, inputs)


def _step(module, inputs, device):
    """Results, gradients of inputs and parameters, and what the module then holds; or the error."""
    torch.manual_seed(1)
    replica = Replica(device)
    args, kwargs = replica.of(inputs)
    try:
        result = module(*args, **kwargs)
        parameters = [p for p in module.parameters() if p.requires_grad and not torch.nn.parameter.is_lazy(p)]
        grads = gradients(result, replica.leaves + parameters)
        with torch.no_grad():
            for parameter, grad in zip(parameters, grads[len(replica.leaves):]):
                if grad is not None:
                    parameter.sub_(grad, alpha=0.01)
        return result, grads, dict(module.state_dict())
    except Exception as error:
        return error


if __name__ == "__main__":
    main()
