# SPDX-License-Identifier: Apache-2.0
"""Recurrent nets on the device and on the eager device that it stands on, in turns: three programs, and ten of sizes drawn at random.

    recurrent_bench.py [train] [eval] [--seconds 55] [--first N] [--seed 35] [--processor]

Prints for each the fastest of some blocks, ms a step, and eager's over ours; which are below 0.97 at the end. `--processor` counts what
processors do, one thread, instead of time, on a machine that has other work.
"""
import argparse
import random
import time

import torch
import torch_lazy  # noqa: F401
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("which", nargs="*", default=["train", "eval"])
parser.add_argument("--seconds", type=float, default=55)
parser.add_argument("--first", type=int, default=0, help="number of the first program")
parser.add_argument("--seed", type=int, default=35)
parser.add_argument("--processor", action="store_true")
ARGUMENTS = parser.parse_args()
BEGIN = time.monotonic()
EAGER = torch.ops.torch_lazy.eager_device()
IS_LARGE = EAGER == "cuda"
clock = time.process_time if ARGUMENTS.processor else time.perf_counter
if ARGUMENTS.processor:
    torch.set_num_threads(1)


class Lm(nn.Module):
    def __init__(self, vocab, width, layers, kind="LSTM", **more):
        super().__init__()
        self.embed, self.net, self.head = nn.Embedding(vocab, width), getattr(nn, kind)(width, width, layers, **more), nn.Linear(width * (2 if more.get("bidirectional") else 1), vocab)

    def forward(self, x):
        return self.head(self.net(self.embed(x))[0])


class Plain(nn.Module):
    def __init__(self, kind, width, hidden, layers, **more):
        super().__init__()
        self.net = getattr(nn, kind)(width, hidden, layers, **more)

    def forward(self, x):
        return self.net(x)[0]


def large():
    yield "LSTM 1024, 128 steps, batch 64, bf16 autocast", lambda: Plain("LSTM", 1024, 1024, 1), lambda: torch.randn(128, 64, 1024), True
    yield "LM 2 x LSTM 512, batch 32, 64 steps, vocabulary 10000, bf16 autocast", lambda: Lm(10000, 512, 2), lambda: torch.randint(10000, (64, 32)), True


def programs():
    if IS_LARGE:
        yield from large()
    yield "LM LSTM 64, batch 8, 16 steps, f32", lambda: Lm(64, 64, 2), lambda: torch.randint(64, (16, 8)), False
    draw = random.Random(ARGUMENTS.seed)
    for _ in range(10):
        kind = draw.choice(["LSTM", "LSTM", "GRU", "GRU", "RNN"])
        width, hidden = draw.choice([32, 80, 128, 300, 512] if IS_LARGE else [16, 32, 80, 128]), draw.choice([48, 64, 128, 200, 256, 512, 768] if IS_LARGE else [32, 48, 64, 128])
        layers, length, batch = draw.choice([1, 2, 3]), draw.choice([5, 20, 35, 64, 100, 150] if IS_LARGE else [8, 20, 35, 50]), draw.choice([1, 4, 16, 32])
        more = dict(bidirectional=draw.random() < 0.4, dropout=0.2 if layers > 1 and draw.random() < 0.5 else 0.0, batch_first=draw.random() < 0.5)
        autocast = draw.random() < 0.5 and IS_LARGE
        shape = (batch, length, width) if more["batch_first"] else (length, batch, width)
        yield (f"{kind} {width} to {hidden}, {layers} layers, {length} steps, batch {batch} {more} {'autocast' if autocast else 'f32'}",
               lambda kind=kind, width=width, hidden=hidden, layers=layers, more=more: Plain(kind, width, hidden, layers, **more),
               lambda shape=shape: torch.randn(shape), autocast)


class Run:
    def __init__(self, device, make, data, autocast, train):
        torch.manual_seed(0)
        self.device, self.autocast, self.train = device, autocast, train
        self.net, self.x = make().to(device).train(train), data().to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def step(self):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast), torch.set_grad_enabled(self.train):
            y = self.net(self.x)
            if not self.train:
                return y
            loss = nn.functional.cross_entropy(y.flatten(0, 1), self.x.flatten()) if not self.x.is_floating_point() else y.float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def wait(self):
        torch.lazy.synchronize() if self.device == "lazy" else torch.accelerator.synchronize() if IS_LARGE else None

    def block(self, count):
        self.wait()
        begin = clock()
        kept = [self.step() for _ in range(count)]  # so that nothing is left out because nobody wants it
        self.wait()
        seconds = (clock() - begin) / count
        del kept
        return seconds


below = []
for number, (name, make, data, autocast) in enumerate(programs()):
    if number < ARGUMENTS.first:
        continue
    for mode in ARGUMENTS.which:
        if time.monotonic() - BEGIN > ARGUMENTS.seconds:
            print("out of time before", number, name, mode)
            continue
        runs = [Run(device, make, data, autocast, mode == "train") for device in (EAGER, "lazy")]
        for run in runs:
            run.block(12)
        time.sleep(0.3)
        for run in runs:
            run.block(8)
        once = max(run.block(3) for run in runs)
        count = max(4, min(20, int(0.03 / once)))
        times = [[run.block(count) for run in runs] for _ in range(7)]
        eager, lazy = (min(t[k] for t in times) * 1e3 for k in (0, 1))
        print(f"{number:2} {mode:5} eager {eager:8.3f} ms, lazy {lazy:8.3f} ms, ratio {eager / lazy:5.2f}  {name}", flush=True)
        if eager / lazy < 0.97:
            below.append((number, mode, round(eager / lazy, 3)))
print("below 0.97:", below)
