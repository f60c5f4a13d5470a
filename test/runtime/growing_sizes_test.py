# SPDX-License-Identifier: Apache-2.0
"""Loops that read a value at each step, and in which some sizes grow: what keeps its sizes is one trace. Note [Growing sizes] in lazy/cuts/growing_sizes.h."""

import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402

from child import in_child  # noqa: E402

LAYERS, DEEP, WIDTH, LONGEST, WORDS = 20, 44, 8, 40, 32
TEXTS, PROMPT, TOKENS = 3, 4, 12


def _metrics():
    metrics = torch_lazy.metrics()
    return [metrics[name] for name in ("traces_run", "trace_misses", "graph_replays")]


def _weights(device, layers=LAYERS):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).to(device) for size in [(WORDS, WIDTH)] + [(WIDTH, WIDTH)] * layers]


def writes(device, cache, layers=LAYERS):
    """(the texts' tokens; traces that ran, were not known, and CUDA graphs that were replayed, for each token). Cache: of one size, or growing."""
    words, *layers = _weights(device, layers)
    texts, counts = [], []
    for text in range(TEXTS):
        ids = torch.arange(PROMPT).add(text)[None].to(device)
        place = torch.full((1,), PROMPT - 1, device=device)
        known = [torch.zeros(LONGEST if cache == "static" else 1, WIDTH, device=device) for _ in layers]
        for _ in range(TOKENS):
            before = _metrics() if device == "lazy" else []
            x = words[ids[:, -1]]
            for k, weight in enumerate(layers):
                x = torch.tanh(x @ weight)
                known[k] = known[k].index_copy(0, place, x) if cache == "static" else torch.cat([known[k], x])
                x = x + known[k].sum(0, keepdim=True)
            next_id = (x @ words.T).argmax(-1, keepdim=True)
            ids = torch.cat([ids, next_id], 1)
            place = place + 1
            if next_id.max().item() == WORDS:
                break
            if device == "lazy":
                counts.append([now - then for now, then in zip(_metrics(), before)])
        texts.append(ids.tolist())
    return texts, counts


@pytest.mark.parametrize("layers", [LAYERS, DEEP])
@pytest.mark.parametrize("cache", ["static", "growing"])
def test_tokens_are_eagers(cache, layers):
    texts, _ = in_child(writes, "lazy", cache, layers, compile="sync")
    assert texts == in_child(writes, "lazy", cache, layers, compile="sync", disable="early")[0]
    assert texts == in_child(writes, "cpu", cache, layers)[0]
    assert len({tuple(ids) for text in texts for ids in text}) == TEXTS


def test_what_keeps_its_sizes_is_replayed():
    """A token is three traces: what sees the text so far, the network, and what writes and reads. The first one of a text is made with its caches."""
    _, counts = in_child(writes, "lazy", "static", compile="sync")
    assert counts[TOKENS // 2 : TOKENS] == [[3, 0, 1]] * (TOKENS // 2)  # of lengths that are new
    for text in range(1, TEXTS):
        assert counts[text * TOKENS + 1 : (text + 1) * TOKENS] == [[3, 0, 1]] * (TOKENS - 1)
    whole = in_child(writes, "lazy", "static", compile="sync", disable="early")[1][TOKENS - 1]
    assert (whole[0], whole[2]) == (1, 0)


def test_a_deep_network_is_replayed_while_it_is_recorded():
    _, counts = in_child(writes, "lazy", "static", DEEP, compile="sync")
    assert counts[TOKENS // 2 : TOKENS] == [[6, 0, 4]] * (TOKENS // 2)


def _beside_the_program(cache):
    torch.set_num_threads(2)
    return writes("lazy", cache, DEEP)[0], torch_lazy.metrics()["traces_ahead"]


def test_parts_run_while_the_next_ones_are_recorded():
    texts, ahead = in_child(_beside_the_program, "growing", compile="sync")
    assert texts == in_child(writes, "cpu", "growing", DEEP)[0]
    assert ahead > 2 * TEXTS * TOKENS
    assert in_child(_beside_the_program, "growing", compile="sync", overlap="0") == (texts, 0)


def _two_networks():
    return [writes("lazy", "static", layers) for layers in (LAYERS, LAYERS + 4)]


def test_a_second_network_is_replayed_too():
    """Its tokens begin like those of the first."""
    for layers, (texts, counts) in zip((LAYERS, LAYERS + 4), in_child(_two_networks, compile="sync")):
        assert texts == in_child(writes, "cpu", "static", layers)[0]
        assert counts[TOKENS + 1 : 2 * TOKENS] == [[3, 0, 1]] * (TOKENS - 1)


def test_a_token_of_which_most_sizes_grow_begins_while_it_is_recorded():
    """Of lengths that are new, too: nothing is planned for them."""
    _, counts = in_child(writes, "lazy", "growing", DEEP, compile="sync")
    assert counts[TOKENS // 2 : TOKENS] == [[7, 0, 0]] * (TOKENS // 2)
    _, counts = in_child(writes, "lazy", "growing", LAYERS, compile="sync")
    assert counts[TOKENS // 2 : TOKENS] == [[1, 0, 0]] * (TOKENS // 2)  # it is too short


def learns(device, steps):
    """Losses of texts of other lengths, each read."""
    words, *layers = [weight.requires_grad_() for weight in _weights(device)]
    optimizer = torch.optim.Adam([words, *layers], lr=1e-2, foreach=False)
    losses = []
    for step in range(steps):
        x = words[torch.arange(3 + step % 5, device=device)]
        for weight in layers:
            x = torch.tanh(x @ weight) + x
        loss = x.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_losses_are_those_of_whole_steps():
    assert in_child(learns, "lazy", 15, compile="off") == in_child(learns, "lazy", 15, compile="off", disable="early")
