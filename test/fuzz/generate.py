# SPDX-License-Identifier: Apache-2.0
"""Makes random programs, a line at a time, by running each line on the CPU."""

import random

import torch

from grammar import KINDS
from program import Invalid, Line, Machine, Watch

DTYPES = {
    "torch.float32": 12, "torch.float64": 2, "torch.bfloat16": 2, "torch.float16": 1, "torch.int64": 2, "torch.int32": 1,
    "torch.bool": 1, "torch.uint8": 1,
}
EXTENTS = [1, 2, 2, 3, 3, 3, 4, 4, 6, 17]
ERRORS_KEPT = 0.05  # of the lines that raise


class Generator:
    def __init__(self, seed, *, num_lines, without=()):
        self.random = random.Random(seed)
        self.num_lines = num_lines
        self.kinds = [name for name in KINDS if name not in without]
        self.lines = []
        self.machine = Machine("cpu")
        self.watch = Watch(self.machine)
        self.count = 0  # of variables made

    def program(self):
        torch.manual_seed(0)
        try:
            for _ in range(3):
                self._add("factory")
            while len(self.lines) < self.num_lines:
                if len(self.lines) > 8 and self.random.random() < 0.03:
                    self._repeat()
                else:
                    self._add(self.random.choices(self.kinds, [KINDS[name].weight for name in self.kinds])[0])
        except Invalid:
            pass  # the last line is in the program or not: either way it ends here
        return self.lines

    def _add(self, kind):
        """A line that runs, or now and then one that raises."""
        for _ in range(20):
            line = self._draw(kind)
            if line is None or not self.watch.allows(line):
                continue
            self.watch.run(line)
            # A failed backward pass may have changed gradients before it failed.
            if self.machine.errors[-1] is None or kind == "gradient" or self.random.random() < ERRORS_KEPT:
                self.lines.append(line)
                return

    def _repeat(self):
        """The last lines again, as a loop would."""
        body = self.lines[-self.random.randint(2, 8):]
        for line in body * self.random.randint(2, 4):
            self.watch.run(line)
            self.lines.append(line)

    def _draw(self, kind):
        tensors = [name for name, value in self.machine.variables.items() if isinstance(value, torch.Tensor)]
        text = self.random.choice(KINDS[kind].lines)
        if not tensors and "{a}" in text:
            return None
        if len(tensors) > 9 and kind != "deletion":
            text, kind = "del {a}", "deletion"
        pick = self.random.choice
        first = self.count
        self.count += 2
        return Line(kind, text.format(
            a=tensors and pick(tensors[-5:] if self.random.random() < 0.5 else tensors), b=tensors and pick(tensors),
            c=tensors and pick(tensors), out=f"t{first}", outs=f"t{first}, t{first + 1}", note=f"n{first}",
            number=pick([-2, -1, 0, 1, 2, 3, 0.5]), extent=pick(EXTENTS), count=self.random.randint(1, 40), dim=pick([0, -1]),
            shape=tuple(pick(EXTENTS) for _ in range(pick([0, 1, 1, 2, 2, 2, 3]))),
            dtype=self.random.choices(list(DTYPES), DTYPES.values())[0],
        ))
