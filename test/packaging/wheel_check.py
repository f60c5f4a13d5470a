#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel and checks it: what is in it, what it asks of a system, and the first loss with each version of PyTorch.

    wheel_check.py [--wheel FILE] [--versions 2.11.0 ...] [--torches FOLDER] [--twice]

Ends with a table: for each version the seconds from `pip install` to the first loss, in a clean environment that sees this version of
PyTorch and nothing else. --wheel takes a wheel that was made before; --twice makes one for the first version here and in another
folder, and compares them.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "torch_compat"))
from versions import VERSIONS, python_of, torch_folder  # noqa: E402

FUNCTIONS = {"torch_lazy_set_option", "torch_lazy_take_draw", "torch_lazy_name_python_lines", "torch_lazy_why_unfit"}
CUDA_FUNCTIONS = {"torch_lazy_cuda_graphs", "torch_lazy_cuda_products", "torch_lazy_cuda_was_seeded"}
FAMILIES = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
FIRST_LOSS = """
import torch, torch_lazy
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
x, y = torch.randn(64, 8), torch.randn(64, 1)
losses = []
for device in ("cpu", "lazy"):
    moved = [t.to(device) for t in (x, y)]
    losses.append(torch.nn.functional.mse_loss(model.to(device)(moved[0]), moved[1]).item())
assert abs(losses[0] - losses[1]) < 1e-5, losses
print(torch.__version__, torch_lazy._library.path())
"""


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        raise SystemExit(f"wheel: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def expect(right, what):
    if not right:
        raise SystemExit(f"wheel: {what}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--versions", nargs="+", default=VERSIONS)
    parser.add_argument("--torches", type=pathlib.Path, default=ROOT / "build/torch")
    parser.add_argument("--twice", action="store_true")
    return parser.parse_args()


def make(versions, torches, out, root=ROOT):
    return pathlib.Path(run(sys.executable, root / "packaging/make_wheel.py", "--versions", *versions, "--torches", torches.resolve(),
                            "--out", out).splitlines()[-1].split(": ")[0])


def check_twice(version, torches, folder):
    """Of the commit, not of what is changed and not committed."""
    for name in "first", "second":
        run("git", "clone", "--quiet", ROOT, folder / name)
        (folder / name / ".venv").symlink_to(ROOT / ".venv")
    wheels = [make([version], torches, folder / name / "dist", folder / name) for name in ("first", "second")]
    expect(wheels[0].read_bytes() == wheels[1].read_bytes(), "made twice, it is not the same")


def check_libraries(site, versions):
    for version in versions:
        folder = site / "torch_lazy/lib" / f"torch-{version.rpartition('.')[0]}"
        names = {file.name for file in folder.iterdir()}
        expect(names == {"libtorch_lazy.so", "libtorch_lazy_cuda.so", "torch_lazy_compile"}, f"{folder} has {names}")
        for name in names:
            expect(".symtab" not in run("readelf", "-SW", folder / name), f"{name} is not stripped")
            asked = run("nm", "-D", "--undefined-only", folder / name)
            expect(not re.search(r" _?Py[A-Z_]", asked), f"{name} asks for Python")
            for family, newest in FAMILIES.items():
                found = {tuple(map(int, numbers.split("."))) for numbers in re.findall(rf"@{family}_([\d.]+)", asked)}
                expect(max(found, default=newest) <= newest, f"{name} asks for {family} {max(found, default=())}")
        for name, functions in ("libtorch_lazy.so", FUNCTIONS), ("libtorch_lazy_cuda.so", CUDA_FUNCTIONS):
            exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", "--extern-only", folder / name).splitlines()}
            expect(exported == functions, f"{name} exports {exported}")


def check_papers(site):
    [papers] = site.glob("torch_lazy-*.dist-info")
    expect("Tag: py3-none-manylinux_2_28_x86_64" in (papers / "WHEEL").read_text().splitlines(), "the tag is another one")
    for licence in ("LICENSE", "packaging/licenses/abseil.txt", "packaging/licenses/gcc-runtime.txt"):
        expect((papers / "licenses" / licence).is_file(), f"{licence} is missing")
    text = (papers / "sboms/torch-lazy.cdx.json").read_text()
    bill = json.loads(text)
    expect({part["name"] for part in bill["components"]} == {"abseil-cpp", "libstdc++", "torch"}, "the bill lacks a part")
    expect(not re.search(r"@\w+@", text), "the bill has an empty place")


def first_loss(wheel, version, torches, folder):
    """Seconds from `pip install` to the first loss, in an environment that has this version of PyTorch alone."""
    python = python_of(torch_folder(version, torches))
    begin = time.monotonic()
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet", "--target", folder, wheel)
    environment = {**os.environ, "PYTHONPATH": str(folder), "LAZY_CACHE_DIR": str(folder / "cache")}
    environment.pop("LAZY_AUTOLOAD", None)
    printed = run(python, "-c", FIRST_LOSS, env=environment, cwd="/")
    seconds = time.monotonic() - begin
    found, path = printed.split()[-2:]
    expect(found.startswith(version) and f"torch-{version.rpartition('.')[0]}/" in path, f"{version}: {printed}")
    return seconds


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheel = (arguments.wheel or make(arguments.versions, arguments.torches, folder / "out")).resolve()
        zipfile.ZipFile(wheel).extractall(folder / "site")
        check_papers(folder / "site")
        check_libraries(folder / "site", arguments.versions)
        if arguments.twice:
            check_twice(arguments.versions[0], arguments.torches, folder)
        for version in arguments.versions:
            seconds = first_loss(wheel, version, arguments.torches.resolve(), folder / version)
            print(f"wheel with PyTorch {version}: first loss {seconds:.1f} s after pip install", flush=True)


main()
