"""Figures 4 and 5 of Mohan and Saha are drawn, and what they show."""

import pytest

from examples.papers.mohan_saha import figures


def test_the_torques_of_the_rigid_canadarm_leave_its_joints_4_mrad_off():
    # joint 3, by two integrators that agree to 1e-8
    assert figures.main() == pytest.approx(4.43502e-3, rel=1e-4)


def test_the_figures_of_mohan_and_saha_are_drawn(tmp_path):
    figures.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["mohan-saha-fig4.png", "mohan-saha-fig5.png"]
