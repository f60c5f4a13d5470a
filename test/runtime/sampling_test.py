# SPDX-License-Identifier: Apache-2.0
"""Samples of computed probabilities: they are recorded with the work before them, and are eager's."""

import pytest
import torch
import torch.nn as nn
import torch_lazy
from torch_lazy import make_replayable

from child import in_child

ROWS, OUTCOMES, STEPS, WARM = 6, 11, 40, 4
MODES = [{"compile": "off", "disable": "at_once"}, {"compile": "sync"}, {"compile": "sync", "backend": "stand_in"}]
IDS = ["interpreted", "compiled", "stand_in"]


def _net(device):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, OUTCOMES)).to(device)


def _one(probabilities):
    return torch.multinomial(probabilities, 1, True)


def _some(probabilities):
    return torch.multinomial(probabilities, 4)


def _samples(device, sample, after_step=lambda step: None):
    """Each step's samples decide what the net is given in the next."""
    net = _net(device)
    torch.manual_seed(7)
    x = torch.ones(ROWS, 5).to(device)
    samples = []
    for step in range(STEPS):
        with torch.no_grad():
            picked = sample(net(x).softmax(-1))
            x = torch.sin(x + picked[:, :1])
        samples.append(picked.tolist())
        after_step(step)
    return samples, torch.get_rng_state().tolist()


def _cuts():
    return dict(torch_lazy.metrics()["cuts"])


def _sampled(sample):
    """(samples, state of the generator), cuts and calls at once of all steps but the first ones"""
    before = {}

    def note(step):
        if step == WARM - 1:
            before.update(_cuts(), at_once=torch_lazy.metrics()["calls_immediate"])

    result = _samples("lazy", sample, note)
    after = _cuts() | {"at_once": torch_lazy.metrics()["calls_immediate"]}
    return result, {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


@pytest.mark.parametrize("options", MODES, ids=IDS)
@pytest.mark.parametrize("sample", [_one, _some])
def test_a_step_is_cut_where_its_samples_are_read_alone(sample, options):
    (samples, state), counts = in_child(_sampled, sample, **options)
    assert counts == {"copy to host": STEPS - WARM, "at_once": STEPS - WARM}  # the numbers are drawn at once
    assert (samples, state) == _samples("cpu", sample)


def _unread(device):
    net = _net(device)
    torch.manual_seed(7)
    x = torch.ones(ROWS, 5).to(device)
    with torch.no_grad():
        for _ in range(STEPS):
            x = torch.sin(x + _one(net(x).softmax(-1)))
    return x.tolist()


def _cuts_unread():
    _unread("lazy")
    before = _cuts().get("immediate", 0)
    x = _unread("lazy")
    return x, _cuts().get("immediate", 0) - before


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_samples_that_nobody_reads_cut_nothing(options):
    x, cuts = in_child(_cuts_unread, **options)
    assert cuts == 0
    torch.testing.assert_close(torch.tensor(x), torch.tensor(_unread("cpu")))


BAD = {"negative": [0.5, -0.25, 0.5], "infinite": [0.5, torch.inf, 0.5], "no number": [0.5, torch.nan, 0.5], "none": [0, 0, 0]}
CALLS = {
    "one": lambda p: torch.multinomial(p, 1, True), "two": lambda p: torch.multinomial(p, 2),
    "of a row": lambda p: torch.multinomial(p[1], 1), "out": lambda p: torch.multinomial(
        p, 1, out=torch.empty(2, 1, dtype=torch.int64, device=p.device)),
}


def _errors(bad):
    """By call: where its error comes, and what it says."""
    good = torch.tensor([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    rows = good.clone()
    rows[1] = torch.tensor(bad)
    good, rows = good.to("lazy"), rows.to("lazy")
    errors = {}
    for name, call in CALLS.items():
        for _ in range(3):
            call(good * 1).tolist()
        samples = call(rows * 1)
        try:
            samples.tolist()
        except RuntimeError as error:
            errors[name] = str(error)
        assert good.mul(2).tolist() == [[0.5, 1, 0.5], [1, 0.5, 0.5]]  # the device goes on
    return errors


@pytest.mark.parametrize("options", MODES, ids=IDS)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_is_no_probability_is_refused_where_samples_are_read(bad, options):
    errors = in_child(_errors, bad, **options)
    for name, call in CALLS.items():
        with pytest.raises(RuntimeError) as eager:
            call(torch.tensor([[0.25, 0.5, 0.25], bad]))
        assert errors[name].startswith(str(eager.value).splitlines()[0]), name


REFUSED = {
    "no dims": (torch.tensor(1.0), 1), "three dims": (torch.ones(2, 2, 2), 1), "integers": (torch.ones(3).int(), 1),
    "no samples": (torch.ones(3), 0), "more than there are": (torch.ones(3), 4), "nothing to choose": (torch.ones(2, 0), 1, True),
}


def _refusals(device):
    errors = []
    for tensor, *numbers in REFUSED.values():
        state = torch.get_rng_state()
        with pytest.raises(Exception) as error:
            torch.multinomial(tensor.to(device), *numbers)
        assert torch.equal(torch.get_rng_state(), state)
        errors.append((error.typename, str(error.value).splitlines()[0]))
    return errors


def test_what_no_value_can_mend_is_refused_at_the_call():
    assert in_child(_refusals, "lazy", compile="sync") == _refusals("cpu")


def _assertions():
    def check(number):
        torch._assert_async(x.sum() == number)
        torch._assert_async(x.mean() == number, "they are not ones")

    x = torch.full((1,), 2.0, device="lazy")
    for _ in range(3):
        check(2)
    torch_lazy.sync()
    before = _cuts()
    check(2)
    torch._assert_async(x.mean() == 3, "they are not ones")
    check(4)
    assert _cuts() == before
    with pytest.raises(RuntimeError) as error:
        torch_lazy.sync()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value"):
        torch._assert_async(torch.ones(3, device="lazy"), "they are not ones")
    torch_lazy.sync()
    return str(error.value)


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_an_assertion_is_recorded_though_nobody_reads_it(options):
    assert in_child(_assertions, **options).startswith("they are not ones")


def _replayed(device, wrap):
    net = _net(device)
    runs = []

    def function(x):
        runs.append(x)
        with torch.no_grad():
            return _one(net(x).softmax(-1))

    step = wrap(function)
    torch.manual_seed(7)
    x = torch.ones(ROWS, 5).to(device)
    return [step(x).tolist() for _ in range(STEPS)], torch.get_rng_state().tolist(), len(runs)


def _replayed_on_lazy():
    _replayed("lazy", make_replayable)  # shapes are learnt
    return _replayed("lazy", make_replayable)


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_a_replay_draws_anew(options):
    *result, runs = in_child(_replayed_on_lazy, **options)
    assert runs == 2
    assert result == list(_replayed("cpu", lambda function: function)[:2])
    assert len({str(samples) for samples in result[0]}) > STEPS // 2


def _waits(device):
    """Values of steps too short to be recorded."""
    torch.manual_seed(3)
    p = torch.rand(2, OUTCOMES).to(device)
    return [_one(p * (1 + turn)).sum().item() for turn in range(200)]


def _calls_at_once():
    _waits("lazy")
    before = torch_lazy.metrics()["calls_immediate"]
    return _waits("lazy"), torch_lazy.metrics()["calls_immediate"] - before


def test_where_calls_run_at_once_a_sample_is_one():
    values, at_once = in_child(_calls_at_once, compile="off")
    assert values == _waits("cpu")
    assert 500 < at_once <= 3 * 200  # a few steps are recorded, to see whether they are compiled
