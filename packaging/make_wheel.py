#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one wheel for several versions of PyTorch, for every Python, and for systems from glibc 2.28 on.

    make_wheel.py [--versions 2.11.0 ...] [--torches FOLDER] [--abseil ARCHIVE] [--out dist]
    make_wheel.py --sources [--abseil ARCHIVE] [--out dist]     the package of sources, Abseil's among them

FOLDER/VERSION is the environment of a version, and is made with pip where it is missing; the version that .venv holds needs none.
The same commit and compiler make the same bytes. Each version has a build of its own in build/wheel; ccache compiles what
does not depend on PyTorch once. Abseil's source is Debian's where apt has it, else the project's own.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "torch_compat"))
from versions import VERSIONS, torch_folder  # noqa: E402

PLATFORM = f"manylinux_2_28_{os.uname().machine}"
OF_OTHERS = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libgomp.so.1")  # torch's, which pip brings


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, text=True, **more)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="+", default=VERSIONS)
    parser.add_argument("--torches", type=pathlib.Path, default=ROOT / "build/torch", help="environments by version")
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("--abseil", type=pathlib.Path, help="Abseil's source, a .tar.gz")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    return parser.parse_args()


def debian_abseil():
    """Debian's archive of Abseil's source, fetched by apt with the sources of packages switched on; None without apt."""
    folder = ROOT / "build/abseil"
    if not list(folder.glob("*.orig.tar.gz")) and shutil.which("apt-get"):
        with tempfile.TemporaryDirectory() as apt:
            for name in ("lists/partial", "cache/archives/partial", "sources"):
                pathlib.Path(apt, name).mkdir(parents=True)
            for file in pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"):
                text = re.sub(r"^Types: .*", "Types: deb-src", file.read_text(), flags=re.MULTILINE)
                pathlib.Path(apt, "sources", file.name).write_text(text)
            options = [word for option in ("Etc::SourceList=/dev/null", f"Etc::SourceParts={apt}/sources", f"State::Lists={apt}/lists",
                                           f"Cache={apt}/cache") for word in ("-o", f"Dir::{option}")]
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["apt-get", *options, "update", "-qq"], capture_output=True)
            subprocess.run(["apt-get", *options, "source", "--download-only", "-qq", "abseil"], cwd=folder, capture_output=True)
    return next(folder.glob("abseil_20220623.1.orig.tar.gz"), None)


def tools():
    """The folder of the programs that pack and check, in an environment of their own."""
    environment = ROOT / "build/wheel/tools"
    pins = ROOT / "packaging/requirements.txt"
    stamp = environment / "pins"
    if not stamp.exists() or stamp.read_text() != pins.read_text():
        run(sys.executable, "-m", "venv", "--clear", environment)
        run(environment / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "--disable-pip-version-check", "-r", pins)
        stamp.write_text(pins.read_text())
    return environment / "bin"


def environment(programs, **more):
    """For builds of this commit alone: times of files are the commit's."""
    time = run("git", "log", "-1", "--format=%ct", cwd=ROOT, capture_output=True).stdout.strip()
    ours = {**os.environ, **more, "SOURCE_DATE_EPOCH": time, "PATH": f"{programs}:{os.environ['PATH']}"}
    return {name: value for name, value in ours.items() if name not in ("LAZY_BUILD_DIR", "CXX", "CXXFLAGS", "LDFLAGS")}


def make_wheel(folders, abseil, programs, out):
    cmake = ["-DLAZY_OLD_LINUX=ON", "-DLAZY_ABSEIL_SOURCE=ON", *([f"-DLAZY_ABSEIL_ARCHIVE={abseil.resolve()}"] if abseil else [])]
    # Headers of CUDA, which environments may lack: those of the first version serve them all.
    cuda = folders[0].parent / "nvidia/cu13/include"
    if cuda.exists():
        cmake.append(f"-DLAZY_CUDA_INCLUDE={cuda}")
    ours = environment(programs, LAZY_TORCH_DIRS=":".join(map(str, folders)), LAZY_CMAKE_ARGS=" ".join(cmake))
    with tempfile.TemporaryDirectory() as made:
        run(programs / "python", "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", made, ROOT,
            env=ours)
        [wheel] = pathlib.Path(made).glob("*.whl")
        excluded = [word for name in OF_OTHERS for word in ("--exclude", name)]
        run(programs / "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", *excluded, "--wheel-dir", out, wheel, env=ours)
    [wheel] = out.glob(f"torch_lazy-*-py3-none-{PLATFORM}.whl")
    return wheel


def make_sources(abseil, programs, out):
    """A package from which `pip install .` builds without fetching anything."""
    with tempfile.TemporaryDirectory() as tree:
        names = run("git", "ls-files", "-z", cwd=ROOT, capture_output=True).stdout.split("\0")
        for name in filter(None, names):
            file = pathlib.Path(tree, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, file)
        if abseil:
            shutil.copy2(abseil, pathlib.Path(tree, "packaging/abseil"))
        program = "from setuptools import build_meta; import sys; build_meta.build_sdist(sys.argv[1])"
        run(programs / "python", "-c", program, out.resolve(), cwd=tree, env=environment(programs))
    [package] = out.glob("torch_lazy-*.tar.gz")
    return package


def main():
    arguments = parse_arguments()
    abseil = arguments.abseil or debian_abseil()
    programs = tools()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.sources:
        made = make_sources(abseil, programs, arguments.out)
    else:
        folders = [torch_folder(version, arguments.torches.resolve()) for version in arguments.versions]
        made = make_wheel(folders, abseil, programs, arguments.out)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, sha256 {hashlib.sha256(made.read_bytes()).hexdigest()}")


main()
