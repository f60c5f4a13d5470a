# SPDX-License-Identifier: Apache-2.0
"""A small program of compiled kernels under compute-sanitizer: sanitize.py memcheck|racecheck|initcheck; `program` is the program.

Where the tool is not installed it says so, and passes.
"""

import os
import pathlib
import shutil
import subprocess
import sys


def program():
    """Maps, rows, columns, sums, an optimizer and gathers; no library's kernels, which are not ours to check."""
    import torch
    import torch_lazy
    from torch import nn
    from torch.nn import functional as F

    eager = os.environ.get("LAZY_TEST_EAGER", "cuda")
    results = {}
    for device in eager, "lazy":
        torch.manual_seed(0)
        x = torch.randn(129, 300).to(device).requires_grad_()
        weight, table = (nn.Parameter(torch.randn(n, 300).to(device)) for n in (1, 50))
        optimizer = torch.optim.Adam([x, weight, table], lr=1e-2)
        ids = torch.arange(129).remainder(50).to(device)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            h = F.gelu(F.layer_norm(x * weight, (300,))) + F.embedding(ids, table)
            h = torch.softmax(h, -1) * torch.cat([h[:, 150:], h[:, :150]], 1).tanh()
            loss = h.square().mean() + h.sum(0).var() + h.t().contiguous()[7:90].abs().max()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results[device] = torch.tensor(losses)
    torch.testing.assert_close(results["lazy"], results[eager], rtol=1e-4, atol=1e-5)
    metrics = torch_lazy.metrics()
    assert metrics["kernel_launches"] > 0
    print("right after", metrics["kernel_launches"], "launches")


def find():
    places = [pathlib.Path("/usr/local/cuda/bin"), *pathlib.Path("/usr/local").glob("cuda-*/bin")]
    return shutil.which("compute-sanitizer") or next((str(place / "compute-sanitizer") for place in places
                                                      if (place / "compute-sanitizer").is_file()), None)


def main():
    tool = sys.argv[1]
    if tool == "program":
        return program()
    sanitizer = find()
    if sanitizer is None:
        print("compute-sanitizer not found: nothing checked")
        return None
    return subprocess.run([sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", "9", "--print-limit", "20",
                           sys.executable, __file__, "program"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
