# SPDX-License-Identifier: Apache-2.0
"""The page that option dump writes about a step."""

import re

import torch
import torch_lazy

from child import in_child


def _steps():
    x = torch.randn(500, 1000).to("lazy")
    weight = torch.randn(1000, 100).to("lazy")
    torch_lazy.sync()
    for _ in range(4):
        held = torch.relu(torch.sin(x) @ weight)
        torch_lazy.sync()
        del held


def _page(folder):
    pages = [page for page in folder.glob("*/step.html") if "sin" in page.read_text()]
    assert len(pages) == 1
    return pages[0].read_text()


def test_page_of_a_step(tmp_path):
    in_child(_steps, compile="sync", dump=str(tmp_path))
    page = _page(tmp_path)
    rows = re.findall(r'<tr id="s(\d+)"><td>\d+</td><td class="what">([\w:]+)', page)
    assert rows == [("0", "map"), ("1", "matmul"), ("2", "map")]
    assert "3 steps, 2 runs:" in page  # the first of the four meets unknown shapes, and the page is written after 1, 2, 4, ... runs
    megabytes = re.findall(r"</div></td><td>[\d.]+</td><td>([\d.]+)</td>", page)
    assert megabytes == ["4.00", "2.60", "0.40"]  # 2 x 500 x 1000 floats; 500 x 1000 + 1000 x 100 + 500 x 100; 2 x 500 x 100
    assert len(re.findall(r"<path ", page)) == 2  # from the sine to the product to the relu
    assert page.count("extern &quot;C&quot; void map_") + page.count('extern "C" void map_') == 2
    assert re.search(r"= sin %p0 : f32\[500, 1000\]|= sin %p0 : f32\[s0, s1\]", page)


def test_no_page_without_the_option(tmp_path):
    in_child(_steps, compile="sync")
    assert not list(tmp_path.iterdir())


def test_text_of_a_trace(tmp_path):
    in_child(_steps, compile="sync", dump=str(tmp_path))
    traces = [file.read_text() for file in tmp_path.glob("*/00-trace.txt") if "sin" in file.read_text()]
    assert traces == [
        "1 aten::sin(self=%0 Float[500, 1000]) -> %1 Float[500, 1000]\n"
        "2 aten::mm(self=%1, mat2=%2 Float[1000, 100]) -> %3 Float[500, 100]\n"
        "3 aten::relu(self=%3) -> %4 Float[500, 100]\n"
        "needed: %4\n"]
