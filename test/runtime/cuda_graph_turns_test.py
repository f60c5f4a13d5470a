# SPDX-License-Identifier: Apache-2.0
"""One plan that runs on several sets of addresses in turn: models of one architecture, threads that share a model.

Graphs are emulated by backend stand_in, as in cuda_graph_plan_test.py.
"""

import os

os.environ["LAZY_BACKEND"] = "stand_in"

import copy  # noqa: E402
import random  # noqa: E402
import threading  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from child import in_child  # noqa: E402


def _net(seed=0, outputs=4):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, outputs)).to("lazy")


def _batch(step):
    return torch.sin(torch.arange(16.0).view(2, 8) * (step + 1)).to("lazy")


def _counts():
    metrics = torch_lazy.metrics()
    return metrics["efforts"]["cuda_graphs"]["tried"], metrics["graph_replays"], metrics["traces_run"]


class _Phases:
    """Of each phase of a program: captures, replays, and traces that ran."""

    def __init__(self):
        self.counts = []
        self._before = _counts()

    def end(self):
        torch_lazy.sync()
        now = _counts()
        self.counts.append(tuple(b - a for a, b in zip(self._before, now, strict=True)))
        self._before = now


def _run(program, *arguments):
    """The counts of a program, whose values are those that it has without graphs."""
    expected, _ = in_child(program, *arguments, compile="sync", disable="graphs")
    values, counts = in_child(program, *arguments, compile="sync")
    assert values == expected
    return counts


def _captures(counts):
    return sum(captures for captures, _, _ in counts)


def _train(net, optimizer, x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def _trained_in_turn(models, rounds):
    nets = [_net(k) for k in range(models)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1 * (k + 1), momentum=0.9) for k, net in enumerate(nets)]
    losses, phases = [], _Phases()
    for step in range(models * rounds):
        losses.append(_train(nets[step % models], optimizers[step % models], _batch(step)))
        phases.end()
    return losses, phases.counts


def _asked_in_turn(models, rounds):
    nets = [_net(k) for k in range(models)]
    values, phases = [], _Phases()
    with torch.no_grad():
        for step in range(models * rounds):
            values.append(nets[step % models](_batch(step)).tolist())
            phases.end()
    return values, phases.counts


@pytest.mark.parametrize("program, first_rounds", [(_trained_in_turn, 2), (_asked_in_turn, 1)])
@pytest.mark.parametrize("models", [2, 3, 5])
def test_models_in_turn_are_captured_once_each(program, first_rounds, models):
    counts = _run(program, models, 8)
    assert _captures(counts) == models
    captured = (first_rounds + 2) * models + 1  # each at its third run, but for the first ones, which learn shapes
    assert counts[captured:] == [(0, 1, 1)] * (8 * models - captured)


