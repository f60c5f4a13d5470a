# SPDX-License-Identifier: Apache-2.0
"""Programs of the CPU print the same, warnings included, whether the package is imported or not."""
import os
import re
import subprocess
import sys

import pytest

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
    "process groups": """
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        print(dist.get_backend(), dist.group.WORLD._device_types, dist.distributed_c10d._get_object_coll_device())
        x = torch.ones(2)
        dist.all_reduce(x)
        dist.barrier()
        objects = [None]
        dist.all_gather_object(objects, "object")
        print(x, objects, init_device_mesh("cpu", (1,)))
        model = fully_shard(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
        model(torch.ones(4, 2)).sum().backward()
        print([p.grad.full_tensor() for p in model.parameters()], next(model.parameters()).device_mesh)
        ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        ddp(torch.ones(4, 2)).sum().backward()
        print([p.grad for p in ddp.parameters()])
        dist.destroy_process_group()
    """,
    "parallel": """
        from torch.distributed.run import determine_local_world_size
        from torch.nn.parallel import parallel_apply
        model = nn.DataParallel(nn.Linear(2, 3))
        model(torch.ones(4, 2)).sum().backward()
        print(model.device_ids, model.module.weight.grad)
        print(determine_local_world_size("auto") == os.cpu_count(), determine_local_world_size("cpu") == os.cpu_count())
        for ask in (lambda: determine_local_world_size("gpu"), lambda: parallel_apply([nn.Linear(2, 2)], [torch.ones(1, 2)]),
                    lambda: nn.parallel.data_parallel(model.module, torch.ones(1, 2))):
            try:
                print(ask())
            except Exception as error:
                print(type(error), error)
    """,
    "what PyTorch finds": """
        from torch.nn.attention.flex_attention import create_block_mask
        from torch._dynamo.device_interface import get_registered_device_interfaces
        print(torch._C._get_accelerator(), torch._utils._get_available_device_type(), torch._utils._get_all_device_indices())
        print(sorted(name for name, _ in get_registered_device_interfaces()))
        print(torch.utils.checkpoint._infer_device_type(torch.ones(1)), torch.utils.checkpoint.DefaultDeviceType.get_device_type())
        for ask in (lambda: torch.ones(2).pin_memory(), lambda: torch.empty(2, pin_memory=True),
                    lambda: create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 128, 128)):
            try:
                print(ask())
            except Exception as error:
                print(type(error), str(error).splitlines()[0])
    """,
    "profiling": """
        import io, contextlib
        from torch.utils.benchmark import Timer
        print(sorted(map(str, torch.profiler.supported_activities())))
        for options in ({}, {"profile_memory": True, "record_shapes": True}):
            with torch.profiler.profile(**options) as profile:
                (torch.ones(8, 8) @ torch.ones(8, 8)).sum()
            averages = profile.key_averages()
            print(sorted((event.key, event.count, str(event.device_type)) for event in averages if event.key != "[memory]"))
            print(averages.table().splitlines()[1].split())
        with torch.autograd.profiler.profile() as profile:
            torch.ones(2) + 1
        print([event.name for event in profile.function_events])
        print(Timer("x + 1", globals={"x": torch.ones(2)}).timeit(2).number_per_run)
    """,
    "checkpoints": """
        import tempfile
        import torch.distributed.checkpoint as checkpoint
        with tempfile.TemporaryDirectory() as folder:
            state = {"weight": torch.arange(4.0), "step": 3}
            checkpoint.save(state, checkpoint_id=folder + "/saved", no_dist=True)
            loaded = {"weight": torch.zeros(4), "step": 0}
            checkpoint.load(loaded, checkpoint_id=folder + "/saved", no_dist=True)
            print(loaded)
    """,
    "scaling": """
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.5)
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer), scaler.update()
        print(weight, scaler.get_scale(), torch.amp.is_autocast_available("cpu"), torch.get_autocast_dtype("cpu"))
    """,
}


# All in one process, since importing torch takes longer than the programs.
RUNNER = """
import os, sys, textwrap
import torch
from torch import nn
for name, program in sorted(PROGRAMS.items()):
    for stream in (sys.stdout, sys.stderr):
        print(f"--- {name}", file=stream, flush=True)
    torch.manual_seed(0)
    exec(textwrap.dedent(program), {"os": os, "torch": torch, "nn": nn})
"""


def start(package):
    text = f"import {package}\nPROGRAMS = {PROGRAMS!r}\n{RUNNER}"
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def comparable(text):
    """Times and processes are others, and Kineto looks for CUPTI as soon as a PrivateUse1 device has a name, in vain as before."""
    lines = [line for line in text.splitlines() if not re.match(r"(INFO|WARNING|ERROR):.*(init|DeviceProperties)\.cpp", line)]
    return re.sub(r"\d+", "0", "\n".join(lines))


def test_cpu_programs_print_the_same():
    without, with_us = start("torch"), start("torch_lazy")
    (expected, expected_errors), (printed, errors) = without.communicate(), with_us.communicate()
    assert (without.returncode, with_us.returncode) == (0, 0), expected_errors + errors
    assert printed == expected and all(f"--- {name}\n" in printed for name in PROGRAMS)
    assert comparable(errors) == comparable(expected_errors)


# Who asks before the first tensor wants to know where to put it.
ASKING = """
import torch, torch_lazy
from torch.utils.benchmark import Timer
assert str(torch._C._get_accelerator()) == "cpu" and torch._utils._get_available_device_type() is None
assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1
assert torch.accelerator.current_accelerator(check_available=True).type == "lazy"
assert torch.accelerator.current_device_index() == 0 and torch.get_device_module() is torch.lazy
torch.accelerator.synchronize()
with torch.accelerator.device_index(0):
    pass
assert str(torch._C._get_accelerator()) == "cpu"  # an answer changes nothing
torch.ones(2, device=torch.accelerator.current_accelerator())
assert str(torch._C._get_accelerator()) == "lazy" and torch._utils._get_available_device_type() == "lazy"
"""


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="the accelerator is CUDA")
def test_programs_that_ask_are_told_of_the_device():
    subprocess.run([sys.executable, "-c", ASKING], check=True)
