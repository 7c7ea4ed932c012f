"""How far a run goes beyond the position limits of its joints, and what is said of it."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop import close_loop
from flexctl.model import Arm, BasisChoice
from flexctl.verdict import evaluate
from flexctl.view.comparison_rows import metric_rows
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.arms import rigid_link
from tests.designs import make_design

J, DAMPING, W = 0.5, 0.2, 8.0


def limited(position):
    arm = rigid_link(inertia=J)
    link = arm.table()["link"][0] | ({"limits": {"position": position}} if position else {})
    return Arm.model_validate({**arm.table(), "name": "arm", "link": [link]})


def judged(arm):
    # J q'' = Gp (q_d - q) - Gv q': a step overshoots by exp(-pi zeta/sqrt(1 - zeta^2)) of itself
    gains = {"Gp": J * W**2, "Gv": 2 * J * DAMPING * W}
    design = make_design(
        [0.0], [1.0], "joint-pd", kind="setpoint", gains=gains, loop={"duration": 4}
    )
    truth = BasisChoice(kind="modes", order=1)
    return evaluate(close_loop(design_controller(arm, design, truth), arm, truth))


@pytest.mark.usefixtures("no_compiler")
def test_an_overshoot_beyond_a_limit_is_that_of_the_step_and_is_said():
    arm = limited([-1.0, 1.2])
    verdict = judged(arm)
    overshoot = np.exp(-np.pi * DAMPING / np.sqrt(1 - DAMPING**2))
    # the peak between two samples: that of the samples themselves is up to 3e-5 lower
    np.testing.assert_allclose(verdict.positions.excess, [overshoot - 0.2], atol=1e-7)
    said = f"its run exceeds the position limit of joint1 by {overshoot - 0.2:.3g} rad"
    assert said in explain(verdict)
    answer = to_json(verdict)
    assert answer["position_excess"] == pytest.approx([overshoot - 0.2], abs=1e-7)
    assert "beyond position limits" in [row.label for row in metric_rows([answer], arm)]


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("position", [None, [-1.0, 1.6]])
def test_within_limits_or_without_any_nothing_is_said(position):
    arm = limited(position)
    verdict = judged(arm)
    assert verdict.positions.excess.tolist() == [0.0]
    assert "position limit" not in explain(verdict)
    labels = [row.label for row in metric_rows([to_json(verdict)], arm)]
    assert "beyond position limits" not in labels
