# SPDX-License-Identifier: Apache-2.0
"""Random numbers: the same seed gives eager's numbers, digit for digit, however often the same trace runs."""

import copy
import functools
import pickle

import pytest
import torch
import torch.nn.functional as F
import torch_lazy
from torch.utils.checkpoint import checkpoint

# Operators by what they need besides a generator. Each is a function of (device, keywords), where the keywords may hold
# a generator of the device.
PROBABILITIES = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25]])
WEIGHTS = torch.linspace(0.01, 1, 480).view(8, 60)
MEANS = torch.linspace(-2, 2, 40)
RATES = torch.linspace(0.1, 30, 40)


def fresh(device, dtype=torch.float32):
    return torch.empty(5, 13, device=device, dtype=dtype)


WITH_GENERATOR = {
    "bernoulli": lambda d, **g: PROBABILITIES.to(d).bernoulli(**g),
    "bernoulli.p": lambda d, **g: PROBABILITIES.to(d).bernoulli(0.3, **g),
    "bernoulli.out": lambda d, **g: torch.bernoulli(PROBABILITIES.to(d), out=torch.empty(2, 3, device=d), **g),
    "bernoulli_.float": lambda d, **g: fresh(d).bernoulli_(0.3, **g),
    "bernoulli_.float of bool": lambda d, **g: fresh(d, torch.bool).bernoulli_(0.3, **g),
    "bernoulli_.Tensor": lambda d, **g: torch.empty(2, 3, device=d).bernoulli_(PROBABILITIES.to(d), **g),
    "binomial": lambda d, **g: torch.binomial(torch.full((2, 3), 9.0, device=d), PROBABILITIES.to(d), **g),
    "cauchy_": lambda d, **g: fresh(d).cauchy_(1, 2, **g),
    "exponential_": lambda d, **g: fresh(d).exponential_(1.5, **g),
    "geometric_": lambda d, **g: fresh(d).geometric_(0.3, **g),
    "log_normal_": lambda d, **g: fresh(d).log_normal_(0.5, 2, **g),
    "multinomial": lambda d, **g: torch.multinomial(PROBABILITIES.to(d), 8, replacement=True, **g),
    "multinomial of one": lambda d, **g: torch.multinomial(WEIGHTS.to(d) * 2, 1, True, **g),
    "multinomial of a row": lambda d, **g: torch.multinomial(WEIGHTS[0].to(d) * 2, 1, **g),
    "multinomial of float64": lambda d, **g: torch.multinomial(WEIGHTS.double().to(d) * 2, 1, **g),
    "multinomial of bfloat16": lambda d, **g: torch.multinomial(WEIGHTS.bfloat16().to(d) * 2, 1, **g),
    "multinomial of float16": lambda d, **g: torch.multinomial(WEIGHTS.half().to(d) * 2, 7, **g),
    "multinomial of a transposed tensor": lambda d, **g: torch.multinomial(WEIGHTS.to(d).t() * 2, 1, **g),
    "multinomial of an expanded tensor": lambda d, **g: torch.multinomial(
        (WEIGHTS[0].to(d) * 2).expand(9, 60), 3, **g),
    "multinomial of every second": lambda d, **g: torch.multinomial((WEIGHTS.to(d) * 2)[:, ::2], 1, **g),
    "multinomial of many": lambda d, **g: torch.multinomial(torch.linspace(0, 1, 40000).view(4, -1).to(d) * 2, 1, **g),
    "multinomial without replacement": lambda d, **g: torch.multinomial(WEIGHTS.to(d) * 2, 5, **g),
    "multinomial of all": lambda d, **g: torch.multinomial(PROBABILITIES.to(d) * 2, 3, **g),
    "multinomial of none": lambda d, **g: torch.multinomial(torch.ones(0, 3, device=d), 2, **g),
    "multinomial.out of one": lambda d, **g: torch.multinomial(
        WEIGHTS.to(d) * 2, 1, out=torch.empty(0, dtype=torch.int64, device=d), **g),
    "multinomial.out of a row": lambda d, **g: torch.multinomial(
        WEIGHTS[3].to(d) * 2, 1, out=torch.full((1,), 7, device=d), **g),
    "multinomial.out without replacement": lambda d, **g: torch.multinomial(
        WEIGHTS.to(d) * 2, 4, out=torch.full((8, 9), 7, device=d)[:, ::2], **g),
    "multinomial.out": lambda d, **g: torch.multinomial(
        PROBABILITIES.to(d), 4, replacement=True, out=torch.empty(2, 4, dtype=torch.int64, device=d), **g),
    "normal.Tensor_float": lambda d, **g: torch.normal(MEANS.to(d), 2.0, **g),
    "normal.Tensor_float_out": lambda d, **g: torch.normal(MEANS.to(d), 2.0, out=torch.empty(40, device=d), **g),
    "normal.float_Tensor": lambda d, **g: torch.normal(1.0, RATES.to(d), **g),
    "normal.float_Tensor_out": lambda d, **g: torch.normal(1.0, RATES.to(d), out=torch.empty(40, device=d), **g),
    "normal.Tensor_Tensor": lambda d, **g: torch.normal(MEANS.to(d), RATES.to(d), **g),
    "normal.Tensor_Tensor_out": lambda d, **g: torch.normal(MEANS.to(d), RATES.to(d), out=torch.empty(40, device=d), **g),
    "normal.float_float": lambda d, **g: torch.normal(1.0, 2.0, (3, 11), device=d, **g),
    "normal.float_float_out": lambda d, **g: torch.normal(1.0, 2.0, (3, 11), out=torch.empty(3, 11, device=d), **g),
    "normal_": lambda d, **g: fresh(d).normal_(1, 2, **g),
    "normal_ of a view": lambda d, **g: torch.zeros(13, 5, device=d).t()[::2].normal_(1, 2, **g),
    "normal_ of complex": lambda d, **g: fresh(d, torch.complex64).normal_(**g),
    "normal_functional": lambda d, **g: torch.ops.aten.normal_functional(torch.zeros(9, device=d), 1.0, 2.0, **g),
    "poisson": lambda d, **g: torch.poisson(RATES.to(d), **g),
    "rand": lambda d, **g: torch.rand(3, 11, device=d, **g),
    "rand.out": lambda d, **g: torch.rand(3, 11, out=torch.empty(3, 11, device=d), **g),
    "rand of float64": lambda d, **g: torch.rand(3, 11, dtype=torch.float64, device=d, **g),
    "rand of bfloat16": lambda d, **g: torch.rand(3, 11, dtype=torch.bfloat16, device=d, **g),
    "rand_like": lambda d, **g: torch.rand_like(torch.empty(4, 5, device=d).t(), **g),
    "randint": lambda d, **g: torch.randint(100, (3, 11), device=d, **g),
    "randint.low": lambda d, **g: torch.randint(-5, 2**40, (3, 11), device=d, **g),
    "randint.out": lambda d, **g: torch.randint(-5, 5, (3, 11), out=torch.empty(3, 11, device=d), **g),
    "randint_like": lambda d, **g: torch.randint_like(fresh(d), -3, 9, **g),
    "randn": lambda d, **g: torch.randn(3, 11, device=d, **g),
    "randn of many": lambda d, **g: torch.randn(10007, device=d, **g),
    "randn of complex": lambda d, **g: torch.randn(3, 11, dtype=torch.complex128, device=d, **g),
    "randn.out": lambda d, **g: torch.randn(3, 11, out=torch.empty(3, 11, device=d), **g),
    "randn_like": lambda d, **g: torch.randn_like(fresh(d), **g),
    "random_": lambda d, **g: fresh(d, torch.int64).random_(**g),
    "random_.to": lambda d, **g: fresh(d).random_(77, **g),
    "random_.from": lambda d, **g: fresh(d, torch.int32).random_(-7, 77, **g),
    "randperm": lambda d, **g: torch.randperm(19, device=d, **g),
    "randperm.out": lambda d, **g: torch.randperm(19, out=torch.empty(19, dtype=torch.int64, device=d), **g),
    "rrelu_with_noise": lambda d, **g: torch.ops.aten.rrelu_with_noise(
        MEANS.to(d), torch.empty(40, device=d), 0.1, 0.4, True, **g),
    "rrelu_with_noise_": lambda d, **g: torch.ops.aten.rrelu_with_noise_(
        MEANS.to(d).clone(), torch.empty(40, device=d), 0.1, 0.4, True, **g),
    "rrelu_with_noise_functional": lambda d, **g: torch.ops.aten.rrelu_with_noise_functional(
        MEANS.to(d), torch.zeros(40, device=d), 0.1, 0.4, True, **g),
    "_sample_dirichlet": lambda d, **g: torch._sample_dirichlet(RATES.view(4, 10).to(d), **g),
    "_standard_gamma": lambda d, **g: torch._standard_gamma(RATES.to(d), **g),
    "uniform_": lambda d, **g: fresh(d).uniform_(-1, 3, **g),
    "uniform_ of float16": lambda d, **g: fresh(d, torch.float16).uniform_(-1, 3, **g),
}


