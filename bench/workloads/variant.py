# SPDX-License-Identifier: Apache-2.0
"""One way to run a workload: which device, which optimizer, which environment, compiled or not."""

import dataclasses
import os

import torch

EAGER = os.environ.get("LAZY_BENCH_EAGER", "cpu")  # or cuda
SIDE = 8192 if EAGER == "cuda" else 2048  # of the matrices that memory is measured with


@dataclasses.dataclass(frozen=True)
class Variant:
    device: str = EAGER
    optimizer: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    compile_mode: str | None = None  # of torch.compile
    backend: str | None = None  # likewise
    update_mode: str | None = None  # likewise, of the optimizer's step, if it is not that of the model
    deterministic: bool = False  # torch.use_deterministic_algorithms

    def compile(self, function, **settings):
        """By torch.compile, if the variant compiles. settings: torch.compile's, beside mode and backend."""
        if self.compile_mode is None and self.backend is None:
            return function
        settings |= {"backend": self.backend} if self.backend else {"mode": self.compile_mode}
        return torch.compile(function, **settings)

    def compile_update(self, update):
        return dataclasses.replace(self, compile_mode=self.update_mode or self.compile_mode).compile(update)

    def begin_step(self):
        if self.compile_mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()  # results that are held may be overwritten

    def counts(self):
        if self.device != "lazy":
            return {}
        metrics = torch.lazy.metrics()
        return {name: metrics[name] for name in ("graph_replays", "kernel_launches")}

    def synchronize(self):
        if self.device == "lazy":
            torch.lazy.synchronize()
        elif self.device == "cuda":
            torch.cuda.synchronize()

    def batches(self, make, count=8):
        """Different inputs for each step, made once on the CPU; a step moves its own."""
        generator = torch.Generator().manual_seed(1)
        made = [make(generator) for _ in range(count)]
        return lambda step: [tensor.to(self.device) for tensor in made[step % count]]


# Pages stay with the process instead of going back to the system at every free.
TUNED_ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}

VARIANTS = {
    "eager": Variant(),
    "eager+deterministic": Variant(deterministic=True),
    "eager+alloc": Variant(environment=TUNED_ALLOCATOR),
    "eager+foreach": Variant(optimizer={"foreach": True}),
    "eager+fused": Variant(optimizer={"fused": True}),
    "compile": Variant(compile_mode="default"),
    "compile+graphs": Variant(compile_mode="reduce-overhead"),
    "compile+graphs of the model": Variant(compile_mode="reduce-overhead", update_mode="default"),
    "compile+graphs, frozen": Variant(compile_mode="reduce-overhead", environment={"TORCHINDUCTOR_FREEZING": "1"}),
    "lazy": Variant(device="lazy"),
    "lazy+deterministic": Variant(device="lazy", deterministic=True),
    "floor": Variant(device="null"),
    "lazy+compile": Variant(device="lazy", backend="lazy"),
}
