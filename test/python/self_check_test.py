# SPDX-License-Identifier: Apache-2.0
"""A PyTorch that the library cannot serve: one sentence that names both versions and the way out, and PyTorch works on."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

OURS = torch.__version__.split("+")[0]
WAY_OUT = "install the one it was built for, or build "
IMPORT = """
import torch
{before}
try:
    import torch_lazy
except ImportError as error:
    print(error)
print(torch.ones(2).sum().item())
"""
VERSION = "#include <cstdint>\nextern \"C\" uint64_t aoti_torch_abi_version() { return uint64_t{2} << 56 | uint64_t{99} << 48; }"
DEAF_HOOK = """
namespace c10 { struct StorageImpl; namespace impl::cow { void materialize_cow_storage(StorageImpl&) {} } }
"""


def run(program, tmp_path=None, instead=None):
    """(what it printed, what it wrote to standard error); `instead`: C++ functions in the place of PyTorch's."""
    environment = dict(os.environ)
    if instead is not None:
        library = tmp_path / "instead.so"
        subprocess.run([shutil.which("g++"), "-std=c++17", "-shared", "-fPIC", "-x", "c++", "-", "-o", library], input=instead,
                       text=True, check=True)
        environment["LD_PRELOAD"] = str(library)
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_python_names_both_versions():
    lines, _ = run(IMPORT.format(before="torch.__version__ = '2.99.0'"))
    assert lines[0].startswith(f"torch_lazy: it was built for PyTorch {OURS}, and this is PyTorch 2.99.0; {WAY_OUT}")
    assert lines[1:] == ["2.0"]


def test_the_library_names_both_versions(tmp_path):
    lines, said = run(IMPORT.format(before=""), tmp_path, VERSION)
    sentence = f"built for PyTorch {OURS}, and this is PyTorch 2.99.0: {WAY_OUT}torch_lazy anew"
    assert lines == [f"torch_lazy: {sentence}", "2.0"]
    assert said == f"lazy: warning: {sentence}\n"


def test_calls_of_a_program_without_the_package_raise_the_sentence(tmp_path):
    program = f"""
import torch
import types
torch._register_device_module("lazy", types.ModuleType("lazy"))
torch.ops.load_library({str(os.path.join(os.environ["LAZY_BUILD_DIR"], "lib", "libtorch_lazy.so"))!r})
try:
    torch.ones(2, device="lazy")
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(torch.ones(2).sum().item())
"""
    lines, _ = run(program, tmp_path, VERSION)
    assert lines == [f"lazy: built for PyTorch {OURS}, and this is PyTorch 2.99.0: {WAY_OUT}torch_lazy anew", "2.0"]


@pytest.mark.skipif(tuple(map(int, OURS.split(".")[:2])) > (2, 12), reason="its hook is compiled into who calls it")
def test_a_storage_that_does_not_ask(tmp_path):
    lines, _ = run(IMPORT.format(before=""), tmp_path, DEAF_HOOK)
    assert lines == [f"torch_lazy: built for PyTorch {OURS}, and this is PyTorch {OURS}, whose storages do not ask before they "
                     f"are written: {WAY_OUT}torch_lazy anew", "2.0"]
