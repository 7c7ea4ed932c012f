"""Runs that end before their reference rests, and eigenvalues at the origin, are drawn too."""

import numpy as np
import pytest

from flexctl.view.figures.eigenvalues import _slow_radius

WORDS = ("mohan-saha-canadarm", "mohan-saha-forced")


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_open_loop_that_is_cut_short_is_drawn(flexctl, tmp_path, command):
    target = tmp_path / "figure.png"
    said = flexctl(command, *WORDS, "--plot", target)

    assert said.status == 0
    assert target.stat().st_size > 10_000


@pytest.mark.slow
def test_an_open_loop_gets_a_report(flexctl, tmp_path):
    target = tmp_path / "report.html"

    assert flexctl("compare", *WORDS, "--report", target).status == 0
    assert "Residual errors were not judged" in target.read_text(encoding="utf-8")


def test_eigenvalues_at_the_origin_do_not_shrink_the_frame():
    swinging = np.array([2j, -2j])

    assert _slow_radius([np.concatenate([np.zeros(6), swinging])]) == pytest.approx(2.24)
    assert _slow_radius([np.zeros(4, dtype=complex)]) == pytest.approx(1.12)
