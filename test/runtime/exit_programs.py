# SPDX-License-Identifier: Apache-2.0
"""Programs that work on a device and end in some way with work pending, and what is left of them.

A program is a language ("C++" or "Python"), work and a way to end. Each runs in a process of its own, on the lazy and on the
eager device. C++ programs are runs of exit_program (exit_program.cc). Python programs are forked by a server that has imported
PyTorch and used no device: such a child ends like any other Python.

    python3 exit_programs.py DEVICE SIZE STEPS SYNC WAY    one of them, in a Python of its own
"""
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

STATUS = 3
CPP_WAYS = ("return", "exit", "_exit", "quick_exit", "throw", "abort", "terminate", "kill", "exit_in_thread", "works_at_exit",
            "fork", "fork_quickly")
PYTHON_WAYS = ("end", "sys.exit", "os._exit", "raise", "sys.exit_in_thread", "os._exit_in_thread", "interrupt", "abort",
               "terminate", "kill", "works_at_exit", "daemon_works", "fork", "fork_quickly")


@dataclasses.dataclass(frozen=True)
class Work:
    """Steps of matrices of `size`; `sync`: each is waited for. `cold`: no kernel is on disk, so that some are being compiled."""
    size: int
    steps: int
    sync: bool
    cold: bool


WORKS = {
    "compile": Work(32, 4, True, True),      # the second step asks for kernels
    "plan": Work(32, 2, True, True),         # just asked for
    "run ahead": Work(32, 60, False, False),
    "tuning": Work(128, 9, True, False),     # products of 2 million operations take turns for 24 runs; graphs come with the third
    "nothing": Work(32, 0, True, False),
}


def make(device, size):
    import torch
    return [torch.full((size, size), value, device=device) for value in (0.5, 0.25)]


def step(tensors, sync):
    x, w = tensors
    y = x.mm(w).mul(0.01).tanh()
    w.sub_(y.mul(y).sum(0, keepdim=True), alpha=1e-3)
    if sync:
        y.sum().item()


def print_ending():
    os.write(1, f"ending {time.monotonic_ns()} {time.process_time_ns()}\n".encode())


def fork(tensors, end):
    child = os.fork()
    if child == 0:
        end(STATUS + 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    step(tensors, True)
    print_ending()
    sys.exit(STATUS if status == STATUS + 1 else 100 + status)


def end_in_thread(end):
    thread = threading.Thread(target=end, args=(STATUS,))
    thread.start()
    thread.join()


def work_for_ever(tensors):
    while True:
        step(tensors, True)


def end(way, tensors):
    import atexit
    if way == "fork":
        fork(tensors, sys.exit)
    if way == "fork_quickly":
        fork(tensors, os._exit)
    if way == "daemon_works":
        threading.Thread(target=work_for_ever, args=(tensors,), daemon=True).start()
        time.sleep(0.02)
    print_ending()
    if way == "sys.exit":
        sys.exit(STATUS)
    if way == "os._exit":
        os._exit(STATUS)
    if way == "raise":
        raise ValueError("uncaught")
    if way == "sys.exit_in_thread":
        end_in_thread(sys.exit)
    if way == "os._exit_in_thread":
        end_in_thread(os._exit)
    if way == "interrupt":
        signal.raise_signal(signal.SIGINT)
    if way == "abort":
        os.abort()
    if way == "terminate":
        signal.raise_signal(signal.SIGTERM)
    if way == "kill":
        signal.raise_signal(signal.SIGKILL)
    if way == "works_at_exit":
        atexit.register(step, tensors, True)
        sys.exit(STATUS)


def run_here(device, size, steps, sync, way):
    tensors = make(device, size)
    for _ in range(steps):
        step(tensors, sync)
    globals()["kept"] = tensors  # until the interpreter ends
    end(way, tensors)


@dataclasses.dataclass
class Outcome:
    status: int      # as a shell would say it: 128 and more for signals
    delay_s: float   # from "ending" to the process's end; negative: it did not say so
    cpu_s: float     # of processor time meanwhile
    errors: str      # what it wrote to standard error


def _wait(pid, limit_s, readers):
    """The outcome of a child that writes to two readers."""
    deadline, ended, status, usage = time.monotonic() + limit_s, 0, 0, None
    while ended == 0 and time.monotonic() < deadline:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended == 0:
            time.sleep(0.0005)
    ended_at = time.monotonic_ns()
    if ended == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return Outcome(-1, limit_s, limit_s, "did not end")
    code = os.waitstatus_to_exitcode(status)
    said = [line.split() for line in readers[0].text().splitlines() if line.startswith("ending ")]
    delay, cpu = -1.0, -1.0
    if said:
        delay = (ended_at - int(said[-1][1])) * 1e-9
        cpu = usage.ru_utime + usage.ru_stime - int(said[-1][2]) * 1e-9
    return Outcome(code if code >= 0 else 128 - code, delay, cpu, readers[1].text())


def run_alone(program, environment, device, work, way, limit_s=60):
    """`program`: the words that begin its command."""
    command = [*program, device, str(work.size), str(work.steps), str(int(work.sync)), way]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return _wait(process.pid, limit_s, (_Reader(process.stdout), _Reader(process.stderr)))


class _Reader:
    """What comes through a pipe until all who have its other end are gone, or two seconds have passed since it was asked for."""

    def __init__(self, pipe):
        self._parts = []
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe):
        for line in pipe:
            self._parts.append(line)

    def text(self):
        self._thread.join(2)
        return "".join(self._parts)


class PythonServer:
    """Forks a child for each program. To be made by a process that has imported torch and torch_lazy and used no device."""

    def run(self, environment, device, work, way, limit_s=60):
        ours = [os.pipe(), os.pipe()]
        child = os.fork()
        if child == 0:
            for number, (reads, writes) in enumerate(ours, start=1):
                os.dup2(writes, number)
                os.close(reads)
                os.close(writes)
            os.environ.clear()
            os.environ.update(environment)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise _RunInChild(device, work, way)
        readers = []
        for reads, writes in ours:
            os.close(writes)
            readers.append(_Reader(os.fdopen(reads)))
        return _wait(child, limit_s, readers)


class _RunInChild(BaseException):
    """Takes a forked child out of whatever forked it, so that it ends as a script does."""


def serve(main):
    """Runs main() in this process, and the programs of its PythonServers in children of it."""
    try:
        return main()
    except _RunInChild as run:
        device, work, way = run.args
    run_here(device, work.size, work.steps, work.sync, way)


def processes_left(temporary):
    """Command lines of living processes whose TMPDIR is this folder or below it: what programs with that TMPDIR have left."""
    wanted = f"TMPDIR={temporary}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(variable.startswith(wanted) for variable in (folder / "environ").read_bytes().split(b"\0")):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended
    return [line for line in found if line]


if __name__ == "__main__":
    import torch_lazy  # noqa: F401
    run_here(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1", sys.argv[5])
