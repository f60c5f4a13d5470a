# SPDX-License-Identifier: Apache-2.0
"""The environment in which programs of a kit (tools/cuda_kit.sh) find its libraries, PyTorch's and CUDA's."""

import importlib.util
import os
import pathlib


def kit_environment(kit, **more):
    """A copy of this process's environment, with the kit's folders first. `kit`: a kit, or a build folder."""
    kit = pathlib.Path(kit).resolve()
    if not (kit / "lib" / "libtorch_lazy.so").is_file():
        raise SystemExit(f"{kit} has no lib/libtorch_lazy.so: run `make cuda-kit` where the project is built")
    torch = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0])
    libraries = [kit / "lib", torch / "lib", *sorted((torch.parent / "nvidia").glob("*/lib"))]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _joined(libraries, os.environ.get("LD_LIBRARY_PATH")),
        "PYTHONPATH": _joined([kit / "python", kit / "site"], os.environ.get("PYTHONPATH")),
        "OMP_WAIT_POLICY": "passive",  # threads that spin would hold up the processes beside
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LAZY_BUILD_DIR": str(kit),
        **{key: str(value) for key, value in more.items()},
    }


def _joined(folders, rest):
    return os.pathsep.join([*map(str, folders), *filter(None, [rest])])
