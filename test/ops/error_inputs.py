# SPDX-License-Identifier: Apache-2.0
"""What op_db says must fail, on device lazy, against eager execution on the CPU.

    error_inputs.py [--mode interpreted|compiled] [--only add,nn.functional.*] [--jobs 2] [--limit SECONDS]
                    [--json FILE] [--device lazy]

An error that depends on shapes or dtypes is raised at the call. One that depends on values is raised at the sync: then
storages hold what they held before the call that failed, and what was made after it cannot be read.
"""

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import suite
from compare import Mismatch
from replicate import Replica


def main():
    arguments = suite.parser().parse_args()
    entries = {suite.full_name(op): op for op in op_db if op.error_inputs_func is not None}
    suite.run("error_inputs", entries, check, arguments)


def check(op, arguments):
    count = 0
    for index, error_input in enumerate(op.error_inputs("cpu")):
        sample = error_input.sample_input
        call = sample.input, sample.args, sample.kwargs
        suite.error_of(lambda: suite.sync(arguments.device))  # what a failed entry has left
        try:
            if _outcome(op, call, "cpu") is None:
                continue  # another device's error
            _check_call(op, call, arguments.device)
        except Mismatch as mismatch:
            raise Mismatch(f"sample {index}: {mismatch}") from None
        count += 1
    return count


def _check_call(op, call, device):
    harmless = Harmless("cpu").of(call)
    expected = _outcome(op, call, "cpu")
    if _outcome(op, harmless, "cpu") is not None:
        _learn_with_other_numbers(op, call, device)
        return _expect(_outcome(op, call, device), expected, "at the call")
    for _ in range(3):  # learned, recorded, known
        _expect(_outcome(op, harmless, device), None, "with other values")
        _expect(suite.error_of(lambda: suite.sync(device)), None, "at the sync, with other values")
    _expect(_outcome(op, call, device) or suite.error_of(lambda: suite.sync(device)), expected, "for its values")
    for values, outcome in [(harmless, None), (call, expected)]:
        _check_state(op, values, device, outcome)


def _learn_with_other_numbers(op, call, device):
    other = pytree.tree_map(lambda leaf: 0.5 if isinstance(leaf, float) else leaf, call)
    if _outcome(op, other, "cpu") is None:
        for _ in range(2):
            _outcome(op, other, device)


def _check_state(op, call, device, expected):
    """A program around the call leaves what one that ends there leaves."""
    before, later = torch.arange(3.0, device=device), torch.arange(3.0, device=device)
    tensor, arguments, keywords = Replica(device).of(call)
    suite.sync(device)
    before.add_(1)
    made = before * 2
    error = suite.error_of(lambda: op(tensor, *arguments, **keywords))
    if error is None:
        before.mul_(3)
        later.add_(5)
        after = made + later
        error = suite.error_of(lambda: suite.sync(device))
        if expected is not None and device.startswith("lazy") and suite.error_of(after.tolist) is None:
            raise Mismatch("what was made after the failed call can be read")
    _expect(error, expected, "in a program")
    factor, summand = (3, 5) if expected is None else (1, 0)
    for tensor, values in [(before, [factor * n for n in (1, 2, 3)]), (made, [2, 4, 6]), (later, [n + summand for n in (0, 1, 2)])]:
        if tensor.tolist() != values:
            raise Mismatch(f"{tensor.tolist()} instead of {values} after the error")


class Harmless(Replica):
    """The same geometries and aliases, with values that no operator refuses if it takes any: zeros, and halves or unit
    matrices of floating numbers."""

    def _of_storage(self, tensor):
        whole = super()._of_storage(tensor)
        return whole.fill_(0.5) if whole.is_floating_point() or whole.is_complex() else whole.zero_()

    def _of_data(self, tensor):
        copy = super()._of_data(tensor)
        if copy.is_floating_point() and copy.is_contiguous() and copy.dim() >= 2 and copy.size(-1) == copy.size(-2):
            copy.copy_(torch.eye(copy.size(-1), dtype=copy.dtype))
        return copy


def _outcome(op, call, device):
    """What the call raises; None if it returns."""
    tensor, arguments, keywords = Replica(device).of(call)
    return suite.error_of(lambda: op(tensor, *arguments, **keywords))


def _expect(error, expected, when):
    if type(error) is not type(expected):
        raise Mismatch(f"{when}: {_describe(error)} instead of {_describe(expected)}")


def _describe(error):
    return "no error" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"


if __name__ == "__main__":
    main()
