# SPDX-License-Identifier: Apache-2.0
"""Plans as CUDA graphs: values are eager CUDA's and those without graphs, and from the fourth step on each step is one replay."""

import pytest
import torch
import torch_lazy  # noqa: F401

import loops
from devices import EAGER, Child, numbers

# The first step learns shapes, the next two run by single launches. Where more comes first: at which step is the first replay.
FIRST_REPLAY = {"momentum": 4, "changing_sizes": 7, "accumulated_gradients": None, "parameters_that_move": None,
                "two_models_in_turn": 5}


@pytest.mark.parametrize("loop", loops.ALL, ids=lambda loop: loop.__name__)
def test_loop(loop):
    children = [Child(loop, EAGER), Child(loop, "lazy", compile="sync"), Child(loop, "lazy", compile="sync", disable="graphs"),
                Child(loop, "lazy", compile="off")]
    (eager, _), (graphs, counts), (launches, no_counts), (interpreted, _) = (child.result() for child in children)
    assert not any(no_counts)
    first = FIRST_REPLAY.get(loop.__name__, 3)
    if first is not None:
        assert counts == [max(0, step + 1 - first) for step in range(len(counts))]
    assert numbers(graphs) == numbers(launches)
    tolerance = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(torch.tensor(numbers(graphs)), torch.tensor(numbers(eager)), **tolerance)
    torch.testing.assert_close(torch.tensor(numbers(interpreted)), torch.tensor(numbers(eager)), rtol=1e-6, atol=1e-6)


def test_accumulated_gradients_are_replayed_at_each_step():
    """The steps that update and those that do not are traces of their own; each is known after a few rounds."""
    _, counts = Child(loops.accumulated_gradients, "lazy", compile="sync").result()
    assert [later - earlier for earlier, later in zip(counts[15:], counts[16:], strict=False)] == [1] * 16


def test_a_convolution_leaves_its_result_where_the_graph_wants_it():
    """ATen's own result would have to be copied there in each replay."""
    results, counts = Child(loops.results_of_convolutions, "lazy", compile="sync").result()
    eager, _ = Child(loops.results_of_convolutions, EAGER).result()
    assert counts[-1][0] > 0 and not any(copied for _, copied in counts)
    torch.testing.assert_close(torch.tensor(numbers(results)), torch.tensor(numbers(eager)), rtol=1e-4, atol=1e-5)


def test_moved_parameters_cost_one_step_each():
    _, counts = Child(loops.parameters_that_move, "lazy", compile="sync").result()
    assert counts == [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11]


def test_a_capture_that_fails_leaves_later_ones():
    results, counts = Child(loops.after_a_call_that_waits, "lazy", compile="sync").result()
    alone, counts_alone = Child(loops.adam, "lazy", compile="sync").result()
    assert counts == counts_alone and counts[-1] > 0
    assert numbers(results) == numbers(alone)


def test_a_loss_is_read_while_the_gpu_goes_on():
    early, counts = Child(loops.reads_the_loss_of_large_steps, "lazy", compile="sync").result()
    late, none = Child(loops.reads_the_loss_of_large_steps, "lazy", compile="sync", disable="early").result()
    eager, _ = Child(loops.reads_the_loss_of_large_steps, EAGER).result()
    assert not any(none) and [after - before for before, after in zip(counts[11:], counts[12:], strict=False)] == [1] * 12
    tolerance = {"rtol": 1e-3, "atol": 1e-6}  # 24 updates of f32 products, rounded in other orders
    torch.testing.assert_close(torch.tensor(early), torch.tensor(late), **tolerance)
    torch.testing.assert_close(torch.tensor(early), torch.tensor(eager), **tolerance)


def test_what_draws_runs_ahead_as_a_graph():
    """Its draws are eager's, and so are those of the program's meanwhile."""
    losses, counts = Child(loops.attention_that_draws, "lazy", compile="sync").result()
    whole, none = Child(loops.attention_that_draws, "lazy", compile="sync", overlap="0").result()
    eager, _ = Child(loops.attention_that_draws, EAGER).result()
    assert counts[-1] - counts[12] >= 11 * 3 and not any(none)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(whole), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(eager), rtol=1e-3, atol=1e-6)


def test_a_capture_leaves_the_draws_of_replays_that_wait():
    sums, counts = Child(loops.draws_while_another_is_captured, "lazy", compile="sync").result()
    eager, _ = Child(loops.draws_while_another_is_captured, EAGER).result()
    assert counts[7] > 0 and counts[-1] > counts[7] + 8
    torch.testing.assert_close(torch.tensor(sums), torch.tensor(eager), rtol=1e-4, atol=1e-4)


def test_convolutions_without_a_graph_stay_with_the_program():
    """cuDNN would prepare them on the library's thread anew."""
    losses, counts = Child(loops.weights_of_convolutions_that_move, "lazy", compile="sync").result()
    whole, none = Child(loops.weights_of_convolutions_that_move, "lazy", compile="sync", overlap="0").result()
    assert counts[15][0] > 0 and counts[-1][1] > counts[15][1] and not any(ahead for ahead, _ in none)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(whole), rtol=1e-3, atol=1e-6)  # cuDNN adds in any order


def test_steps_leave_narrow_weights_to_the_next():
    """While nobody else writes them; and nothing else is computed."""
    children = [Child(loops.under_autocast, "lazy", compile="sync"), Child(loops.under_autocast, "lazy", compile="sync", disable="carry")]
    (carries, carried), (plain, none) = (child.result() for child in children)
    assert carried[3:8] == [6] * 5 and not any(carried[8:]) and not any(none)
    assert numbers(carries) == numbers(plain)
