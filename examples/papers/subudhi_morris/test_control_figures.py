"""Figures 7 and 8 of Subudhi and Morris are drawn, and what they show."""

import pytest

from examples.papers.subudhi_morris import control_figures


@pytest.mark.slow
def test_only_composite_control_damps_the_links():
    rings = control_figures.main()

    assert rings["composite, LQR"] < 0.02 * rings["slow control alone"]
    assert rings["composite, LQR"] < 0.02 * rings["decoupling"]


@pytest.mark.slow
def test_the_figures_of_composite_control_are_drawn(tmp_path):
    control_figures.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["subudhi-morris-fig7-8.png", "subudhi-morris-fig8-modes.png"]
