# SPDX-License-Identifier: Apache-2.0
"""docs/options.md is what the table in base/flags.h says; LAZY_UPDATE_GOLDENS=1 rewrites it."""
import os
import pathlib
import subprocess

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/options.md"


def test_page_is_current():
    program = pathlib.Path(os.environ["LAZY_BUILD_DIR"]) / "bin/options_page"
    page = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    if "LAZY_UPDATE_GOLDENS" in os.environ:
        PAGE.write_text(page)
    assert PAGE.read_text() == page
