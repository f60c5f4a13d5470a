# SPDX-License-Identifier: Apache-2.0
"""The training step that all models share."""


def step_of(loss_of, optimizer, batches, variant):
    """A function of the step's number: one training step. It returns the loss, not read."""
    loss_of = variant.compile(loss_of)
    update = variant.compile_update(optimizer.step)

    def step(index):
        optimizer.zero_grad()
        loss = loss_of(*batches(index))
        loss.backward()
        update()
        return loss.detach()

    return step
