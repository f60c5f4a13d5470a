# SPDX-License-Identifier: Apache-2.0
"""Programs of the CPU print the same, warnings included, whether the package is imported or not."""
import os
import subprocess
import sys

PROGRAMS = {
    "training": """
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(16, 4)).square().mean()
            loss.backward()
            optimizer.step()
            print(loss, optimizer)
        print(model, model.state_dict(), next(model.parameters()).type())
    """,
    "checkpointing": """
        from torch.utils.checkpoint import checkpoint, checkpoint_sequential
        layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))
        for use_reentrant in (False, True):
            x = torch.randn(3, 4, requires_grad=True)
            checkpoint(layers, x, use_reentrant=use_reentrant).sum().backward()
            checkpoint_sequential(layers, 2, x, use_reentrant=use_reentrant).sum().backward()
            checkpoint(lambda: x.sin().sum(), use_reentrant=False).backward()
            print(x.grad, torch.rand(2))
    """,
    "random numbers": """
        with torch.random.fork_rng():
            torch.manual_seed(1)
            print(torch.rand(2))
        with torch.random.fork_rng(devices=[]):
            print(torch.rand(2))
        print(torch.rand(2), torch.randperm(4, generator=torch.Generator().manual_seed(2)), torch.Generator().device)
        print(torch.initial_seed(), torch.get_rng_state().sum(), torch.default_generator.device)
    """,
    "loaders": """
        from torch.utils.data import DataLoader, TensorDataset
        for workers in (0, 2):
            for pin_memory in (False, True):
                data = DataLoader(TensorDataset(torch.arange(6.0)), 2, shuffle=True, num_workers=workers, pin_memory=pin_memory)
                print([batch[0] * 2 for batch in data], [batch[0].numpy() for batch in data])
    """,
    "devices": """
        print(torch.get_default_device(), torch.tensor(1).device, torch.empty(0).to("cpu").device, torch.cuda.is_available())
        print([torch.device(name) for name in ("cpu", "cuda:1", "meta", "mps")], torch.ones(2, device="meta") + 1)
        with torch.device("meta"):
            print(nn.Linear(2, 2).weight.device)
        try:
            torch.ones(2).cuda()
        except Exception as error:
            print(type(error), error)
        print(torch.ones(2).is_pinned(), torch.ones(2).__dlpack_device__(), torch.from_dlpack(torch.ones(2)))
    """,
    "capturing": """
        x = torch.arange(6.0).view(2, 3)
        f = lambda x: (x.sin() + 1).sum(0)
        print(torch.compile(f, backend="aot_eager")(x), torch.export.export(nn.Linear(3, 2), (x,)).graph)
        print(torch.fx.symbolic_trace(f).code, torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(x))
    """,
    "saving": """
        import copy, io, pickle
        file = io.BytesIO()
        tensors = {"plain": torch.ones(2), "sparse": torch.eye(2).to_sparse(), "model": nn.Linear(2, 2).state_dict()}
        torch.save(tensors, file)
        print(len(file.getvalue()), torch.load(io.BytesIO(file.getvalue())), copy.deepcopy(tensors), pickle.loads(pickle.dumps(tensors)))
    """,
    "errors": """
        for wrong in (lambda: torch.ones(2) @ torch.ones(3), lambda: torch.ones(2).view(3), lambda: torch.ones(2)[5],
                      lambda: torch.zeros(2, requires_grad=True).add_(1), lambda: torch.tensor("x"), lambda: torch.ones(2).to("x")):
            try:
                wrong()
            except Exception as error:
                print(type(error), error)
    """,
}


# All in one process, since importing torch takes longer than the programs.
RUNNER = """
import sys, textwrap
import torch
from torch import nn
for name, program in sorted(PROGRAMS.items()):
    for stream in (sys.stdout, sys.stderr):
        print(f"--- {name}", file=stream, flush=True)
    torch.manual_seed(0)
    exec(textwrap.dedent(program), {"torch": torch, "nn": nn})
"""


def start(package):
    # PyTorch warns of pinning where there is no accelerator, and with us there is one.
    environment = {**os.environ, "PYTHONWARNINGS": "ignore:'pin_memory' argument is set as true"}
    text = f"import {package}\nPROGRAMS = {PROGRAMS!r}\n{RUNNER}"
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_cpu_programs_print_the_same():
    without, with_us = start("torch"), start("torch_lazy")
    (expected, expected_errors), (printed, errors) = without.communicate(), with_us.communicate()
    assert (without.returncode, with_us.returncode) == (0, 0), expected_errors + errors
    assert printed == expected and all(f"--- {name}\n" in printed for name in PROGRAMS)
    assert errors == expected_errors
