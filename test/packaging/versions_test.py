# SPDX-License-Identifier: Apache-2.0
"""A package with libraries for several versions of PyTorch: the right one is taken, and what fits none is a sentence."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch
from helpers import attempt, build_examples, configure_examples, prefixes, run

BUILD = os.environ["LAZY_BUILD_DIR"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH = pathlib.Path(torch.__file__).parent
OURS = torch.__version__.split("+")[0]
MINOR = OURS.rpartition(".")[0]
WHERE = "import torch_lazy; print(torch_lazy._library.path())"
AS_IF = "import torch; torch.__version__ = '{}'; import torch_lazy"


def test_pages_name_the_versions():
    first, *_, last = [version.rpartition(".")[0] for version in (ROOT / "torch_compat/versions.txt").read_text().split()]
    after = f"2.{int(last.partition('.')[2]) + 1}"
    for file, words in {"pyproject.toml": f'"torch>={first},<{after}"', "README.md": f"PyTorch {first} to {last}",
                        "docs/packages.md": f"PyTorch {first} to {last}"}.items():
        assert words in (ROOT / file).read_text(), file


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, with a library that is none for a version to come."""
    folder = tmp_path_factory.mktemp("site") / "torch_lazy"
    shutil.copytree(ROOT / "python/torch_lazy", folder, ignore=shutil.ignore_patterns("__pycache__"))
    run("cmake", "--install", BUILD, "--prefix", folder)
    other = folder / "lib/torch-2.98"
    other.mkdir()
    (other / "libtorch_lazy.so").write_text("no library")
    return folder


def imports(package, program):
    return attempt(sys.executable, "-c", program, PYTHONPATH=str(package.parent))


def test_the_library_of_the_version_is_taken(package):
    assert imports(package, WHERE) == (0, f"{package}/lib/torch-{MINOR}/libtorch_lazy.so\n")


def test_a_version_that_has_none(package):
    status, printed = imports(package, AS_IF.format("2.99.0+cpu"))
    assert status == 1
    assert printed.splitlines()[-1].startswith(
        f"ImportError: torch_lazy: it was built for PyTorch {MINOR}, 2.98, and this is PyTorch 2.99.0+cpu; install the one")


@pytest.mark.parametrize("part", [0, 0.5, 0.999])
def test_a_library_that_is_cut_off(package, tmp_path, part):
    copy = shutil.copytree(package, tmp_path / "torch_lazy")
    library = copy / f"lib/torch-{MINOR}/libtorch_lazy.so"
    size = int(library.stat().st_size * part)
    os.truncate(library, size)
    status, printed = imports(copy, "import torch_lazy")
    assert status == 1
    assert printed.splitlines()[-1] == (f"ImportError: torch_lazy: {library} is damaged, of {size} bytes; install the package anew: "
                                        "`pip install --force-reinstall --no-deps torch-lazy`")


def test_no_compiler_is_one_warning(package, tmp_path):
    program = "import torch, torch_lazy\nfor _ in range(3): print(torch.ones(2, device='lazy').add(1).mul(3).sum().item())"
    status, printed = attempt(sys.executable, "-c", program, PYTHONPATH=str(package.parent), PATH=str(tmp_path), CXX="",
                              LAZY_COMPILE="sync", LAZY_CACHE_DIR=str(tmp_path / "cache"), LAZY_BACKEND="cpu")
    assert status == 0
    assert sorted(printed.splitlines()) == ["12.0"] * 3 + [
        "lazy: warning: kernels are not compiled, so ops run one by one: no C++ compiler: tried g++, c++; "
        "`pip install torch-lazy[compiler]` brings one"]