def with_gradient(function, dtype=torch.float32):
    """Both the result and the gradient of a function of one tensor."""
    def run(device):
        x = torch.linspace(-3, 5, 2 * 6 * 4 * 4, dtype=torch.float64).to(dtype).view(2, 6, 4, 4).to(device).requires_grad_()
        y = function(x)
        return y.detach(), *torch.autograd.grad(y.square().sum(), x)
    return run


def attention(x):
    return F.scaled_dot_product_attention(x, x * 0.5, x * 0.25, dropout_p=0.3)


def recurrent(kind):
    def run(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            module = kind(4, 3, num_layers=2, dropout=0.4).to(x.device)
        return module(x.flatten(0, 1))[0]
    return run


DROPOUTS = {
    "dropout": with_gradient(lambda x: F.dropout(x, 0.3)),
    "dropout of bfloat16": with_gradient(lambda x: F.dropout(x, 0.1), torch.bfloat16),
    "dropout of float16": with_gradient(lambda x: F.dropout(x, 0.7), torch.float16),
    "dropout of float64": with_gradient(lambda x: F.dropout(x, 0.1), torch.float64),
    "dropout of a transposed tensor": with_gradient(lambda x: F.dropout(x.transpose(0, 2), 0.1)),
    "dropout of all": with_gradient(lambda x: F.dropout(x, 1.0)),
    "dropout of none": with_gradient(lambda x: F.dropout(x, 0.0)),
    "dropout in evaluation": with_gradient(lambda x: F.dropout(x, 0.5, training=False)),
    "dropout of infinity": lambda d: F.dropout(torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0] * 4).to(d), 0.5),
    "dropout_": with_gradient(lambda x: F.dropout(x * 2, 0.3, inplace=True)),
    "native_dropout": lambda d: torch.native_dropout(torch.ones(5, 7, device=d), 0.4, True),
    "feature_dropout": with_gradient(lambda x: F.dropout2d(x, 0.3)),
    "feature_dropout_": with_gradient(lambda x: F.dropout2d(x * 2, 0.3, inplace=True)),
    "alpha_dropout": with_gradient(lambda x: F.alpha_dropout(x, 0.3, training=True)),
    "alpha_dropout_": with_gradient(lambda x: F.alpha_dropout(x * 2, 0.3, training=True, inplace=True)),
    "feature_alpha_dropout": with_gradient(lambda x: F.feature_alpha_dropout(x, 0.3, training=True)),
    "feature_alpha_dropout_": with_gradient(lambda x: F.feature_alpha_dropout(x * 2, 0.3, training=True, inplace=True)),
    "rrelu": with_gradient(lambda x: F.rrelu(x, training=True)),
    "rrelu_": with_gradient(lambda x: F.rrelu(x * 2, training=True, inplace=True)),
    "fractional_max_pool2d": with_gradient(lambda x: F.fractional_max_pool2d(x, 2, output_size=2)),
}

