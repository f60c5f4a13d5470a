# SPDX-License-Identifier: Apache-2.0
"""First calls import nothing that eager's do not: SymPy, which Python's shape functions bring along, takes a second."""
import subprocess
import sys

CALLS = [
    "F.gelu(x)",
    "F.gelu(x, approximate='tanh')",
    "F.gelu(torch.nn.Linear(3, 3).to('lazy')(x)).square().mean().backward()",
    "F.log_softmax(F.layer_norm(F.dropout(x), (3,)), -1)",
    "F.relu(F.conv2d(x.view(1, 1, 2, 3), x.view(1, 1, 2, 3)))",
]
PROGRAM = """
import sys, torch, torch_lazy, torch.nn.functional as F
x = torch.linspace(-2, 2, 6).view(2, 3).to("lazy")
for call in sys.argv[1:]:
    before = set(sys.modules)
    exec(call)
    torch.lazy.synchronize()
    print(call, sorted(name for name in set(sys.modules) - before if not name.startswith("torch_lazy")))
"""


def test_no_module_is_imported():
    printed = subprocess.run([sys.executable, "-c", PROGRAM, *CALLS], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [f"{call} []" for call in CALLS]
