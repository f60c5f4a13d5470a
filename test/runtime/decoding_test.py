# SPDX-License-Identifier: Apache-2.0
"""What a decoded token costs on a GPU: rows put into static caches, and halves of rotary embeddings, in few kernels."""

import pytest
import torch
import torch_lazy

from child import in_child

WIDTH, HEADS, SHARED, HEAD, LONGEST, TOKENS = 128, 4, 2, 32, 24, 12
PER_LAYER = 5  # launches of kernels: products of the row, q turned, k turned and put with v, their copies, the output


def _turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _put(cache, place, rows, assigns):
    if assigns:
        cache[:, :, place] = rows
    else:
        cache.index_copy_(2, place, rows)


def _layer(x, weights, cos, sin, keys, values, place, mask, assigns):
    to_query, to_key, to_value, to_output = weights
    heads = lambda w: torch.nn.functional.linear(x, w).view(1, 1, -1, HEAD).transpose(1, 2)  # noqa: E731
    _put(keys, place, _turned(heads(to_key), cos, sin), assigns)
    _put(values, place, heads(to_value), assigns)
    known = [c[:, :, None].expand(1, SHARED, HEADS // SHARED, LONGEST, HEAD).reshape(1, HEADS, LONGEST, HEAD) for c in (keys, values)]
    y = torch.nn.functional.scaled_dot_product_attention(_turned(heads(to_query), cos, sin), *known, attn_mask=mask)
    return torch.tanh(x + torch.nn.functional.linear(y.transpose(1, 2).reshape(1, 1, -1), to_output))


def _decode(device, layers, assigns=False):
    """The hidden rows of some tokens, and what launches and library calls the last one took."""
    torch.manual_seed(0)
    normal = lambda *sizes: (torch.randn(sizes) / 8).bfloat16().to(device)  # noqa: E731
    widths = [HEADS * HEAD, SHARED * HEAD, SHARED * HEAD]
    weights = [[*(normal(w, WIDTH) for w in widths), normal(WIDTH, HEADS * HEAD)] for _ in range(layers)]
    caches = [[torch.zeros(1, SHARED, LONGEST, HEAD, dtype=torch.bfloat16, device=device) for _ in range(2)] for _ in range(layers)]
    places = torch.arange(LONGEST, device=device)
    place, x, rows, taken = torch.zeros(1, dtype=torch.int64, device=device), normal(1, 1, WIDTH), [], None
    angles = normal(LONGEST, HEAD)
    for _ in range(TOKENS):
        if device == "lazy":
            torch_lazy.sync()
            before = torch_lazy.metrics()
        cos, sin = angles[place].cos(), angles[place].sin()
        mask = torch.where(places <= place, 0.0, -torch.inf).bfloat16()[None, None, None]
        for k in range(layers):
            x = _layer(x, weights[k], cos, sin, *caches[k], place, mask, assigns)
        place = place + 1
        rows.append(x)
        if device == "lazy":
            torch_lazy.sync()
            after = torch_lazy.metrics()
            taken = {name: after[name] - before[name] for name in ("kernel_launches", "library_calls")}
    return torch.cat(rows).float().tolist(), taken


@pytest.mark.parametrize("assigns", [False, True])
def test_a_layer_takes_few_launches(assigns):
    with torch.no_grad():
        one, two = (in_child(_decode, "lazy", layers, assigns, backend="stand_in", compile="sync") for layers in (1, 2))
        expected = in_child(_decode, "cpu", 2)[0]
    torch.testing.assert_close(torch.tensor(two[0]), torch.tensor(expected), rtol=0.02, atol=0.02)
    assert two[1]["kernel_launches"] - one[1]["kernel_launches"] == PER_LAYER
    assert two[1]["library_calls"] - one[1]["library_calls"] == 1  # attention


def _puts_out_of_range():
    cache = torch.zeros(4, 2, device="lazy")
    for place in (3, 3, 3, 4):
        cache.index_copy_(0, torch.tensor([place]).to("lazy"), torch.ones(1, 2, device="lazy"))
        torch_lazy.sync()


def test_a_place_out_of_range_traps(capfd):
    with pytest.raises(EOFError):
        in_child(_puts_out_of_range, backend="stand_in", compile="sync")
    assert "traps" in capfd.readouterr().err


def _other_types():
    """What eager says of places, and of rows, that are of another type."""
    cache, place = torch.zeros(4, 2, device="lazy"), torch.ones(1, dtype=torch.int32, device="lazy")
    said = []
    for rows, places in [(torch.ones(1, 2), place), (torch.ones(1, 2).double(), place.long())] * 3:
        with pytest.raises((RuntimeError, IndexError)) as error:
            cache.index_copy_(0, places, rows.to("lazy"))
            cache.tolist()
        said.append(str(error.value)[:40])
    return said


def test_other_types_are_refused():
    said = in_child(_other_types, backend="stand_in", compile="sync")
    assert said[:2] * 3 == said and "index_copy_()" in said[0] and "index_copy_()" in said[1]


def _same_places():
    """Which of equal places comes last is settled where that is asked for."""
    torch.use_deterministic_algorithms(True)
    cache, rows = torch.zeros(4, 2, device="lazy"), torch.arange(6.0).view(3, 2).to("lazy")
    for _ in range(4):
        cache.index_copy_(0, torch.tensor([1, 2, 1]).to("lazy"), rows * 2)
    return cache.tolist()


def test_equal_places_are_eagers_where_runs_are_to_be_alike():
    assert in_child(_same_places, backend="stand_in") == [[0, 0], [8, 10], [4, 6], [0, 0]]
