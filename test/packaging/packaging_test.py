# SPDX-License-Identifier: Apache-2.0
"""What is installed works outside this tree: as a CMake package and as a Python package."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = os.environ["LAZY_BUILD_DIR"]
USE_DEVICE = "x = torch.ones(2, 3, device='lazy'); assert (x + x).sum().item() == 12; print('right')"


def run(*command, **variables):
    """Runs a command without this tree's Python path; returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LAZY_AUTOLOAD")} | variables
    done = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, cwd="/")
    assert done.returncode == 0, done.stdout
    return done.stdout


def build_outside(tmp_path, *prefixes):
    """Builds the outside project against what is installed at `prefixes`, and runs it."""
    source = shutil.copytree(HERE / "outside", tmp_path / "outside")
    run("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={';'.join(str(p) for p in prefixes)}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/outside").endswith("right\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the package."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-q", "--target", folder,
        ROOT, LAZY_BUILD_DIR=BUILD)
    return folder


def test_cmake_package_can_be_moved_and_found(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "moved")
    build_outside(tmp_path, tmp_path / "moved", torch.utils.cmake_prefix_path)


def test_installed_files_name_no_folder_of_this_machine(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path)
    for file in (tmp_path / "lib/cmake/TorchLazy").iterdir():
        assert str(ROOT) not in file.read_text(), file
    dynamic = run("readelf", "-d", tmp_path / "lib/libtorch_lazy.so")
    assert str(ROOT) not in dynamic and "$ORIGIN" in dynamic


def test_python_package_brings_the_device(site):
    assert run(sys.executable, "-c", f"import torch, torch_lazy; {USE_DEVICE}", PYTHONPATH=str(site)) == "right\n"


def test_python_package_can_be_imported_before_torch(site):
    for autoload in ("0", "1"):
        printed = run(sys.executable, "-c", f"import torch_lazy, torch; {USE_DEVICE}", PYTHONPATH=str(site),
                      LAZY_AUTOLOAD=autoload)
        assert printed == "right\n"


def test_autoload_is_off_by_default_and_on_when_asked(site):
    tell = "import torch; print(hasattr(torch, 'lazy'))"
    assert run(sys.executable, "-c", tell, PYTHONPATH=str(site)) == "False\n"
    assert run(sys.executable, "-c", tell, PYTHONPATH=str(site), LAZY_AUTOLOAD="1") == "True\n"


def test_cpp_program_builds_against_the_python_package(site, tmp_path):
    prefix = run(sys.executable, "-c", "import torch_lazy; print(torch_lazy.cmake_prefix_path)", PYTHONPATH=str(site))
    build_outside(tmp_path, prefix.strip(), torch.utils.cmake_prefix_path)


COMPILE = """
import torch, torch_lazy
x = torch.ones(2, 3, device='lazy')
for _ in range(2):  # the first time shapes are learned
    assert (x * 2 + x).sum().item() == 18
metrics = torch_lazy.metrics()
assert metrics["kernels_compiled"] > 0 and metrics["kernel_launches"] > 0, metrics
"""


@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_compiles_without_the_process_beside_the_library(site, tmp_path, backend):
    copy = tmp_path / "site"
    shutil.copytree(site / "torch_lazy", copy / "torch_lazy")
    process = copy / "torch_lazy/lib/torch_lazy_compile"
    assert os.access(process, os.X_OK)

    def compile(cache):
        return run(sys.executable, "-c", COMPILE, PYTHONPATH=str(copy), LAZY_COMPILE="sync", LAZY_BACKEND=backend,
                   LAZY_CACHE_DIR=str(tmp_path / cache))

    assert compile("with") == ""
    process.unlink()
    assert "torch_lazy_compile is not in" in compile("without")