# With functions beside that eager computes to other last digits than a compiled kernel.
DROPOUTS_AMONG_OTHERS = {
    "gumbel_softmax": with_gradient(F.gumbel_softmax),
    "scaled_dot_product_attention": with_gradient(attention),
    "lstm": with_gradient(recurrent(torch.nn.LSTM)),
    "gru": with_gradient(recurrent(torch.nn.GRU)),
    "rnn_tanh": with_gradient(recurrent(torch.nn.RNN)),
    "rnn_relu": with_gradient(recurrent(functools.partial(torch.nn.RNN, nonlinearity="relu"))),
}

ALL = WITH_GENERATOR | DROPOUTS | DROPOUTS_AMONG_OTHERS

# What else of ATen draws; each has its reason not to be called here.
NOT_CALLED = {
    "_fused_sdp_choice": "chooses, and draws nothing",
    "_scaled_dot_product_attention_math": "called by scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "refuses dropout",
    "_scaled_dot_product_fused_attention_overrideable": "has no kernel on the CPU",
    "initial_seed": "TorchScript's", "manual_seed": "TorchScript's", "seed": "TorchScript's",
    "_no_grad_normal_": "TorchScript's", "_no_grad_uniform_": "TorchScript's",
}


def generator(device, seed=11):
    return torch.Generator(device=device).manual_seed(seed)


