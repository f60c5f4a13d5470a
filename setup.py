# SPDX-License-Identifier: Apache-2.0
"""Builds libtorch_lazy.so with CMake and puts it into the package.

    pip install --no-build-isolation .     for the torch of this environment
    make wheel                             for all versions of PyTorch, as a wheel for others (packaging/make_wheel.py)

LAZY_TORCH_DIRS names the folders torch/ to build for, with ":" between them; without it, torch is looked for beside setuptools.
LAZY_CMAKE_ARGS are more arguments of CMake. LAZY_BUILD_DIR names a configured build to take the library from.
"""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()
SUPPORTED = [tuple(map(int, line.split(".")[:2])) for line in (ROOT / "torch_compat/versions.txt").read_text().split()]


def torch_folders():
    named = os.environ.get("LAZY_TORCH_DIRS")
    if named:
        return [pathlib.Path(folder) for folder in named.split(":")]
    found = importlib.util.find_spec("torch")
    return [pathlib.Path(found.origin).parent] if found else []


def minor_version(torch):
    return tuple(map(int, re.search(r"__version__ = '(\d+)\.(\d+)", (torch / "version.py").read_text()).groups()))


def requirement():
    """Of PyTorch: the library is bound to the minor versions whose headers it is built with."""
    versions = sorted(map(minor_version, torch_folders())) or SUPPORTED
    (_, first), (major, last) = versions[0], versions[-1]
    return f"torch>={major}.{first},<{major}.{last + 1}"


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).parent.resolve()
        shutil.rmtree(package / "lib", ignore_errors=True)  # of an earlier build, for other versions
        built = os.environ.get("LAZY_BUILD_DIR")
        if not built and not torch_folders():
            raise SystemExit("setup.py: there is no torch in this environment to build for; LAZY_TORCH_DIRS names one elsewhere")
        for build in [built] if built else map(self.configure, torch_folders()):
            self.cmake("--build", build, "--target", "torch_lazy", "-j", str(os.cpu_count()))
            self.cmake("--install", build, "--prefix", package)

    def configure(self, torch):
        build = ROOT / "build/wheel" / ".".join(map(str, minor_version(torch)))
        self.cmake("-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", f"-DLAZY_TORCH_DIR={torch}",
                   "-DLAZY_TESTS=OFF", "-DLAZY_BENCH=OFF", "-DLAZY_EXAMPLES=OFF",
                   *shlex.split(os.environ.get("LAZY_CMAKE_ARGS", "")))
        return build

    @staticmethod
    def cmake(*args):
        subprocess.run(["cmake", *map(str, args)], check=True)


class Wheel(bdist_wheel):
    """One for every Python: the library knows nothing of it."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])

    def egg2dist(self, egginfo_path, distinfo_path):
        super().egg2dist(egginfo_path, distinfo_path)
        folder = pathlib.Path(distinfo_path) / "sboms"
        folder.mkdir()
        text = (ROOT / "packaging/sbom.cdx.json").read_text()
        compiler = subprocess.run([os.environ.get("CXX", "c++"), "-dumpfullversion"], check=True, capture_output=True, text=True)
        for name, value in ("version", self.distribution.get_version()), ("torch", requirement()), ("gcc", compiler.stdout.strip()):
            text = text.replace(f"@{name}@", value)
        (folder / "torch-lazy.cdx.json").write_text(text)


setup(ext_modules=[Extension("torch_lazy.libtorch_lazy", sources=[])], install_requires=[requirement()],
      cmdclass={"build_ext": CMakeBuild, "bdist_wheel": Wheel}, options={"build": {"build_base": "build/pip"}})
