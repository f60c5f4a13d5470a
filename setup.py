# SPDX-License-Identifier: Apache-2.0
"""Builds libtorch_lazy.so with CMake, against the torch of this environment, and puts it into the package.

    pip install --no-build-isolation .

LAZY_BUILD_DIR names a configured build to take the library from; by default it is built in build/pip/cmake.
"""
import os
import pathlib
import subprocess

import torch
from setuptools import Extension, setup
from torch.utils.cpp_extension import TORCH_LIB_PATH, BuildExtension

ROOT = pathlib.Path(__file__).parent.resolve()


class CMakeBuild(BuildExtension):
    """BuildExtension checks the compiler against torch's; the build itself is CMake's."""

    def build_extension(self, ext):
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).parent.resolve()
        build = os.environ.get("LAZY_BUILD_DIR")
        if not build:
            build = ROOT / f"build/pip/cmake-torch-{torch.__version__}"
            self.cmake("-S", ROOT, "-B", build, "-G", "Ninja", f"-DLAZY_TORCH_DIR={pathlib.Path(TORCH_LIB_PATH).parent}",
                       "-DLAZY_TESTS=OFF", "-DLAZY_BENCH=OFF", "-DLAZY_EXAMPLES=OFF")
        self.cmake("--build", build, "--target", "torch_lazy", "-j", str(os.cpu_count()))
        self.cmake("--install", build, "--prefix", package)

    @staticmethod
    def cmake(*args):
        subprocess.run(["cmake", *map(str, args)], check=True)


setup(ext_modules=[Extension("torch_lazy.libtorch_lazy", sources=[])], cmdclass={"build_ext": CMakeBuild},
      options={"build": {"build_base": "build/pip"}})