def drawn(name, device, own_generator):
    """Three runs of the same trace."""
    torch.manual_seed(7)
    keywords = {"generator": generator(device)} if own_generator else {}
    results = []
    for _ in range(3):
        result = ALL[name](device, **keywords)
        torch_lazy.sync()
        results += result if isinstance(result, tuple) else [result]
    return results


def differences(names, own_generator=False):
    for name in names:
        tolerance = {"rtol": 1e-5, "atol": 1e-6} if name in DROPOUTS_AMONG_OTHERS else {"rtol": 0, "atol": 0}
        for actual, expected in zip(drawn(name, "lazy", own_generator), drawn(name, "cpu", own_generator), strict=True):
            try:
                assert actual.stride() == expected.stride()
                torch.testing.assert_close(actual.cpu(), expected, equal_nan=True, **tolerance)
            except AssertionError as error:
                yield f"{name}: {error}"


def test_every_operator_draws_eagers_numbers_each_time(compile_mode):
    assert list(differences(ALL)) == []


def test_ones_own_generator_draws_its_cpu_twins_numbers(compile_mode):
    assert list(differences(WITH_GENERATOR, own_generator=True)) == []


def test_no_operator_that_draws_is_forgotten():
    """Schemas with a generator or tagged as random, with a kernel that lazy tensors reach."""
    called = {name.split()[0].split(".")[0].rstrip("_") for name in ALL} | NOT_CALLED.keys()
    keys = ["CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"]
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or schema.overload_name.endswith("out") or "names" in schema.overload_name:
            continue
        name, overload = schema.name.removeprefix("aten::"), schema.overload_name
        if name.rstrip("_") in called or name in called:
            continue
        full_name = f"{schema.name}.{overload}" if overload else schema.name
        is_random = any("Generator" in str(argument.type) for argument in schema.arguments) or (
            hasattr(torch.ops.aten, name) and torch.Tag.nondeterministic_seeded
            in getattr(getattr(torch.ops.aten, name), overload or "default").tags)
        assert not is_random or not any(torch._C._dispatch_has_kernel_for_dispatch_key(full_name, key) for key in keys), full_name


# Their results may be the same twice.
FEW_OUTCOMES = {"dropout of all", "dropout of none", "dropout in evaluation", "multinomial of all",
                "multinomial of none", "multinomial of a row", "multinomial.out of a row",
                "fractional_max_pool2d"}


