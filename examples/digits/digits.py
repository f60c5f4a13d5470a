#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training of digits.cc, in Python: the device's name and `import torch_lazy` are all that is special.

    digits.py [--device cpu|lazy] [--epochs N] [--seed N] [--data FILE]      without --device: both
"""
import argparse
import math
import pathlib
import time

import numpy
import torch
import torch_lazy
from torch import nn

BATCH_SIZE = 64


def load_digits(path):
    """Each line is 64 pixels of 0 to 16, and the digit. Two thirds are for training."""
    rows = torch.from_numpy(numpy.loadtxt(path, delimiter=",", dtype=numpy.float32))
    rows = rows[torch.randperm(len(rows))]
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    num_train = len(rows) * 2 // 3
    return (images[:num_train], labels[:num_train]), (images[num_train:], labels[num_train:])


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10))


def train_epoch(net, optimizer, images, labels):
    """One pass over the training images; returns the mean loss. Only its last line waits for the device."""
    net.train()
    loss_sum = torch.zeros((), device=images.device)
    batches = torch.randperm(len(labels)).split(BATCH_SIZE)
    for picks in batches:
        picks = picks.to(labels.device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[picks]), labels[picks])
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach()
    return loss_sum.item() / len(batches), len(batches)


def accuracy(net, images, labels):
    net.eval()
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def train(device, args):
    """Trains on `device`, prints a line an epoch; returns the times of a step in ms, and the accuracy."""
    torch.manual_seed(args.seed)
    train_data, test_data = ([t.to(device) for t in part] for part in load_digits(args.data))
    net = make_net().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    times = []
    for epoch in range(args.epochs):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 + math.cos(math.pi * epoch / args.epochs))
        start = time.perf_counter()
        loss, num_steps = train_epoch(net, optimizer, *train_data)
        times.append((time.perf_counter() - start) * 1e3 / num_steps)
        correct = accuracy(net, *test_data)
        print(f"{device:4}  epoch {epoch + 1:2}/{args.epochs}  loss {loss:.4f}  "
              f"test accuracy {100 * correct:5.2f} %  {times[-1]:6.2f} ms a step", flush=True)
    return times, correct


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu or lazy; both by default")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", default=pathlib.Path(__file__).parent / "data/digits.csv")
    args = parser.parse_args()

    devices = [args.device] if args.device else ["cpu", "lazy"]
    results = {device: train(device, args) for device in devices}
    print(f"\n{'':8}{'first epoch, ms a step':>26}{'later, ms a step':>20}{'test accuracy, %':>20}")
    for device, (times, correct) in results.items():
        later = sorted(times[1:] or times)
        print(f"{device:8}{times[0]:26.2f}{later[len(later) // 2]:20.2f}{100 * correct:20.2f}")
    if "lazy" in devices:
        metrics = torch_lazy.metrics()
        print("\nof device lazy:", ", ".join(f"{name} {metrics[name]}" for name in (
            "calls_total", "traces_run", "kernels_compiled", "kernel_launches", "syncs")))


if __name__ == "__main__":
    main()
