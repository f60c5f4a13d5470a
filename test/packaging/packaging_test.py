# SPDX-License-Identifier: Apache-2.0
"""What is installed works outside this tree: as a CMake package and as a Python package."""
import os
import pathlib
import re
import shutil
import sys

import pytest
import torch
from helpers import EXAMPLES, build_examples, prefixes, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["LAZY_BUILD_DIR"]
OURS = torch.__version__.split("+")[0]
FOLDER = "lib/torch-" + OURS.rpartition(".")[0]
USE_DEVICE = "x = torch.ones(2, 3, device='lazy'); assert (x + x).sum().item() == 12; print('right')"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the package."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-q", "--target", folder,
        ROOT, LAZY_BUILD_DIR=BUILD)
    return folder


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The programs of examples/cpp, built against an installation that was moved; what they load lies beside them."""
    folder = tmp_path_factory.mktemp("examples")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")
    programs = build_examples(folder, prefixes(folder / "moved", torch.utils.cmake_prefix_path))
    run(sys.executable, EXAMPLES / "write_models.py", programs, PYTHONPATH=f"{BUILD}/python")
    return programs


def test_example_trains(examples):
    explained, loss = run(examples / "training").rstrip().rsplit("\n", 1)
    on_cpu, on_lazy = map(float, re.fullmatch(r"loss on cpu (\S+), on lazy (\S+)", loss).groups())
    assert on_lazy == pytest.approx(on_cpu, rel=0.01)
    calls, compiled = map(int, re.match(r"calls: (\d+), of which (\d+) ran in generated kernels", explained).groups())
    assert calls == 4409 and compiled > 4300


def test_example_loads_a_script_module(examples):
    assert run(examples / "script_module", examples / "model.pt") == "the module gives on lazy what it gives on cpu\n"


def test_example_has_operators_of_its_own(examples):
    *explained, last = run(examples / "own_operator").splitlines()
    assert last == "the operators give on lazy what they give on cpu"
    assert explained[0] == "calls: 21, of which 18 ran in generated kernels, 0 by ATen in their place in a trace, 3 at once"
    assert [line.split(": ")[:2] for line in explained if "example::" in line] == [["at once 3 times", "example::running_max"]]


def test_example_runs_an_exported_program(examples):
    printed = run(examples / "exported_program", examples / "model.pt2", examples / "weights.pt")
    sys.path.insert(0, str(EXAMPLES))
    from write_models import make_model

    lines = [line for line in printed.splitlines() if line.startswith("sum")]  # PyTorch warns that its own kernels are not used
    for rows, line in zip((8, 8, 5), lines, strict=True):
        title, sums = line.split(": ")
        assert title == f"sum of {rows} rows"
        expected = make_model()(torch.linspace(-1, 1, rows * 8).view(rows, 8)).sum(0)
        torch.testing.assert_close(torch.tensor([float(s) for s in sums.split()]), expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def libraries(prefix):
    found = sorted((prefix / FOLDER).glob("libtorch_lazy*.so"))
    assert prefix / FOLDER / "libtorch_lazy.so" in found
    return found


def test_installed_files_name_no_folder_of_this_machine(installed):
    for file in (installed / "lib/cmake/TorchLazy").iterdir():
        assert str(ROOT) not in file.read_text(), file
    assert "$ORIGIN" in run("readelf", "-d", installed / FOLDER / "libtorch_lazy.so")
    for library in libraries(installed):
        content = library.read_bytes()
        for folder in {str(ROOT), str(pathlib.Path(BUILD).resolve()), str(pathlib.Path(torch.__file__).parent)}:
            assert folder.encode() not in content, (library, folder)


def test_installed_libraries_are_stripped(installed, site):
    for prefix in (installed, site / "torch_lazy"):
        for library in libraries(prefix):
            sections = run("readelf", "-S", "-W", library)
            assert ".dynsym" in sections and ".symtab" not in sections and ".debug_" not in sections


def test_libraries_export_their_functions_alone(installed):
    exported = {}
    for library in libraries(installed):
        lines = run("nm", "-D", "--defined-only", library).splitlines()
        exported[library.name] = {line.split()[-1] for line in lines}
    functions = {"torch_lazy_set_option", "torch_lazy_take_draw", "torch_lazy_name_python_lines", "torch_lazy_why_unfit"}
    assert exported.pop("libtorch_lazy.so") == functions
    assert exported in ({}, {"libtorch_lazy_cuda.so": {"torch_lazy_cuda_graphs", "torch_lazy_cuda_products", "torch_lazy_cuda_was_seeded"}})


def test_libraries_have_no_table_to_overwrite(installed):
    for library in libraries(installed):
        assert "BIND_NOW" in run("readelf", "-d", library) or "NOW" in run("readelf", "-d", library)
        assert "GNU_RELRO" in run("readelf", "-l", library)


def test_test_hooks_are_not_in_the_library(installed):
    content = (installed / FOLDER / "libtorch_lazy.so").read_bytes()
    for hook in (b"fail_after", b"fault_pending", b"places_before_fault"):
        assert hook not in content


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
    programs = build_examples(tmp_path, prefixes(prefix.strip(), torch.utils.cmake_prefix_path), target="training")
    assert "loss on cpu" in run(programs / "training")


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
    process = copy / "torch_lazy" / FOLDER / "torch_lazy_compile"
    assert os.access(process, os.X_OK)

    def compile(cache):
        return run(sys.executable, "-c", COMPILE, PYTHONPATH=str(copy), LAZY_COMPILE="sync", LAZY_BACKEND=backend,
                   LAZY_CACHE_DIR=str(tmp_path / cache))

    assert compile("with") == ""
    process.unlink()
    assert "torch_lazy_compile is not in" in compile("without")
