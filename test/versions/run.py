# SPDX-License-Identifier: Apache-2.0
"""Builds and tests the device against several versions of PyTorch, in parts that can be resumed.

    run.py [PATTERN ...] [--versions 2.11.0 ...] [--torches FOLDER] [--builds FOLDER] [--jobs N] [--again] [--list]

Runs the parts whose names match a pattern ("2.13*", "*/op_db*"), one after the other. A part that has passed with the
library as it is now is not run again, so that a run which was stopped goes on where it was; --again runs it all the same.
FOLDER/VERSION is the environment of a version, and is made with pip where it is missing; the version that .venv holds needs
none. Logs and outcomes are beside each build. Ends with a table of all that has been run, and with 1 unless what was chosen
has passed.
"""

import argparse
import fnmatch
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "torch_compat"))
from parts import parts, table  # noqa: E402
from versions import VERSIONS, torch_folder  # noqa: E402

NEEDED = ("numpy", "expecttest", "pytest")  # beside PyTorch, as requirements.txt pins them


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--versions", nargs="+", default=VERSIONS)
    parser.add_argument("--torches", type=pathlib.Path, default=ROOT / "build" / "torch", help="environments by version")
    parser.add_argument("--builds", type=pathlib.Path, default=ROOT / "build", help="builds by version")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=math.inf, help="no part begins later")
    parser.add_argument("--again", action="store_true", help="also what has passed")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


class Version:
    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.build = (arguments.builds / name).resolve()
        self.logs = self.build / "versions"
        self.parts = parts(self.build, arguments.jobs)

    def outcome(self, part):
        """What the part has shown when it last ran; None if it has not, or with another library."""
        try:
            outcome = json.loads((self.logs / f"{part.file}.json").read_text())
        except FileNotFoundError:
            return None
        return outcome if part.builds or outcome["library"] == self.library() else None

    def library(self):
        library = self.build / "lib" / "libtorch_lazy.so"
        return library.stat().st_mtime_ns if library.exists() else None

    def run(self, part):
        self.logs.mkdir(parents=True, exist_ok=True)
        pins = [line.split()[0] for line in (ROOT / "requirements.txt").read_text().splitlines()
                if line.partition("==")[0] in NEEDED]
        torch = torch_folder(self.name, self.arguments.torches.resolve(), *pins)
        log = self.logs / f"{part.file}.log"
        started = time.monotonic()
        status = self.execute(part.command(torch), log, part.limit_s)
        lines = log.read_text(errors="replace").splitlines()
        outcome = {"passed": status == 0, "status": status, "seconds": round(time.monotonic() - started),
                   "library": self.library(), "counts": part.counts(lines)}
        (self.logs / f"{part.file}.json").write_text(json.dumps(outcome))
        print(f"{self.name}/{part.name}: {'passed' if status == 0 else 'FAILED'} in {outcome['seconds']} s, see {log}",
              *("    " + line[:200] for line in lines if re.search(part.shows, line)), sep="\n", flush=True)
        return outcome

    def execute(self, command, log, limit_s):
        """The exit status, None at the time limit; the whole process group ends with the command."""
        environment = {**os.environ, "PYTHONPATH": str(self.build / "python"), "LAZY_BUILD_DIR": str(self.build),
                       "PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "passive"}
        with open(log, "w") as out:
            child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def run_all(versions, chosen, again, seconds):
    """Whether all has passed. What cannot be built is not tested."""
    good, started = True, time.monotonic()
    for version in versions:
        for part in (part for part in version.parts if chosen(version, part)):
            before = version.outcome(part)
            if before is not None and before["passed"] and not part.builds and not again:
                continue
            if time.monotonic() > started + seconds:
                return False
            if not version.run(part)["passed"]:
                good = False
                if part.builds:
                    break
    return good


def main():
    arguments = parse_arguments()
    versions = [Version(name, arguments) for name in arguments.versions]

    def chosen(version, part):
        return any(fnmatch.fnmatchcase(f"{version.name}/{part.name}", pattern) for pattern in arguments.patterns)

    if arguments.list:
        print("\n".join(f"{version.name}/{part.name}" for version in versions for part in version.parts if chosen(version, part)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the part under way is stopped
    good = run_all(versions, chosen, arguments.again, arguments.seconds)
    print(table({version.name: [(part, version.outcome(part)) for part in version.parts] for version in versions}))
    sys.exit(not good)


if __name__ == "__main__":
    main()
