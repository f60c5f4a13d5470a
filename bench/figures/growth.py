# SPDX-License-Identifier: Apache-2.0
"""10,000 steps that are never waited for: what the process has grown by."""

import pathlib
import tempfile

from figures.fresh import Figure, run, use

STEPS, WARM = 10_000, 200
MIB = 1 << 20


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def train(steps, warm):
    import torch
    from torch import nn

    metrics, _ = use("lazy")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8)).to("lazy")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    x, y = torch.randn(32, 64, device="lazy"), torch.randint(8, (32,), device="lazy")
    for step in range(steps):
        if step == warm:
            before, early = resident_bytes(), metrics()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        schedule.step()
    after, late = resident_bytes(), metrics()
    return {"grown": after - before, "misses": late["trace_misses"] - early["trace_misses"],
            "peak": late["bytes_peak"] / early["bytes_peak"]}


def figures(build):
    with tempfile.TemporaryDirectory() as cache:
        seen = run(build, train, STEPS, WARM, LAZY_CACHE_DIR=cache)
    yield Figure(f"host memory, MiB, steps {WARM} to {STEPS}", seen["grown"] / MIB, "< 64")
    yield Figure("bytes_peak after all steps, over that after the first ones", seen["peak"], "1")
    yield Figure("traces that were not known after the first steps", seen["misses"], "0")