def test_the_compiler_of_the_package_is_taken_where_there_is_no_other(package, tmp_path):
    """In the place of ziglang stands a package whose program is the machine's compiler."""
    stand_in = tmp_path / "ziglang"
    stand_in.mkdir()
    (stand_in / "__init__.py").touch()
    (stand_in / "zig").write_text(f'#!/bin/sh\n[ "$1" = c++ ] && shift && : >{tmp_path}/ran && PATH=/usr/bin:/bin exec {shutil.which("g++")} "$@"\n')
    (stand_in / "zig").chmod(0o755)
    program = ("import torch, torch_lazy\nfor _ in range(3): torch.ones(2, device='lazy').add(1).mul(3).sum().item()\n"
               "print(torch_lazy.metrics()['kernel_launches'] > 0)")
    variables = {"PYTHONPATH": f"{package.parent}:{tmp_path}", "LAZY_COMPILE": "sync", "LAZY_BACKEND": "cpu"}
    for path, ran in ((os.environ["PATH"], False), (str(tmp_path / "nothing"), True)):
        cache = str(tmp_path / f"cache_{ran}")
        assert run(sys.executable, "-c", program, PATH=path, CXX="", LAZY_CACHE_DIR=cache, **variables) == "True\n"
        assert (tmp_path / "ran").exists() == ran


def libtorch(folder, without=()):
    """LibTorch as in the archive for C++ programs: libtorch/lib and libtorch/include, and nothing of Python's."""
    for part in ("lib", "include", "share"):
        (folder / part).mkdir(parents=True)
        for file in (TORCH / part).iterdir():
            if "python" not in file.name and file.name not in without:
                (folder / part / file.name).symlink_to(file)
    (folder / "build-version").write_text(OURS + "\n")
    return folder


def test_a_program_builds_against_the_archive_of_libtorch(package, tmp_path):
    archive = libtorch(tmp_path / "libtorch")
    programs = build_examples(tmp_path, prefixes(package, archive), target="training")
    assert "loss on cpu" in run(programs / "training")
    needed = subprocess.run(["readelf", "-d", programs / "training"], capture_output=True, text=True, check=True).stdout
    assert f"{archive}/lib" in needed and f"{package}/lib/torch-{MINOR}" in needed


@pytest.mark.parametrize("missing", ["libc10.so", "libgomp.so.1", "ATen"])
def test_another_layout_of_libtorch(package, tmp_path, missing):
    archive = libtorch(tmp_path / "libtorch", without=[missing])
    status, printed = configure_examples(tmp_path, prefixes(package), f"-DLAZY_TORCH_DIR={archive}")
    name = {"ATen": "include/ATen/ATen.h"}.get(missing, f"lib/{missing}")
    assert status == 1
    assert f"LibTorch in {archive} has a layout that TorchLazy does not know: {name} not found." in printed


def test_a_folder_that_is_not_libtorch(package, tmp_path):
    status, printed = configure_examples(tmp_path, prefixes(package), f"-DLAZY_TORCH_DIR={tmp_path}")
    assert status == 1
    assert (f"LibTorch in {tmp_path} has a layout that TorchLazy does not know: lib/libc10.so, lib/libtorch_cpu.so, include/ATen/ATen.h, "
            "include/torch/csrc/api/include/torch/torch.h, lib/libgomp.so.1, include/torch/headeronly/version.h not found.") in printed


def test_cmake_refuses_another_version_of_libtorch(package, tmp_path):
    archive = libtorch(tmp_path / "libtorch", without=["torch"])
    (archive / "include/torch").mkdir()
    for file in (TORCH / "include/torch").iterdir():
        if file.name != "headeronly":
            (archive / "include/torch" / file.name).symlink_to(file)
    (archive / "include/torch/headeronly").mkdir()
    (archive / "include/torch/headeronly/version.h").write_text("".join(
        f"#define TORCH_VERSION_{part} {number}\n" for part, number in (("MAJOR", 2), ("MINOR", 99), ("PATCH", 1))))
    status, printed = configure_examples(tmp_path, prefixes(package), f"-DLAZY_TORCH_DIR={archive}")
    assert status == 1
    assert f"TorchLazy was built for LibTorch {MINOR}, 2.98, and LibTorch in {archive} is 2.99.1." in printed
