# SPDX-License-Identifier: Apache-2.0
"""First calls import nothing that eager's do not: SymPy, which Python's shape functions bring along, takes a second."""
import subprocess
import sys

import pytest

CALLS = {
    "gelu": "F.gelu(x)",
    "gelu of tanh": "F.gelu(x, approximate='tanh')",
    "training": "F.gelu(torch.nn.Linear(3, 3).to('lazy')(x)).square().mean().backward()",
    "norms": "F.log_softmax(F.layer_norm(F.dropout(x), (3,)), -1)",
    "convolution": "F.relu(F.conv2d(x.view(1, 1, 2, 3), x.view(1, 1, 2, 3)))",
}


@pytest.mark.parametrize("call", CALLS)
def test_no_module_is_imported(call):
    program = f"""
import sys, torch, torch_lazy, torch.nn.functional as F
x = torch.linspace(-2, 2, 6).view(2, 3).to("lazy")
before = set(sys.modules)
{CALLS[call]}
torch.lazy.synchronize()
print(sorted(name for name in set(sys.modules) - before if not name.startswith("torch_lazy")))
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
