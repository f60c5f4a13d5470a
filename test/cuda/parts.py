# SPDX-License-Identifier: Apache-2.0
"""What `make test-cuda` runs: each part a command of its own, with its environment and its limit."""

import dataclasses
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TEST = HERE.parent
PYTHON = sys.executable
SHARES = {"graphs_test": 3, "memory_test": 3, "tokens_test": 3}  # files whose tests start many processes, one after the other
SHARDS = max(2, min(15, os.cpu_count() - 1))
EAGER = os.environ.get("LAZY_TEST_EAGER", "cuda")


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    command: list  # {seconds}: how long it may take
    limit_s: int
    environment: dict = dataclasses.field(default_factory=dict)
    processors: int = 2
    shows: str = r"passed|failed"  # lines of the log that the summary repeats, the last of them


def _pytest(file):
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-rfE", "-s", str(file)]
    shows = r"^peak|^FAILED|^ERROR|\d (passed|failed|error)"
    shares = SHARES.get(file.stem, 1)
    shared = [("", [])] if shares == 1 else [(f" {k}/{shares}", [f"--share={k}/{shares}"]) for k in range(1, shares + 1)]
    return [Part(file.stem + name, command + option, 240, {"LAZY_TEST_EAGER": EAGER}, shows=shows) for name, option in shared]


def _programs(name, cases, **environment):
    command = [PYTHON, str(TEST / "programs" / "programs_test.py"), *cases]
    return Part(f"programs {name}", command, 200, {"LAZY_TEST_EAGER": EAGER, **environment}, shows=r"drift|^Ran|^OK|^FAILED|^FAIL:")


def _op_db(dtype, mode, limit_s, samples):
    command = [PYTHON, str(HERE / "op_db_shards.py"), "--eager", EAGER, "--shards", str(SHARDS), "--seconds", "{seconds}", "--",
               "--dtype", dtype, "--mode", mode, "--samples", str(samples)]
    # Shards wait for the GPU now and then: what runs beside them takes no more than the rest.
    return Part(f"op_db {dtype} {mode}", command, limit_s, {"OMP_NUM_THREADS": "1"}, SHARDS * 2 // 3, r"^op_db|^FAILED|^shard")


def _repeats():
    programs = ["norms", "evaluating", "autocast", "gpt"]
    command = [PYTHON, str(TEST / "repeats" / "repeats.py"), *programs, "--eager", EAGER, "--runs", "3", "--jobs", "6"]
    return Part("repeats", command, 240, processors=8, shows=r" s |NOT THE SAME|Error")


def _fuzz(mode, count):
    command = [PYTHON, str(TEST / "fuzz" / "random_programs.py"), "--eager", EAGER, "--mode", mode, "--programs", str(count), "--jobs", "5"]
    return Part(f"random programs {mode}", command, 200, {"OMP_NUM_THREADS": "1"}, 5, r"^random programs|^FAILED")


def _sanitizer(tool):
    command = [PYTHON, str(HERE / "sanitize.py"), tool]
    # Graphs and PyTorch's cache of memory would hide what is written out of bounds.
    environment = {"LAZY_COMPILE": "sync", "LAZY_DISABLE": "graphs", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    return Part(f"compute-sanitizer {tool}", command, 200, environment, 1, r"ERROR SUMMARY|not found|^right|Invalid|hazard|Uninit|Error")


def parts(kit, samples, num_devices=1):
    """`num_devices`: GPUs; what is about several is left out where there is one."""
    files = [*sorted(HERE.glob("*_test.py")), TEST / "ops" / "shapes_test.py", TEST / "runtime" / "failed_kernels_test.py",
             TEST / "python" / "dynamic_sizes_test.py"]
    if num_devices > 1:
        files += [TEST / "runtime" / f"devices{name}_test.py" for name in ("", "_training")]
    alone = [PYTHON, str(HERE / "each_alone.py"), "--jobs", "4", "--limit", "90", "--"]
    return [
        _op_db("float32", "interpreted", 130, samples),
        _op_db("float32", "compiled", 200, samples),
        _op_db("bfloat16", "interpreted", 130, samples),
        _op_db("bfloat16", "compiled", 200, samples),
        Part("backend", [str(kit / "bin" / "backends_cuda_test"), "--gtest_brief=1"], 120, shows=r"FAILED|PASSED|Failure"),
        *(part for file in files for part in _pytest(file)),
        _programs("interpreted", ["Losses"], LAZY_COMPILE="off"),
        _programs("compiled", [], LAZY_COMPILE="sync"),
        _programs("compiled, no graphs", ["Losses"], LAZY_COMPILE="sync", LAZY_DISABLE="graphs"),
        Part("programs C++", [*alone, str(kit / "bin" / "programs_test"), f"--eager={EAGER}"], 240, {"LAZY_COMPILE": "sync"}, 4,
             r"^FAILED|^each alone|drift"),
        _repeats(),
        *(_sanitizer(tool) for tool in ("memcheck", "racecheck", "initcheck")),
        _fuzz("interpreted", 400),
        _fuzz("compiled", 60),
    ]
