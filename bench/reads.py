# SPDX-License-Identifier: Apache-2.0
"""When a training loop looks at its loss.

    never   no step's loss, until the block of steps has ended
    after   each step's, after the step: `loss.item()`
    tenth   likewise, each tenth step's
    before  each step's, between its forward and its backward pass
    isnan   likewise, by a branch: `if torch.isnan(loss)`
"""

import torch

TENTH = 10


def _before_backward(look):
    """Calls look(loss) first where a program calls loss.backward()."""
    backward = torch.Tensor.backward

    def looking(loss, *arguments, **named):
        look(loss)
        return backward(loss, *arguments, **named)

    torch.Tensor.backward = looking


def _refuse_nan(loss):
    if torch.isnan(loss):
        raise ValueError("the loss is NaN")


def reading(step, when):
    """A step whose loss is looked at. `step`: a function of the step's number that returns the loss; `when`: as above."""
    if when in ("before", "isnan"):
        _before_backward(torch.Tensor.item if when == "before" else _refuse_nan)
    if when not in ("after", "tenth"):
        return step

    def read(index):
        loss = step(index)
        if when == "after" or index % TENTH == TENTH - 1:
            loss.item()
        return loss

    return read
