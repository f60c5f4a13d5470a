# SPDX-License-Identifier: Apache-2.0
"""The device "lazy" for PyTorch: calls are recorded, and run later, fused and compiled.

    import torch, torch_lazy
    x = torch.ones(3, device="lazy")

Importing loads libtorch_lazy.so and registers the device and its module torch.lazy. No other call is needed.
"""
import torch

from . import _library

_library.load()

from . import _accelerator, _compatibility, _compiler, _lines, _sharing, device  # noqa: E402  (they need the library)
from .control import explain, metrics, reset_metrics, set_option, sync  # noqa: E402
from .replay import make_replayable  # noqa: E402

torch.utils.rename_privateuse1_backend("lazy")
torch._register_device_module("lazy", device)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
_accelerator.apply()
_compatibility.apply()
_sharing.enable()
_lines.enable()
_compiler.use_what_pip_has()

# For CMake: -DCMAKE_PREFIX_PATH=`python -c "import torch_lazy; print(torch_lazy.cmake_prefix_path)"`
cmake_prefix_path = _library.cmake_prefix_path()

__all__ = ["cmake_prefix_path", "explain", "make_replayable", "metrics", "reset_metrics", "set_option", "sync"]