def _layers(count, steps):
    """Layers that are waited for share a plan."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to("lazy") for _ in range(count)]
    values, phases = [], _Phases()
    with torch.no_grad():
        for step in range(steps):
            x = _batch(step)
            for layer in layers:
                x = x + layer(x)
                values.append(x.abs().max().item())
            phases.end()
    return values, phases.counts


def test_layers_that_are_waited_for():
    counts = _run(_layers, 6, 8)
    assert _captures(counts) == 6
    assert counts[4:] == [(0, 6, 6)] * 4


def _cycle(steps):
    """Two generators and two critics, as a CycleGAN has."""
    generators, critics = [_net(0, 8), _net(1, 8)], [_net(2, 1), _net(3, 1)]
    makers = [torch.optim.Adam(net.parameters(), 1e-2) for net in generators]
    judges = [torch.optim.Adam(net.parameters(), 1e-2) for net in critics]
    losses, phases = [], _Phases()
    for step in range(steps):
        for k in range(2):
            real, other = _batch(2 * step + k), _batch(2 * step + 1 - k)
            fake = generators[k](other)
            judged = F.softplus(-critics[k](real)).mean() + F.softplus(critics[k](fake.detach())).mean()
            judges[k].zero_grad()
            judged.backward()
            judges[k].step()
            made = F.softplus(-critics[k](fake)).mean()
            makers[k].zero_grad()
            made.backward()
            makers[k].step()
            losses.append((judged.item(), made.item()))
        phases.end()
    return losses, phases.counts


def test_a_gan_of_two_pairs():
    counts = _run(_cycle, 12)
    assert _captures(counts) == 2
    assert counts[5:] == [(0, 2, 2)] * 7


def _teacher_and_student(steps, every, batches):
    student = _net()
    teacher = copy.deepcopy(student)
    optimizer = torch.optim.SGD(student.parameters(), 0.1, momentum=0.9)
    values, phases = [], _Phases()
    for step in range(steps):
        with torch.no_grad():
            target = teacher(_batch(step + 1)) + 0.1
        loss = F.mse_loss(student(_batch(step)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        values.append(loss.item())
        if step % every == every - 1:
            phases.end()
            for net in student, teacher:
                with torch.no_grad():
                    values += [net(_batch(k)).tolist() for k in range(batches)]
                phases.end()
    return values, phases.counts


def test_a_student_and_an_average_of_it():
    """Both are captured in their first evaluation, and replayed in each later one."""
    counts = _run(_teacher_and_student, 40, 8, 6)
    assert counts[1:3] == [(1, 4, 6), (1, 4, 6)]
    assert counts[3:] == [(0, 8, 8), (0, 6, 6), (0, 6, 6)] * 4


def _held_in_turn(steps):
    """All results are held. One is written, and read by the other model, while its own model goes on."""
    nets = [_net(k, 8) for k in range(2)]
    held, phases = [], _Phases()
    with torch.no_grad():
        for step in range(steps):
            y = nets[step % 2](held[-1] if step % 4 == 3 else _batch(step))
            torch_lazy.sync()
            held.append(y)
            if step % 5 == 4:
                held[-3].add_(1)
        phases.end()
    return [y.tolist() for y in held], phases.counts


def test_results_outlive_replays_of_both():
    ((captures, replays, _),) = _run(_held_in_turn, 60)
    assert captures >= 2 and replays > 40


def _replaced_once():
    nets, inputs = [_net(k) for k in range(2)], []
    values, phases = [], _Phases()
    with torch.no_grad():
        for step in range(24):
            inputs.append(_batch(step))  # which lie elsewhere each time
            if step == 13:
                for value in nets[1].parameters():
                    value.data = value.data * 0.5  # new memory
                phases.end()
            values.append(nets[step % 2](inputs[-1]).tolist())
        phases.end()
    return values, phases.counts


def test_weights_that_are_replaced_are_captured_anew_and_no_others():
    counts = _run(_replaced_once)
    assert [captures for captures, _, _ in counts] == [2, 1]


def _swapped(steps):
    """Two models change their weights, as an average does around an evaluation."""
    nets = [_net(k) for k in range(2)]
    values, phases = [], _Phases()
    with torch.no_grad():
        for step in range(steps):
            if step % 6 == 5:
                for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
                    a.data, b.data = b.data, a.data
                phases.end()
            values.append(nets[0](_batch(step)).tolist())
        phases.end()
    return values, phases.counts


def test_weights_that_are_swapped():
    counts = _run(_swapped, 47)
    assert [captures for captures, _, _ in counts] == [1, 1] + [0] * 6
    assert counts[2:] == [(0, 6, 6)] * 6


# --- what does not come back ---


def _fresh_models(steps, keep):
    """A new model each time; `keep`: all are there from the beginning."""
    nets = [_net(step) for step in range(steps)] if keep else None
    values, phases = [], _Phases()
    for step in range(steps):
        net = nets[step] if keep else _net(step)
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        values += [_train(net, optimizer, _batch(step)) for _ in range(2)]
    phases.end()
    return values, phases.counts


def test_models_that_do_not_come_back_are_not_captured():
    assert _captures(_run(_fresh_models, 40, True)) == 0


def _inputs(count, steps, keep):
    """Three launches, each for all inputs, which are new in each step, or were all there before."""

    def make(step):
        return [torch.full((8, 16), float(k + step), device="lazy") for k in range(count)]

    kept = [make(step) for step in range(steps)] if keep else []
    torch_lazy.sync()
    values, phases = [], _Phases()
    for step in range(steps):
        inputs = kept[step] if keep else make(step)
        torch_lazy.sync()
        centred = [x - x.mean(0) for x in inputs]
        values.append(torch.stack([torch.softmax(x, 1).sum(0) for x in centred]).tolist())
        kept.append(inputs)
    phases.end()
    return values, phases.counts


@pytest.mark.parametrize("keep", [False, True])
def test_inputs_that_do_not_come_back_are_not_captured(keep):
    assert _captures(_run(_inputs, 12, 100, keep)) == 0


def test_a_few_inputs_that_do_not_come_back_are_copied():
    """One CUDA graph that copies them: at once where they are new, and else once they had time to come back."""
    ((captures, replays, _),) = _run(_inputs, 1, 100, False)
    assert captures == 1 and replays > 90
    ((captures, replays, _),) = _run(_inputs, 1, 100, True)
    assert captures == 1 and replays > 30


def _data_on_the_device(batches, epochs):
    """Batches that are there all the time are copied: each with the weights is no set of its own."""
    net, data = _net(), [_batch(step) for step in range(batches)]
    values, phases = [], _Phases()
    with torch.no_grad():
        for _ in range(epochs):
            values += [net(x).tolist() for x in data]
            phases.end()
    return values, phases.counts


def test_batches_on_the_device_are_no_models():
    counts = _run(_data_on_the_device, 10, 3)
    assert [captures for captures, _, _ in counts] == [1, 0, 0]
    assert counts[1:] == [(0, 10, 10)] * 2


# --- memory ---

COLUMNS, ROOM_FOR = 49152, 24  # 64 rows of them are 12 MB, and beyond 24 graphs no more than 128 MB are kept


def _large_models(models, rounds):
    torch.manual_seed(0)
    wide = [torch.randn(8, COLUMNS, device="lazy") for _ in range(models)]
    narrow = [torch.randn(8, 8, device="lazy") for _ in range(models)]
    values, phases = [], _Phases()
    for step in range(rounds):
        for k in range(models):
            x = torch.relu(torch.full((64, 8), 0.1 * step + 0.1, device="lazy") @ narrow[k])
            y = torch.relu(x @ wide[k])
            torch_lazy.sync()
            values.append(y[0, k].item())
            del y
        phases.end()
    return values, phases.counts


def test_models_without_room_run_by_launches():
    counts = _run(_large_models, 28, 6)
    assert _captures(counts) == ROOM_FOR
    assert [replays for _, replays, _ in counts[-2:]] == [ROOM_FOR] * 2


def _one_and_then_another(steps):
    """Bytes that there are after each."""
    nets, live, phases = [_net(k) for k in range(2)], [], _Phases()
    with torch.no_grad():
        for net in nets:
            for _ in range(steps):
                y = net(torch.ones(64, 8, device="lazy"))
                torch_lazy.sync()
                del y
            live.append(torch_lazy.metrics()["bytes_live"])
            phases.end()
    return live, phases.counts


def test_a_model_that_is_used_no_more_lets_go_of_its_memory():
    live, counts = in_child(_one_and_then_another, 1300, compile="sync")
    assert [captures for captures, _, _ in counts] == [1, 1]
    assert live[0] == live[1]
    short, counts = in_child(_one_and_then_another, 13, compile="sync")
    assert [captures for captures, _, _ in counts] == [1, 1]
    assert short[0] == live[0] and short[1] > live[1]


# --- threads ---


def _in_threads(threads, steps, models):
    """Threads ask the models, each in step with the others."""
    nets = [_net(k) for k in range(models)]
    values, inputs, counts = [[] for _ in range(threads)], [], []
    barrier = threading.Barrier(threads, action=lambda: counts.append(_counts()))

    def work(number):
        with torch.no_grad():
            for step in range(steps):
                barrier.wait()
                x = _batch(step + number)
                inputs.append(x)  # so that the next one lies elsewhere
                values[number].append(nets[number % models](x).tolist())

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts.append(_counts())
    return values, [tuple(b - a for a, b in zip(x, y, strict=True)) for x, y in zip(counts, counts[1:], strict=False)]


@pytest.mark.parametrize("threads, models", [(2, 1), (4, 1), (4, 2)])
def test_threads_with_one_model_have_a_graph_each(threads, models):
    counts = _run(_in_threads, threads, 16, models)
    assert _captures(counts) == threads
    assert [replays for _, replays, _ in counts[-8:]] == [threads] * 8


def _short_threads(count):
    net, values = _net(), []

    def work(number):
        with torch.no_grad():
            values.append(net(_batch(number)).tolist())

    for number in range(count):
        worker = threading.Thread(target=work, args=(number,))
        worker.start()
        worker.join()
    return values, [_counts()]


def test_threads_that_end_do_not_refuse_graphs():
    """A thread for each run: one may get the number of one that has ended, and its CUDA graph."""
    counts = _run(_short_threads, 40)
    assert _captures(counts) <= 40 / 3


# --- all of this, at random ---


def _at_random(seed, steps):
    choose = random.Random(seed)
    nets = [_net(k, 8) for k in range(3)]
    optimizers = [torch.optim.SGD(net.parameters(), 0.05, momentum=0.5) for net in nets]
    held, values, phases = [_batch(0)], [], _Phases()
    for step in range(steps):
        k, event = choose.choice([step % 2, step % 2, choose.randrange(3)]), choose.randrange(24)
        if choose.random() < 0.5:
            values.append(_train(nets[k], optimizers[k], _batch(step)))
        with torch.no_grad():
            held.append(nets[k](choose.choice([_batch(step), held[-1], held[choose.randrange(len(held))]])))
            if event < 6:
                values.append(held.pop(choose.randrange(len(held) - 1)).tolist())
            elif event == 6:
                for a, b in zip(nets[k].parameters(), nets[choose.randrange(3)].parameters(), strict=True):
                    a.data, b.data = b.data, a.data
            elif event == 7:
                nets[k][2].weight.data = nets[k][2].weight.data * 0.5
            elif event == 8:
                del held[:-1]
            elif event == 9:
                held[choose.randrange(len(held))].mul_(0.5)
            elif event == 10:
                for a, b in zip(nets[k].parameters(), nets[choose.randrange(3)].parameters(), strict=True):
                    a.lerp_(b, 0.25)
            elif event == 11:
                values.append(held[choose.randrange(len(held))].data_ptr() == 0)
        if choose.random() < 0.8:
            torch_lazy.sync()
    phases.end()
    return (values, [value.tolist() for net in nets for value in net.parameters()], [y.tolist() for y in held]), phases.counts


@pytest.mark.parametrize("seed", range(6))
def test_models_at_random(seed):
    ((captures, replays, _),) = _run(_at_random, seed, 300)
    assert captures > 2 and replays > 4 * captures


def _evaluated_seldom():
    """Losses; captures, replays and traces that ran in each evaluation, which comes after 80 steps."""
    net, other = _net(), _net(1, outputs=3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses, counts = [], []
    for step in range(6):
        losses += [_train(net, optimizer, _batch(k)) for k in range(80)]
        torch_lazy.sync()
        phases = _Phases()
        losses.append(other(_batch(step)).square().mean().item())
        phases.end()
        counts += phases.counts
    return losses, counts


def test_what_runs_seldom_amid_replays_is_captured_at_its_third_run():
    """A prompt, say, before tokens that are replayed."""
    counts = _run(_evaluated_seldom)
    assert counts == [(0, 0, 1)] * 2 + [(1, 1, 1)] + [(0, 1, 1)] * 3


def _gradients_of_threads():
    """Losses of replicas that add up their gradients. A backward pass asks for memory that nobody writes."""
    net, losses, phases = _net(3), [], _Phases()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def work(k):
        loss = F.mse_loss(net(_batch(k)), torch.ones(2, 4).to("lazy") * (k % 4))
        return torch.autograd.grad(loss, list(net.parameters())), loss.item()

    for step in range(12):
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(work, range(4 * step, 4 * step + 4)))
        for i, weight in enumerate(net.parameters()):
            weight.grad = sum(gradients[i] for gradients, _ in results) / 4
        optimizer.step()
        losses += [round(loss, 4) for _, loss in results]
        phases.end()
    return losses, phases.counts


def test_threads_that_compute_gradients():
    assert sum(replays for _, replays, _ in _run(_gradients_of_threads)) > 0
