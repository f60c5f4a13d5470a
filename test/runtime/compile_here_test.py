# SPDX-License-Identifier: Apache-2.0
"""A C++ program whose library lies without torch_lazy_compile: threads of the program compile.

Programs link libtorch.so, which comes before libstdc++ and exports functions of std::filesystem that crash in others' hands.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
import torch

BUILD = pathlib.Path(os.environ["LAZY_BUILD_DIR"])
LIBTORCH = pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so"


@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_a_cpp_program_compiles_without_the_process(tmp_path, backend):
    shutil.copy(BUILD / "lib" / "libtorch_lazy.so", tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "LAZY_CACHE_DIR": str(tmp_path / "cache")}
    environment.update(LAZY_COMPILE="sync", LAZY_BACKEND=backend, LD_PRELOAD=str(LIBTORCH))
    program = [BUILD / "bin" / "exit_program", "lazy", "8", "3", "1", "return"]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert f"torch_lazy_compile is not in {tmp_path}" in run.stderr
    assert (run.returncode, run.stdout.split()[:1]) == (3, ["ending"])
