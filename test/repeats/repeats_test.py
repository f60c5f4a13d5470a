# SPDX-License-Identifier: Apache-2.0
"""Under deterministic algorithms a program gives the same bits with kernels on disk or not, and whatever runs beside it."""

import os

import pytest

from repeats import one_run

STEPS = 30
PROGRAMS = ["norms", "autocast"] if os.environ.get("LAZY_BACKEND") == "stand_in" else ["norms", "evaluating", "lengths"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_cold_warm_and_beside_others(program, tmp_path):
    options = ["--deterministic", f"--steps={STEPS}"]
    cold = one_run(program, "lazy", tmp_path / "cache", *options)
    warm = one_run(program, "lazy", tmp_path / "cache", *options)
    beside = one_run(program, "lazy", tmp_path / "cache", *options, load=3)
    assert cold["counts"]["kernels_compiled"] > 0 and warm["counts"]["kernels_compiled"] == 0
    assert {warm["digest"], beside["digest"]} == {cold["digest"]}
    assert cold["counts"]["traces_interpreted"] == beside["counts"]["traces_interpreted"]
