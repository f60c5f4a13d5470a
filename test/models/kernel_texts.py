#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the kernels of the models in bench/models and of the training programs, to compare two builds.

    kernel_texts.py --build OLD/build > old.txt; kernel_texts.py --build NEW/build > new.txt; diff old.txt new.txt
    kernel_texts.py --compare old.txt new.txt

Each line reads `program target: kernels of its steps`, each kernel by a hash of its text. A kernel's name is made
of its text, so a change that is to change no kernel gives equal lists. --compare prints how many programs were
compared, and the lines that differ; it ends with 1 if there are any. Models are recorded at small sizes by backends
that compute nothing; programs that must be run to be recorded are run on the CPU. --build takes a kit as well
(tools/cuda_kit.sh).
"""

import hashlib
import os
import pathlib
import sys
import tempfile

from records import ROOT, chosen, for_each, in_process, parser

sys.path.insert(0, str(ROOT / "tools"))
from kit_environment import kit_environment  # noqa: E402

PROGRAMS = ["branch", "dropout", "gpt", "gru", "lstm", "mlp", "resnet"]
PROGRAM_STEPS = 6
BACKENDS = {"cuda": "null_cuda", "cpu": "null"}
RUNNING = {"cuda": "stand_in", "cpu": "cpu"}
RECORDER = pathlib.Path(__file__).with_name("kernels.py")


def run_program(name):
    """Some steps of a training program; option `dump` of this process says where the texts go."""
    sys.path.insert(0, str(ROOT / "test/programs"))
    import importlib

    import programs
    import torch
    import torch_lazy  # noqa: F401

    torch.set_num_threads(1)
    importlib.import_module(name).train(programs.Options(device="lazy", steps=PROGRAM_STEPS))


def kernels_of(dump):
    """The texts' hashes, sorted, each as often as steps were planned that have it."""
    return sorted(hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in pathlib.Path(dump).glob("*/90-k*"))


def line_of(name, row, target, build, seconds):
    backends = RUNNING if row is None or row.needs_values else BACKENDS
    with tempfile.TemporaryDirectory() as dump:
        environment = kit_environment(
            build, LAZY_BACKEND=backends[target], LAZY_COMPILE="sync", LAZY_DUMP=dump, LAZY_MAX_TRACE_BYTES=64 << 30)
        command = (__file__, "--program", name) if row is None else (RECORDER, "--record", name, "--sizes", "small")
        done, said = in_process(*command, seconds=seconds, **environment)
        kernels = kernels_of(dump)
    return f"{name} {target}: " + (" ".join(kernels) if done and kernels else f"failed: {said[-200:]!r}")


def compare(old, new):
    """Prints what differs between two lists. Returns the number of programs that do."""
    old, new = (dict(line.split(": ", 1) for line in pathlib.Path(file).read_text().splitlines()) for file in (old, new))
    differ = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    failed = sorted({name for lines in (old, new) for name, kernels in lines.items() if kernels.startswith("failed")})
    for name in differ:
        print(f"{name}: {old.get(name, 'missing')[:200]} | {new.get(name, 'missing')[:200]}")
    compared = sum(len(kernels.split()) for name, kernels in new.items() if name not in failed)
    print(f"kernels: {len(old.keys() & new.keys())} programs, {compared} kernels compared; programs that differ: {len(differ)}; failed: {failed or 0}")
    return len(differ) + len(failed)


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("LAZY_BUILD_DIR", ROOT / "build")))
    options.add_argument("--targets", default="cuda,cpu")
    options.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"))
    options.add_argument("--program", help="run this training program in this process, and no more")
    options = options.parse_args()
    if options.program:
        return run_program(options.program)
    if options.compare:
        return 1 if compare(*options.compare) else 0
    build = options.build.resolve()
    names = [(name, None) for name in PROGRAMS] + [(row.name, row) for row in chosen(options.rows)]
    work = [(name, row, target) for name, row in names for target in options.targets.split(",")]
    for line in sorted(for_each(work, options.jobs, lambda item: line_of(*item, build, options.seconds))):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
