"""The forced Canadarm at stable and unstable steps, by both solvers."""

import pytest

from examples.papers.mohan_saha import stability


@pytest.fixture(scope="module")
def verdict():
    return stability.forced(1.0)


@pytest.mark.slow  # takes long
def test_in_double_precision_both_solvers_give_the_same_motion(verdict):
    assert verdict["gap"]["Cholesky", "double"] < 1e-13
    assert verdict["peak"]["Cholesky", "double"] == pytest.approx(
        verdict["peak"]["recursive", "double"], rel=1e-9
    )


@pytest.mark.slow  # takes long
def test_the_step_decides_and_not_the_solver(verdict):
    stable, unstable = stability.STEPS[:2]
    assert stable < stability.stability_limit() < unstable
    peaks = verdict["unstable peak"]
    assert min(peaks.values()) > 20 * max(verdict["peak"].values())
    assert peaks["Cholesky", "double"] == pytest.approx(peaks["recursive", "double"], rel=1e-6)
