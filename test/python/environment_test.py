# SPDX-License-Identifier: Apache-2.0
"""What is said about an environment in which something is amiss: one line that says what to do, and the right result."""

import os
import shutil
import subprocess
import sys

import torch

ADD = """
import torch, torch_lazy
for _ in range(3):  # compiled from the second time on
    result = (torch.ones(3, device='lazy') + 1).tolist()
print(result)
"""


def run(program=ADD, unset=(), **variables):
    """(what it printed, the lines it wrote to standard error)"""
    kept = {k: v for k, v in os.environ.items() if k not in unset}
    done = subprocess.run([sys.executable, "-c", program], env=kept | {"LAZY_COMPILE": "sync"} | variables, text=True,
                          capture_output=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


def test_misspelt_variables_and_words(tmp_path):
    printed, lines = run(LAZY_BAKEND="cpu", LAZY_DISABLE="grphs,cse", LAZY_NUMERICS="fast", LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == "[2.0, 2.0, 2.0]\n"
    assert sorted(lines) == [
        "lazy: warning: LAZY_DISABLE: there is no 'grphs', did you mean 'graphs'?",
        "lazy: warning: there is no variable LAZY_BAKEND, did you mean 'BACKEND'?",
        "lazy: warning: there is no variable LAZY_NUMERICS",
    ]


def test_options_name_themselves_once():
    program = """
import torch_lazy
for name, value in (("compil", "sync"), ("compile", "fast"), ("disable", "grphs"), ("cache_dir", "here")):
    try:
        torch_lazy.set_option(name, value)
    except ValueError as error:
        print(error)
"""
    assert run(program)[0].splitlines() == [
        "set_option: there is no option 'compil', did you mean 'compile'?",
        "set_option: compile cannot be 'fast', expected async|sync|off",
        "set_option: disable: there is no 'grphs', did you mean 'graphs'?",
        "set_option: cache_dir cannot be 'here', expected an absolute path",
    ]


def test_options_that_name_programs_and_folders_are_fixed_at_first_use(tmp_path):
    program = ADD + """
for name in ("compiler", "cache_dir"):
    try:
        torch_lazy.set_option(name, "/another")
    except ValueError as error:
        print(error)
torch_lazy.set_option("compile", "off")
"""
    printed, _ = run(program, LAZY_CACHE_DIR=str(tmp_path / "cache"))
    before = "in use, so it cannot change any more: set it, or"
    assert printed.splitlines()[1:] == [
        f"set_option: compiler is '' and {before} LAZY_COMPILER, before the device is used",
        f"set_option: cache_dir is '{tmp_path}/cache' and {before} LAZY_CACHE_DIR, before the device is used",
    ]


def test_no_home():
    printed, lines = run(unset=["HOME", "XDG_CACHE_HOME", "LAZY_CACHE_DIR"])
    assert printed == "[2.0, 2.0, 2.0]\n"
    assert lines == ["lazy: warning: compiled kernels are not kept on disk: HOME is not set (LAZY_CACHE_DIR names a folder for them)"]


def test_a_temporary_folder_that_is_missing(tmp_path):
    program = ADD + "print(torch_lazy.metrics()['kernel_launches'] > 0)"
    missing = tmp_path / "missing"
    printed, lines = run(program, TMPDIR=str(missing), LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == "[2.0, 2.0, 2.0]\nTrue\n"
    assert lines == [f"lazy: warning: temporary files are in /tmp, since {missing}: No such file or directory"]


def test_a_cache_that_others_may_read(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o755)
    printed, lines = run(LAZY_CACHE_DIR=str(cache))
    assert printed == "[2.0, 2.0, 2.0]\n"
    assert lines == [f"lazy: warning: compiled kernels are read from {cache}, and not kept there, since others may read it "
                     f"(chmod 700 {cache}, or, to share it, chmod -R a=rX)"]


def test_a_folder_in_path_is_no_compiler(tmp_path):
    (tmp_path / "bin" / "g++").mkdir(parents=True)
    program = ADD + "print(torch_lazy.metrics()['kernel_launches'] > 0)"
    printed, lines = run(program, unset=["CXX"], PATH=f"{tmp_path}/bin:{os.environ['PATH']}", LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert (printed, lines) == ("[2.0, 2.0, 2.0]\nTrue\n", [])


def test_a_program_in_the_current_folder_is_no_compiler(tmp_path):
    program = f"import os; os.chdir({str(tmp_path)!r}); " + ADD
    (tmp_path / "g++").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "g++").chmod(0o755)
    printed, _ = run(program, unset=["CXX"], PATH=f".::{os.environ['PATH']}", LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == "[2.0, 2.0, 2.0]\n" and not (tmp_path / "ran").exists()
    _, lines = run(program, CXX="./g++", LAZY_CACHE_DIR=str(tmp_path / "cache"))
    assert not (tmp_path / "ran").exists()
    assert any("no C++ compiler: tried ./g++" in line for line in lines)


def test_another_version_of_pytorch():
    program = """
import torch
torch.__version__ = "2.99.0+cpu"
try:
    import torch_lazy
except ImportError as error:
    print(error)
"""
    built_for = ".".join(torch.__version__.split("+")[0].split("."))
    assert run(program)[0].startswith(f"torch_lazy: it was built for PyTorch {built_for}, and this is PyTorch 2.99.0+cpu; ")


def test_another_version_of_libtorch(tmp_path):
    """Where all symbols are there: a warning as a C++ program meets it, and the same sentence as an error in Python."""
    source, library = tmp_path / "version.c", tmp_path / "version.so"
    source.write_text("unsigned long aoti_torch_abi_version(void) { return 2UL << 56 | 99UL << 48; }\n")
    subprocess.run([shutil.which("cc") or "g++", "-shared", "-fPIC", source, "-o", library], check=True)
    program = "try:\n  import torch_lazy\nexcept ImportError as error:\n  print(error)\n"
    printed, lines = run(program, LD_PRELOAD=str(library))
    built_for = torch.__version__.split("+")[0]
    sentence = (f"built for PyTorch {built_for}, and this is PyTorch 2.99.0: install the one it was built for, "
                "or build torch_lazy anew")
    assert lines[0] == f"lazy: warning: {sentence}"
    assert printed.strip() == f"torch_lazy: {sentence}"
