# SPDX-License-Identifier: Apache-2.0
"""A model file may call every operator of PyTorch's dispatcher: none of ours chooses a program, a folder or a file, or ends the process."""

import os
import random
import re
import subprocess
import sys

import pytest
import torch

# What there is, each looked at: none takes a text but for numbers and tensors. A new one is to be looked at, too.
OPERATORS = {
    "_count_questions", "_is_in_use", "arange", "attention", "attention_backward", "cudnn_rnn", "cudnn_rnn_backward",
    "current_device", "device_count", "dropout", "eager_device", "explain", "from_eager", "is_in_bad_fork", "memory_of", "metrics", "operators",
    "over_memory", "replay_abandon", "replay_apply", "replay_begin", "replay_case", "replay_draws", "replay_end", "replay_free",
    "replay_gradients", "replay_new", "replay_new_pass", "replay_pair", "replay_ready", "replay_refusal", "replay_run",
    "replay_watch", "reset_metrics", "set_device", "sync", "synchronize", "to_eager",
}

# Without the device: a library of the same name, with the operator that there once was.
SAVE = """
import sys, torch
library = torch.library.Library("torch_lazy", "DEF")
library.define("set_option(str name, str value) -> ()")
library.impl("set_option", lambda name, value: None, "BackendSelect")
library.impl("set_option", lambda name, value: None, "Meta")

class Model(torch.nn.Module):
    def forward(self, x):
        torch.ops.torch_lazy.set_option(sys.argv[2], sys.argv[3])
        torch.ops.torch_lazy.set_option("compile", "sync")
        return torch.sin(x) * x + 1

program = torch.export.export(Model(), (torch.ones(4, 4),))
assert "set_option" in str(program.graph)
torch.export.save(program, sys.argv[1])
"""

LOAD = """
import sys, torch, torch_lazy
x = torch.ones(4, 4, device="lazy")
model = torch.export.load(sys.argv[1]).module()
for _ in range(4):
    print(model(x).sum().item())
"""


def _python(program, *arguments, **variables):
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], env=os.environ | variables, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/")


