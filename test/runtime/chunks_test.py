# SPDX-License-Identifier: Apache-2.0
"""Steps that are new as a whole each time, and of known parts: they are cut into chunks (lazy/trace/chunks.h)."""

import random

import pytest
import torch
import torch_lazy

from child import in_child

STEPS, LAYERS, WIDTH = 36, 24, 6


def _attends(x, w):
    scores = torch.softmax(x @ w @ x.mT, -1)
    return x + torch.tanh(scores @ x @ w) * 0.1


def _gates(x, w):
    gate, value = torch.sigmoid(x @ w), torch.relu(x - 0.1)
    return x * 0.9 + (gate * value).sub(0.01).div(2.0)


def _normalizes(x, w):
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + 1e-3).sqrt() + 0.1 * torch.exp(-(x @ w).abs())


def _program(device, plan, rows=lambda step: 9, steps=STEPS):
    """Training a model whose layers are other ones in each step; yields the loss of each step. rows(step): of its input."""
    torch.manual_seed(0)
    layers = [(layer, torch.randn(WIDTH, WIDTH).to(device).requires_grad_()) for layer in (_attends, _gates, _normalizes)]
    for step in range(steps):
        torch.manual_seed(rows(step))
        y = torch.randn(rows(step), WIDTH).to(device)
        for kind in plan(step):
            layer, w = layers[kind]
            y = layer(y, w)
        loss = y.square().mean()
        loss.backward()
        with torch.no_grad():
            for _, w in layers:
                if w.grad is not None:
                    w -= 0.01 * w.grad
                w.grad = None
        yield loss.item()


def _shuffled(step):
    return random.Random(step).choices(range(3), k=LAYERS)


def _always(step):
    return [0, 1, 2] * (LAYERS // 3)


def _run(plan):
    """Of each step: the loss, traces that were not known, kernels made, chunks cut."""
    seen, before = [], torch_lazy.metrics()
    for loss in _program("lazy", plan):
        now = torch_lazy.metrics()
        made = [metrics["kernels_compiled"] + metrics["kernels_from_disk"] for metrics in (before, now)]
        chunks = [metrics["cuts"].get("chunk", 0) for metrics in (before, now)]
        seen.append((loss, now["trace_misses"] - before["trace_misses"], made[1] - made[0], chunks[1] - chunks[0]))
        before = now
    return [list(column) for column in zip(*seen, strict=True)]


def test_most_chunks_are_soon_known():
    losses, unknown, made, chunks = in_child(_run, _shuffled, compile="sync")
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(in_child(lambda: list(_program("cpu", _shuffled)))))
    assert not any(chunks[:6]) and all(chunks[6:30])
    assert sum(unknown[20:30]) < sum(chunks[20:30]) / 3 and sum(made[20:30]) < sum(made[6:16])
    assert chunks[30:].count(0) == 3  # whole traces are tried again


def test_without_them_each_step_is_planned_anew():
    _, unknown, made, chunks = in_child(_run, _shuffled, compile="sync", disable="chunks")
    assert all(unknown) and not any(chunks)


def test_steps_that_come_again_are_left_whole():
    _, unknown, _, chunks = in_child(_run, _always, compile="sync")
    assert not any(chunks) and not any(unknown[4:])


def _turns_deterministic(plan, at):
    def planned(step):
        torch.use_deterministic_algorithms(step >= at)
        return plan(step)

    return _run(planned)


@pytest.mark.parametrize("at", [0, 15])
def test_deterministic_steps_are_left_whole(at):
    chunks = in_child(_turns_deterministic, _shuffled, at, compile="sync")[3]
    assert any(chunks[:at]) == (at > 6) and not any(chunks[at:])


def _chunks_after_new_sizes():
    """Whole steps come in twenty sizes, then steps whose layers are other ones each time. Returns the chunks of these."""
    for _ in _program("lazy", lambda step: _always(step) if step < 20 else _shuffled(step), rows=lambda step: 9 + min(step, 20), steps=60):
        pass
    return torch_lazy.metrics()["cuts"].get("chunk", 0)


def test_what_was_new_by_its_sizes_does_not_keep_chunks_away(tmp_path):
    """Where calls cannot run at once, and no kernel comes in time, so that all runs op by op."""
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\ncase $* in *--version*) exec g++ --version;; esac\nexec sleep 20\n")
    compiler.chmod(0o755)
    assert in_child(_chunks_after_new_sizes, compile="async", disable="at_once", compiler=str(compiler)) > 100
