# SPDX-License-Identifier: Apache-2.0
"""The versions of PyTorch that the sources are written for (versions.txt), and Python environments that have them."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = (ROOT / "torch_compat/versions.txt").read_text().split()  # the last of each minor version


def _torch_in(environment, version):
    for folder in environment.glob("lib/python3.*/site-packages/torch"):
        if re.search(r"__version__ = '([\d.]+)", (folder / "version.py").read_text())[1] == version:
            return folder
    return None


def torch_folder(version, environments, *more):
    """The folder torch/ of this version: of environments/version, else of .venv. What is missing is made with pip, which
    also installs `more`."""
    for environment in (environments / version, ROOT / ".venv"):
        folder = _torch_in(environment, version)
        if folder is not None:
            return folder
    print(f"{version}: installing PyTorch into {environments / version}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", environments / version], check=True)
    subprocess.run([environments / version / "bin/python", "-m", "pip", "install", "--quiet", f"torch=={version}", *more], check=True)
    return _torch_in(environments / version, version)


def python_of(torch):
    """The interpreter of the environment that a folder torch/ belongs to."""
    return torch.parents[3] / "bin/python"
