"""Figures 4 to 6 of Subudhi and Morris are drawn, and what they show."""

from functools import partial

import numpy as np
import pytest

from examples.papers.subudhi_morris import bang_bang_figures as bang_bang


@pytest.mark.parametrize("damping", [0.0, 0.01])
@pytest.mark.parametrize("joints", ["flexible", "rigid"])
@pytest.mark.slow  # takes long
def test_the_energy_account_of_the_bang_bang_runs_closes(joints, damping):
    flexible, rigid = bang_bang.figures(damping)

    assert {"flexible": flexible, "rigid": rigid}[joints].energy.imbalance < 1e-9


@pytest.mark.slow
def test_tips_deflect_more_with_flexible_joints_only_below_five_newton_metres():
    assert 5.0 < bang_bang.main() < 5.5


@pytest.mark.parametrize("damping", [0.0, 0.01])
@pytest.mark.slow  # takes long
def test_at_the_stiffness_of_the_paper_both_tips_deflect_less(damping):
    (point,) = bang_bang.sweep(damping, [bang_bang.PAPER])

    assert point.peak == pytest.approx((0.98, 0.953), abs=2e-3)


@pytest.mark.slow  # the limit of figures 4 to 6; tests/plant has that of the equations
@pytest.mark.parametrize("damping", [0.0, 0.01])
def test_tips_tend_to_those_with_rigid_joints_in_proportion_to_the_softness(damping):
    # one over the stiffness: past its coarse range at 1e3, integrated to 1e-10
    softer, stiffer = bang_bang.sweep(damping, [1e3, 1e4])

    assert np.subtract(1, softer.peak) / np.subtract(1, stiffer.peak) == pytest.approx(10, rel=0.1)


@pytest.mark.slow_but("100.0-0.9-1.1")
@pytest.mark.parametrize(("stiffness", "low", "high"), [(1.0, 0, 0.1), (100.0, 0.9, 1.1)])
def test_tips_do_not_decay_only_behind_soft_joints(stiffness, low, high):
    (point,) = bang_bang.sweep(0.01, [stiffness])

    assert low < point.decay[0] / point.decay[1] < high


@pytest.mark.slow  # compiles long
def test_the_figures_of_subudhi_and_morris_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(bang_bang, "sweep", partial(bang_bang.sweep, stiffness=[1.0, 5.0, 100.0]))
    bang_bang.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    names = ("fig4-5", "fig6", "stiffness")
    assert drawn == [f"subudhi-morris-{name}.png" for name in names]
