# SPDX-License-Identifier: Apache-2.0
"""explain() says of every trace that was not known what was new about it, and of every cut its reason; with the program's line."""

import inspect
import pathlib

import pytest
import torch
import torch_lazy


@pytest.fixture(autouse=True)
def known_step():
    """A step that is known, so that what follows can differ from it."""
    torch_lazy.set_option("compile", "sync")
    for rows in 5, 6, 5:
        step(rows)
    torch_lazy.reset_metrics()
    yield
    torch_lazy.set_option("compile", "async")


def step(rows, dim=0, double=False, keep=None):
    x = torch.ones(rows, 4, device="lazy")
    y = x + x
    if double:
        y = y * y
    z = torch.amax(y, dim)
    if keep is not None:
        keep.append(y)
    del x, y
    return z.sum().item()


def line(text):
    """ "file:number in step" of the line of `step` that holds the text."""
    lines, first = inspect.getsourcelines(step)
    (offset,) = [k for k, source in enumerate(lines) if text in source]
    return f"{pathlib.Path(__file__)}:{first + offset} in step"


def test_a_known_trace_is_a_hit():
    step(5)
    text = torch_lazy.explain()
    assert "not known:" not in text
    assert f"cut 1 times: item at {line('.item()')}\n" in text


def packed_net():
    """A net in evaluation, whose weights are packed once they have stayed for three runs."""
    torch.manual_seed(0)
    net, x = torch.nn.Conv2d(3, 8, 3).eval().to("lazy"), torch.ones(2, 3, 8, 8, device="lazy")
    with torch.no_grad():
        for _ in range(10):
            net(x).sum().item()


def test_efforts_are_told():
    packed_net()
    effort = torch_lazy.metrics()["efforts"]["freeze"]
    assert effort["tried"] == 1 and 0 < effort["used"] < 10
    assert effort["seconds_spent"] > 0 and effort["seconds_saved"] == 0
    (told,) = [told for told in torch_lazy.explain().splitlines() if told.startswith("effort: freeze")]
    assert told.startswith("effort: freeze tried 1 times in ")
    assert told.endswith(f" s, used {effort['used']} times, savings not timed")


def test_efforts_begin_anew_after_a_reset():
    packed_net()
    torch_lazy.reset_metrics()
    assert "effort: freeze" not in torch_lazy.explain()
    assert not any(torch_lazy.metrics()["efforts"]["freeze"].values())


def test_each_effort_has_a_row():
    efforts = torch_lazy.metrics()["efforts"]
    assert {"products", "cuda_products", "convolutions", "cuda_graphs", "sized", "carry", "freeze"} <= efforts.keys()
    assert all(effort.keys() == {"tried", "used", "seconds_spent", "seconds_saved"} for effort in efforts.values())


def differs(text):
    (told,) = [told for told in torch_lazy.explain().splitlines() if told.startswith("not known:")]
    assert text in told, told


def learned_step(*arguments, **options):
    """Shapes that are not known yet cut a trace once, and are no news."""
    step(*arguments, **options)
    assert "unknown shape" in torch_lazy.explain()
    torch_lazy.reset_metrics()
    step(*arguments, **options)


def test_another_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        learned_step(5)
    finally:
        torch.set_default_dtype(torch.float32)
    differs("default dtype or determinism are others")


def test_another_argument():
    step(5, dim=1)
    differs(f"call 3, aten::amax: argument `dim` is [1] where it was [0] at {line('amax')}")


def test_another_call():
    step(5, double=True)
    differs(f"call 3, aten::mul.Tensor: it came where aten::amax was called at {line('y * y')}")


def test_another_result_is_kept():
    kept = []
    step(5, keep=kept)
    differs("its calls are known, but other results of theirs are kept")


def test_another_operand():
    x, y = torch.ones(3, device="lazy"), torch.ones(3, device="lazy")
    torch_lazy.sync()
    torch.mul(x + y, x).sum().item()
    torch_lazy.reset_metrics()
    torch.mul(x + y, y).sum().item()
    differs("aten::mul.Tensor: argument `other` is tensor 1 of the trace, made before it, where it was tensor 0")


def test_another_kind_of_size():
    learned_step(1)
    differs(f"call 1, aten::fill_.Scalar: argument `self` is Float[1, 4] where it was Float[5, 4] at {line('torch.ones')}")


def test_it_says_why_two_operators_share_no_kernel():
    x, y = torch.ones(1, 300, device="lazy"), torch.ones(200, 300, device="lazy")
    for _ in range(3):
        (torch.sin(x) + y).sum().item()
    assert ("aten::sin is not in the kernel of aten::add.Tensor, since a costly operation would be done again for each place "
            "of a broadcast (repeats_costly_op)\n") in torch_lazy.explain()


def test_it_says_nothing_of_operators_that_share_a_kernel():
    x = torch.ones(41, 300, device="lazy")
    for _ in range(3):
        (x.exp() * 2 - x).sin().cpu()
    assert not any("aten::exp is not in" in line for line in torch_lazy.explain().splitlines())
