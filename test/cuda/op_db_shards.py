# SPDX-License-Identifier: Apache-2.0
"""op_db against eager CUDA in many processes: op_db_shards.py [--shards 15] [--limit 60] [--seconds 160] [-- OP_DB_ARGUMENT ...]

Children of a process that has used CUDA cannot use it, so each shard is a program of its own. An op that ends its shard or
takes longer than the limit has failed, and the shard goes on behind it. Prints the failures and one line of sums.
"""

import argparse
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import time

OP_DB = pathlib.Path(__file__).resolve().parent.parent / "ops" / "op_db.py"


class Shard:
    def __init__(self, number, arguments):
        self.number, self.arguments = number, arguments
        self.results, self.size, self.under_way = {}, None, None
        self.starts_without_an_op = 0
        self.start()

    def start(self):
        command = [sys.executable, str(OP_DB), "--stream", "--jobs", "0", "--eager", self.arguments.eager, *self.arguments.op_db,
                   "--shard", f"{self.number}/{self.arguments.shards}", "--skip", str(len(self.results))]
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, stdin=subprocess.DEVNULL)
        os.set_blocking(self.child.stdout.fileno(), False)
        self.rest, self.heard = b"", time.monotonic()

    def read(self):
        """Takes what there is to read; False at the end of it."""
        data = self.child.stdout.read()
        *lines, self.rest = (self.rest + (data or b"")).split(b"\n")
        for line in lines:
            self.take(line)
        return data != b""

    def take(self, line):
        self.heard = time.monotonic()
        try:
            event = json.loads(line)
        except ValueError:
            return  # an op prints, too
        if not isinstance(event, dict):
            return
        if "names" in event:
            self.size = len(self.results) + event["names"]
        elif "begins" in event:
            self.under_way = event["begins"]
        elif "ended" in event:
            self.results[event.pop("ended")] = event
            self.under_way = None

    def silent_s(self):
        return time.monotonic() - self.heard

    def end(self, why):
        """Stops the process; whether the shard goes on in another."""
        self.child.kill()
        code = self.child.wait()
        self.errors.seek(0)
        words = " ".join(self.errors.read().decode(errors="replace").split())[-300:]
        if self.under_way is not None:
            self.results[self.under_way] = {"forward": f"{why or f'crashed: exit code {code}'} {words}"}
            self.under_way = None
            self.starts_without_an_op = 0
        elif self.size is None or len(self.results) < self.size:
            self.starts_without_an_op += 1
            print(f"shard {self.number}: {why or f'exit code {code}'} {words}", flush=True)
        return self.starts_without_an_op < 2 and (self.size is None or len(self.results) < self.size)


def run(shards, arguments):
    deadline = time.monotonic() + arguments.seconds
    selector = selectors.DefaultSelector()
    for shard in shards:
        selector.register(shard.child.stdout, selectors.EVENT_READ, shard)
    while selector.get_map() and time.monotonic() < deadline:
        ready = {key.data for key, _ in selector.select(timeout=1)}
        for shard in [key.data for key in list(selector.get_map().values())]:
            hung = shard.silent_s() > arguments.limit
            if not hung and (shard not in ready or shard.read()):
                continue
            selector.unregister(shard.child.stdout)
            if shard.end("hung: killed at its time limit" if hung else ""):
                shard.start()
                selector.register(shard.child.stdout, selectors.EVENT_READ, shard)
    for key in list(selector.get_map().values()):
        key.data.end("not done when the time was over")


def report(shards, arguments):
    results = {name: result for shard in shards for name, result in shard.results.items()}
    for name, result in sorted(results.items()):
        for phase in "forward", "backward":
            if result.get(phase) is not None:
                print(f"FAILED {name}: {result[phase][:300]}")
    unknown = sum(shard.size is None for shard in shards)
    missing = sum((shard.size or 0) - len(shard.results) for shard in shards if shard.size)
    sums = []
    for phase in "forward", "backward":
        outcomes = [result[phase] for result in results.values() if phase in result]
        sums.append(f"{phase} {outcomes.count(None)} of {len(outcomes)}")
    calls = sum(result.get("calls", 0) for result in results.values())
    left = f", {missing} ops not reached" + (f", {unknown} shards not begun" if unknown else "") if missing or unknown else ""
    print(f"op_db {' '.join(arguments.op_db)} against {arguments.eager}: {', '.join(sums)} ({calls} calls{left})")
    is_good = all(result.get(phase) is None for result in results.values() for phase in ("forward", "backward"))
    return bool(results) and is_good and not left


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=15)
    parser.add_argument("--limit", type=float, default=60, help="seconds an op may take; a shard's start, too")
    parser.add_argument("--seconds", type=float, default=160, help="for all")
    parser.add_argument("--eager", default="cuda")
    parser.add_argument("op_db", nargs="*", help="arguments of op_db.py, behind --")
    arguments = parser.parse_args()
    shards = [Shard(number, arguments) for number in range(arguments.shards)]
    run(shards, arguments)
    sys.exit(not report(shards, arguments))


if __name__ == "__main__":
    main()
