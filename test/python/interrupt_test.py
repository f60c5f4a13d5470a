# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a compiler is waited for."""
import os
import signal
import subprocess
import sys
import time

PROGRAM = """
import signal, torch, torch_lazy
x = torch.ones(8, device="lazy")
def work():
    return x.mul(3).add(1).sum().item()
torch_lazy.set_option("compile", "off")
work()  # the first time shapes are learned
torch_lazy.set_option("compile", "sync")
print("waits", flush=True)
{body}
"""
LOUD = """
try:
    print(work())
    print("goes on")
except KeyboardInterrupt:
    torch_lazy.set_option("compile", "off")
    print("interrupted", work())
"""
QUIET = """
def handler(*_):
    torch_lazy.set_option("compile", "off")
    print("handler", work())
    torch_lazy.set_option("compile", "sync")
    open({go!r}, "w").close()
signal.signal(signal.SIGINT, handler)
print(work(), torch_lazy.metrics()["kernel_launches"])
print(work(), torch_lazy.metrics()["kernels_compiled"], torch_lazy.metrics()["kernel_launches"] > 0)
"""


def run_and_interrupt(tmp_path, body, compiler):
    """What the program prints, which is interrupted when its compiler has begun."""
    script = tmp_path / "compiler"
    begun = tmp_path / "begun"
    script.write_text(f"#!/bin/sh\ntouch {begun}\n{compiler}\n")
    script.chmod(0o700)
    environment = {**os.environ, "LAZY_COMPILER": str(script), "LAZY_CACHE_DIR": str(tmp_path / "cache"),
                   "LAZY_BACKEND": "cpu"}
    program = subprocess.Popen([sys.executable, "-c", PROGRAM.format(body=body)], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        while not begun.exists():
            assert program.poll() is None, program.stderr.read()
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=100)
    finally:
        program.kill()
    return output.split("\n"), errors, program.returncode


def test_ends_the_wait(tmp_path):
    """The compiler never ends."""
    lines, errors, status = run_and_interrupt(tmp_path, LOUD, "exec sleep 1000")
    assert (lines, status) == (["waits", "interrupted 32.0", ""], 0), errors


def test_uncaught_ends_the_program_as_everywhere(tmp_path):
    lines, errors, status = run_and_interrupt(tmp_path, "print(work())", "exec sleep 1000")
    assert lines == ["waits", ""] and status == -signal.SIGINT, errors
    assert "KeyboardInterrupt" in errors


def test_a_handler_that_does_not_raise(tmp_path):
    """It runs after the call that waited, and may compute; the next call waits again."""
    go = tmp_path / "go"
    lines, errors, status = run_and_interrupt(tmp_path, QUIET.format(go=str(go)), f'while [ ! -e {go} ]; do sleep 0.05; done\nexec g++ "$@"')
    assert (lines, status) == (["waits", "handler 32.0", "32.0 0", "32.0 1 True", ""], 0), errors
