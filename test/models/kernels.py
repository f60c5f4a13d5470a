#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of the models in bench/models, trained under autocast to bfloat16 and in inference.

    kernels.py --rows "mixer*,llama" --sizes small --archs sm_90

Each model is recorded, at its small and its full size, by a backend that computes nothing, and its kernels' texts are kept. What depends
on values (boxes that are kept, lengths that are checked) is run instead, at its small size. Texts for
CUDA are compiled by NVRTC for each architecture and, with CUDA's words defined, checked by the C++ compiler; those for the CPU by the
C++ compiler. Needs no GPU. Ends with 1 if a text does not compile, or if a model cannot be recorded.
"""

import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from records import chosen, for_each, in_process, parser

TRAINING_STEPS, INFERENCE_STEPS = 4, 3  # until all shapes are known, and the step is one graph
BACKENDS = {"cuda": "null_cuda", "cpu": "null"}
RUNNING = {"cuda": "stand_in", "cpu": "cpu"}  # for models that must be run to be recorded, small
MOST_SAID = 800  # characters about a text
COMPILER = pathlib.Path(os.environ.get("LAZY_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build")) / "bin" / "compile_texts"
SYNTAX = [os.environ.get("CXX", "g++"), "-std=c++17", "-march=native", "-fsyntax-only", "-w", "-x", "c++", "-"]


def record(name, sizes):
    """One model's steps; option `dump` of this process says where the texts go.

    A call whose shape nobody knows yet is made at once, and its shape is believed later at other sizes: the small ones come first.
    """
    import torch
    import torch_lazy
    from models import inference, named, training

    torch.set_num_threads(1)
    for size in sizes:
        for make, steps in (training, TRAINING_STEPS), (inference, INFERENCE_STEPS):
            step = make(named(name), "lazy", size)
            for index in range(steps):
                step(index)
                torch_lazy.sync()
            del step


class Texts:
    """Texts that have been compiled; a text that several models share is compiled once."""

    def __init__(self, folder):
        self.folder, self._known, self._lock = pathlib.Path(folder), set(), threading.Lock()
        self.failures = collections.Counter()
        self.prelude = subprocess.run([COMPILER, "prelude"], check=True, capture_output=True, text=True).stdout

    def new(self, dump, ending):
        files = []
        for file in sorted(pathlib.Path(dump).glob(f"*/90-k*.{ending}")):
            text = file.read_text()
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            with self._lock:
                is_new = (ending, name) not in self._known
                self._known.add((ending, name))
            if is_new:
                files.append(self.folder / f"{name}.{ending}")
                files[-1].write_text(text)
        return files

    def count(self, ending):
        return sum(known == ending for known, _ in self._known)


def nvrtc_failures(files, arch):
    done = subprocess.run([COMPILER, arch], input="\n".join(map(str, files)), capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return [f"status {done.returncode}: {done.stderr}"]
    failed = re.split(r"^(?=/\S+\.cu: )", done.stdout, flags=re.MULTILINE)
    return [message.strip()[:MOST_SAID] for message in failed if message.strip()]


def cxx_failures(files, prelude):
    def check(file):
        done = subprocess.run(SYNTAX, input=prelude + file.read_text(), capture_output=True, text=True)
        return [] if done.returncode == 0 else [f"{file}: {done.stderr[:MOST_SAID]}"]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [line for lines in pool.map(check, files) for line in lines]


def compile_row(row, target, options, texts):
    """Lines to be printed."""
    with tempfile.TemporaryDirectory(dir=texts.folder) as dump:
        backends, sizes = (RUNNING, "small") if row.needs_values else (BACKENDS, options.sizes)
        environment = {"LAZY_BACKEND": backends[target], "LAZY_COMPILE": "sync", "LAZY_DUMP": dump, "LAZY_MAX_TRACE_BYTES": str(64 << 30)}
        done, said = in_process(__file__, "--record", row.name, "--sizes", sizes, seconds=options.seconds, **environment)
        ending = "cu" if target == "cuda" else "cc"
        files = texts.new(dump, ending)
    found = {} if done else {"record": [said]}
    if target == "cuda":
        found.update({arch: nvrtc_failures(files, arch) for arch in options.archs.split(",") if arch})
    found["C++"] = cxx_failures(files, texts.prelude if target == "cuda" else "")
    texts.failures.update({compiler: len(lines) for compiler, lines in found.items()})
    counted = ", ".join(f"{compiler} {len(lines)}" for compiler, lines in found.items())
    return [f"{row.name} {target}: {len(files)} new texts; failures: {counted}", *(line for lines in found.values() for line in lines)]


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sizes", default="small,full")
    options.add_argument("--targets", default="cuda,cpu")
    options.add_argument("--archs", default="sm_80,sm_90,sm_100", help="of NVRTC")
    options.add_argument("--keep", help="a folder that texts are left in")
    options.add_argument("--record", help="record this row in this process, and no more")
    options = options.parse_args()
    if options.record:
        return record(options.record, options.sizes.split(","))
    rows, targets = chosen(options.rows), options.targets.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        texts = Texts(folder)
        work = [(row, target) for row in rows for target in targets]
        for lines in for_each(work, options.jobs, lambda item: compile_row(*item, options, texts)):
            print("\n".join(lines), flush=True)
    failures = ", ".join(f"{compiler} {number}" for compiler, number in texts.failures.items())
    print(f"kernels of models: {len(rows)} models, {options.sizes}; texts: {texts.count('cu')} for CUDA, {texts.count('cc')} for the CPU; failures: {failures}")
    return 1 if sum(texts.failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
