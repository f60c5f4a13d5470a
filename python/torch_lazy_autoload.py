# SPDX-License-Identifier: Apache-2.0
"""Run inside `import torch` where the package is installed; loads the device only when LAZY_AUTOLOAD=1.

Off by default: a registered device takes torch.accelerator over, in programs that never asked for it. Not a part of the
package torch_lazy, since importing that one loads the device.
"""
import os
import warnings


def autoload():
    if os.environ.get("LAZY_AUTOLOAD") != "1":
        return
    try:
        import torch_lazy  # noqa: F401
    except Exception as error:  # an exception would end `import torch` for everyone
        warnings.warn(f"torch_lazy: LAZY_AUTOLOAD=1, but the device could not be loaded: {error}")
