# SPDX-License-Identifier: Apache-2.0
"""Loops find their steps by themselves: a few traces that were not known, then none, and no kernel.

Each loop runs in a process of its own, which starts with an empty trie.
"""

import pytest

import loops
from counting import counts_by_step, last_change

STEPS = 60

# For each loop: how many traces were not known, and after which step no count changed. What nobody reads or holds is not
# computed. The evaluation comes every fifth step, so its second time is the tenth; and what is read at each tenth step is read
# at the eleventh for the second time.
LOOPS = {
    "training_read_each_step": (lambda: loops.training(STEPS, read_every=1), 1, 2),
    "training_read_each_tenth": (lambda: loops.training(STEPS, read_every=10), 1, 3),
    "training_never_read": (lambda: loops.training(STEPS, read_every=0), 1, 3),
    "inference_read_each_step": (lambda: loops.inference(STEPS, read_every=1), 1, 2),
    "inference_read_each_tenth": (lambda: loops.inference(STEPS, read_every=10), 1, 11),
    "inference_never_read": (lambda: loops.inference(STEPS, read_every=0), 0, 0),
    "gradient_accumulation": (lambda: loops.gradient_accumulation(STEPS), 6, 4),
    "two_models_in_turn": (lambda: loops.two_models_in_turn(STEPS), 1, 3),
    "evaluation_now_and_then": (lambda: loops.evaluation_now_and_then(STEPS), 3, 10),
    "nested": (lambda: loops.nested(STEPS), 1, 3),
    "a_log_that_holds": (lambda: loops.a_log_that_holds(STEPS), 1, 3),
    "moving_average": (lambda: loops.moving_average(STEPS), 2, 3),
    "clipping": (lambda: loops.clipping(STEPS), 1, 3),
}


@pytest.mark.parametrize("name", LOOPS)
def test_traces_settle(name):
    loop, misses, settled = LOOPS[name]
    seen = counts_by_step(loop)
    assert (seen[-1][0], last_change(seen)) == (misses, settled)