@pytest.mark.parametrize("option", ["compiler", "cache_dir", "dump"])
def test_an_exported_program_sets_no_option(option, tmp_path):
    model, chosen = tmp_path / "model.pt2", tmp_path / "chosen"
    value = f"/bin/sh -c id>{chosen};exit" if option == "compiler" else chosen
    saved = _python(SAVE, model, option, value)
    assert saved.returncode == 0, saved.stdout
    loaded = _python(LOAD, model, LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert not chosen.exists()
    assert loaded.returncode != 0 and "set_option" in loaded.stdout


def _schemas():
    import torch_lazy  # noqa: F401

    return [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("torch_lazy::")]


def test_operators_are_those_that_were_looked_at():
    assert {schema.name.split("::")[1] for schema in _schemas()} == OPERATORS


def test_no_operator_takes_a_text():
    assert not [schema for schema in _schemas() if re.search(r"\bstr\b", str(schema).split("->")[0])]


class _Values:
    """Values of a type, sound and unsound ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.replays = [torch.ops.torch_lazy.replay_new_pass(which) for which in (0, 1, 2, 0)]

    def integer(self):
        return self.random.choice([0, 1, 2, 3, 4, 8, -1, 64, 2**31, 2**62, -(2**63), *self.replays, *self.replays])

    def number(self):
        return self.random.choice([0.0, 0.5, 1.0, -1.0, 2.0, float("nan"), float("inf")])

    def tensor(self):
        sizes = self.random.choice([(), (0,), (3,), (2, 3), (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), (2, 0, 4, 8)])
        dtype = self.random.choice([torch.float32, torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
        x = torch.ones(sizes, dtype=dtype, device=self.random.choice(["lazy", "lazy", "lazy", "cpu"]))
        return x.mT if x.dim() > 1 and self.random.random() < 0.3 else x

    def of(self, kind):
        if kind.endswith("?"):
            return None if self.random.random() < 0.5 else self.of(kind[:-1])
        if found := re.fullmatch(r"(.*)\[(\d*)\]", kind):
            length = int(found[2]) if found[2] else self.random.randrange(5)
            return [self.of(found[1]) for _ in range(length)]
        return {"Tensor": self.tensor, "int": self.integer, "float": self.number, "bool": lambda: self.random.random() < 0.5,
                "Scalar": lambda: self.random.choice([self.integer(), self.number()])}[kind]()


def _call_with_anything(seed, rounds):
    import torch_lazy

    values, called, refused = _Values(seed), 0, 0
    schemas = _schemas()
    for _ in range(rounds):
        schema = values.random.choice(schemas)
        name = schema.name.split("::")[1]
        text = re.search(r"\((.*)\) ->", str(schema))[1]
        kinds = [re.sub(r"\(.*?\)", "", part.split()[0]) for part in re.split(r", (?![^(]*\))", text) if part]
        arguments = [values.of(kind) for kind in kinds]
        called += 1
        try:
            getattr(torch.ops.torch_lazy, name)(*arguments)
        except Exception:
            refused += 1
    for replay in values.replays:  # one that has begun takes what follows for its own
        try:
            torch.ops.torch_lazy.replay_abandon(replay)
        except IndexError:
            pass
    torch.ops.torch_lazy.set_device(0)
    try:
        torch_lazy.sync()
    except Exception:
        pass
    assert (torch.arange(4.0, device="lazy") * 2).tolist() == [0, 2, 4, 6]
    print(called, refused)


@pytest.mark.parametrize("compile", ["off", "sync"])
@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_operators_called_with_anything_end_no_process(compile, backend, tmp_path):
    folder = os.path.dirname(__file__)
    program = f"import sys; sys.path.insert(0, {folder!r}); import untrusted_model_test as t; t._call_with_anything(int(sys.argv[1]), 400)"
    for seed in range(2):
        done = _python(program, seed, LAZY_COMPILE=compile, LAZY_BACKEND=backend, LAZY_CACHE_DIR=str(tmp_path / "cache"))
        assert done.returncode == 0, (seed, done.stdout[-3000:])
        called, refused = map(int, done.stdout.split()[-2:])
        assert called == 400 and 0 < refused < 400


def _double(ops, replay, x):
    ops.replay_begin(replay, [x])
    y = x * 2
    ops.replay_end(replay, [x], [], [], [y], True)
    return y


def test_replays_are_refused_what_does_not_fit():
    import torch_lazy  # noqa: F401

    ops = torch.ops.torch_lazy
    x = torch.arange(4.0, device="lazy").requires_grad_()
    replay = ops.replay_new()
    ops.replay_begin(replay, [x.detach(), x.detach()])
    with pytest.raises(ValueError, match="began with 2 tensors ends with 1"):
        ops.replay_end(replay, [x.detach()], [], [], [x.detach() * 2], False)
    ops.replay_abandon(replay)
    forward, backward = ops.replay_new_pass(1), ops.replay_new_pass(2)
    for _ in range(3):
        _double(ops, forward, x)
    ops.replay_pair(forward, ops.replay_case(forward), [True] * 1000)
    assert ops.replay_ready(forward)
    with pytest.raises(ValueError, match="results, of which 1000"):
        ops.replay_apply(forward, backward, [x], [])
    with pytest.raises(ValueError, match="no pass 7"):
        ops.replay_new_pass(7)


def test_replays_of_others_cannot_be_named():
    import torch_lazy  # noqa: F401

    numbers = [torch.ops.torch_lazy.replay_new() for _ in range(100)]
    assert len(set(numbers)) == 100 and min(numbers) > 2**40


def test_arguments_of_our_operators():
    import torch_lazy  # noqa: F401

    ops, x = torch.ops.torch_lazy, torch.ones(2, 3, device="lazy")
    for threads, width, order, error in [(0, 1, [0, 1], "a number of threads"), (64, 3, [0, 1], "a width of"), (64, 1, [0, 0], "twice"),
                                         (64, 1, [0, 5], "no such dim"), (64, 1, [0], "an order of 2 dims")]:
        with pytest.raises(ValueError, match=error):
            ops.dropout(x, 0.5, 2.0, 2**31, 1, 0, threads, width, order)
    with pytest.raises(ValueError, match="one dim"):
        ops.arange(x, 0, 6, 1)
    with pytest.raises(ValueError, match="not as long"):
        ops.arange(torch.empty(3, device="lazy"), 0, 6, 1).cpu()
    q = torch.ones(1, 2, 8, 8, device="lazy")
    with pytest.raises(ValueError, match="4 dims"):
        ops.attention(x, q, q, None, 0, True, False, None)
    with pytest.raises(ValueError, match="no form 9"):
        ops.attention(q, q, q, None, 9, True, False, None)
    with pytest.raises(ValueError, match="seed goes with an offset"):
        ops.attention(q, q, q, None, 2, True, False, None, 0.5, 3, None)
