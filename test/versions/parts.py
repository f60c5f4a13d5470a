# SPDX-License-Identifier: Apache-2.0
"""What `make test-versions` runs for a version, and the table of what it has shown."""

import dataclasses
import pathlib
import re
import typing

from versions import python_of

TEST = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["torch_lazy", "torch_lazy_cuda", "torch_lazy_faults", "programs_test", "device_test", "module_test", "optimizers_test",
           "cuda_dropout_test", "cudnn_rnn_test", "lazy_fake_backend_cuda_test"]
SHARES = {"interpreted": 2, "compiled": 6}  # of op_db, each of some minutes
COLUMNS = ["builds", "loads", "programs", "op_db forward", "op_db backward", "device", "stand-in"]


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    command: typing.Callable  # of the folder torch/
    counts: typing.Callable  # {column: [passed, of how many]} of the lines of its log
    shows: str  # lines of the log that the run repeats
    limit_s: int = 1200
    builds: bool = False

    @property
    def file(self):
        return re.sub(r"\W+", "_", self.name)


def _build(build, jobs):
    script = ('cmake -S . -B "$0" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLAZY_TORCH_DIR="$1" -DLAZY_BENCH=OFF '
              '-DLAZY_EXAMPLES=OFF && cmake --build "$0" -j "$2" -- ' + " ".join(TARGETS))
    return Part("build", lambda torch: ["bash", "-c", script, str(build), str(torch), str(jobs)],
                lambda lines: {}, r"error:|^FAILED|CMake Error", limit_s=7200, builds=True)


def _ctest(name, column, build, pattern):
    """Tests of the build by their names."""

    def counts(lines):
        found = [re.search(r"(\d+) tests failed out of (\d+)", line) for line in lines]
        return {column: [int(last[2]) - int(last[1]), int(last[2])] for last in found if last}

    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-j", "2", "-R", pattern]
    return Part(name, lambda torch: command, counts, r"^\s*\d+ - |FAILED|tests failed")


def _op_db(mode, share):
    def counts(lines):
        found = [re.search(r"forward (\d+) of (\d+) ops passed, backward (\d+) of (\d+)", line) for line in lines]
        return {f"op_db {phase}": [int(last[first]), int(last[first + 1])] for last in found if last
                for phase, first in (("forward", 1), ("backward", 3))}

    program = str(TEST / "ops" / "op_db.py")
    return Part(f"op_db {mode} {share + 1}/{SHARES[mode]}",
                lambda torch: [str(python_of(torch)), program, "--mode", mode, "--shard", f"{share}/{SHARES[mode]}"],
                counts, r"^FAILED|^op_db")


def parts(build, jobs):
    python_tests = "|".join(sorted(file.stem for file in (TEST / "python").glob("*_test.py")))
    return [
        _build(build, jobs),
        _ctest("loads", "loads", build, "^self_check_test$"),
        _ctest("programs Python", "programs", build, "^programs_py_test$"),
        _ctest("programs C++", "programs", build, "^Programs/"),
        _ctest("device C++", "device", build, "^(device_test|module_test|optimizers_test)$"),
        _ctest("device Python", "device", build, f"^({python_tests})$"),
        *(_op_db(mode, share) for mode in SHARES for share in range(SHARES[mode])),
        _ctest("stand-in", "stand-in", build,
               "^((programs|rows|products|dropout)_stand_in_test|cuda_dropout_test|cudnn_rnn_test|lazy_fake_backend_cuda_test|"
               "op_db_stand_in_share)$"),
    ]


def table(outcomes):
    """`outcomes`: {version: [(part, outcome or None)]}. A cell says how many have passed of how many, and "..." if some have not
    been run."""
    lines = ["| PyTorch | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for version, results in outcomes.items():
        cells = [_builds(results)] + [_cell(results, column) for column in COLUMNS[1:]]
        lines.append(f"| {version} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _builds(results):
    built = [outcome for part, outcome in results if part.builds][0]
    return "..." if built is None else "yes" if built["passed"] else "NO"


def _cell(results, column):
    belongs = [outcome for part, outcome in results if part.name.startswith(column.split()[0])]
    counts = [outcome["counts"].get(column, [0, 1]) for outcome in belongs if outcome is not None]
    if not counts:
        return "..."
    cell = f"{sum(count[0] for count in counts)} of {sum(count[1] for count in counts)}"
    return cell if len(counts) == len(belongs) else f"{cell} ..."