def test_a_trace_that_runs_again_draws_anew(compile_mode):
    for name in ALL.keys() - FEW_OUTCOMES:
        results = drawn(name, "lazy", own_generator=False)
        first, second, third = (result.tolist() for result in results[:: len(results) // 3])
        assert first != second and second != third and first != third, name


def test_both_seeds_set_the_one_state():
    for seed in (torch.manual_seed, torch.lazy.manual_seed, torch.lazy.manual_seed_all):
        seed(41)
        numbers = torch.rand(5, device="lazy").cpu()
        torch.manual_seed(41)
        assert torch.equal(torch.rand(5), numbers)
        assert torch.lazy.initial_seed() == torch.initial_seed() == 41
    torch.lazy.seed()
    assert torch.lazy.initial_seed() == torch.initial_seed() != 41


def test_numbers_of_both_devices_are_one_sequence():
    torch.manual_seed(3)
    expected = [torch.rand(3), torch.randn(3), torch.rand(3)]
    torch.manual_seed(3)
    actual = [torch.rand(3), torch.randn(3, device="lazy").cpu(), torch.rand(3)]
    assert all(map(torch.equal, actual, expected))


def draw(generator):
    return torch.randn(4, device=generator.device, generator=generator).cpu()


def test_a_generator_of_ones_own_has_a_state(compile_mode):
    mine = generator("lazy", 5)
    assert mine.device == torch.device("lazy:0") and mine.initial_seed() == 5
    state, first = mine.get_state(), draw(mine)
    assert torch.equal(first, draw(generator("cpu", 5)))
    assert torch.equal(mine.clone_state().get_state(), mine.get_state())
    second = draw(mine)
    mine.set_state(state)
    assert torch.equal(draw(mine), first) and torch.equal(draw(mine), second)
    assert torch.equal(generator("cpu", 5).get_state(), state)
    mine.seed()
    assert not torch.equal(draw(mine), first)
    assert not torch.equal(torch.Generator("lazy").manual_seed(6).get_state(), state)


def test_a_generator_is_copied_with_its_state():
    mine = generator("lazy", 5)
    draw(mine)
    copies = [copy.deepcopy(mine), pickle.loads(pickle.dumps(mine)), mine.clone_state()]
    numbers = draw(mine)
    assert all(other.device == mine.device and torch.equal(draw(other), numbers) for other in copies)


def test_a_generator_of_another_device_is_refused():
    for mine, theirs in (("lazy", "cpu"), ("cpu", "lazy")):
        with pytest.raises(RuntimeError, match=f"Expected a '{mine}' device type for generator but found '{theirs}'"):
            torch.zeros(3, device=mine).uniform_(generator=torch.Generator(theirs))


def test_the_devices_state_can_be_kept():
    state, first = torch.lazy.get_rng_state(), torch.rand(3, device="lazy").cpu()
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    for restore in (torch.lazy.set_rng_state, torch.set_rng_state, lambda s: torch.lazy.set_rng_state(s, "lazy:0"),
                    lambda s: torch.lazy.set_rng_state_all([s])):
        restore(state)
        assert torch.equal(torch.rand(3, device="lazy").cpu(), first)
    torch.lazy.set_rng_state(torch.lazy.get_rng_state_all()[0])


@pytest.mark.parametrize("devices", [None, ["lazy:0"], [0], []])
def test_fork_rng_leaves_no_trace(devices):
    torch.manual_seed(9)
    expected = torch.rand(3, device="lazy").cpu()
    torch.manual_seed(9)
    with torch.random.fork_rng(devices=devices, device_type="lazy"):
        torch.lazy.manual_seed(1)
        torch.rand(5, device="lazy")
    assert torch.equal(torch.rand(3, device="lazy").cpu(), expected)


def steps_with_checkpoints(device, **keywords):
    """Gradients of four steps of a network with dropout, whose forward pass is drawn again in the backward pass."""
    torch.manual_seed(2)
    network = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Dropout(0.4), torch.nn.Linear(16, 3))
    network, x = network.to(device), torch.randn(8, 6).to(device).requires_grad_()
    for _ in range(4):
        y = checkpoint(network, x, **keywords) if keywords else network(x)
        y.square().sum().backward()  # which adds to the gradients of the former step
        yield from (leaf.grad.cpu().clone() for leaf in (x, *network.parameters()))
        yield torch.rand(2, device=device).cpu()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_draws_the_same_numbers_again(compile_mode, use_reentrant):
    plain, cpu = list(steps_with_checkpoints("lazy")), list(steps_with_checkpoints("cpu"))
    checkpointed = list(steps_with_checkpoints("lazy", use_reentrant=use_reentrant, preserve_rng_state=True))
    for a, b, e in zip(plain, checkpointed, cpu, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, e)
    # Without the state, the second pass draws other numbers.
    other = list(steps_with_checkpoints("lazy", use_reentrant=use_reentrant, preserve_rng_state=False))
    assert not torch.equal(other[0], plain[0])
