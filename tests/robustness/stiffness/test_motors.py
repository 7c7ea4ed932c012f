"""Errors of the stiffness under laws for motors: margins are those of the torques."""

import pytest

from flexctl.model import BasisChoice
from flexctl.robustness.stiffness.margin import stiffness_margin
from tests.arms import two_link, with_motors
from tests.designs import make_design

pytestmark = pytest.mark.usefixtures("no_compiler")

PER_AMPERE = 4.0
AMPERES = {"command": "current", "torque_constant": 0.04, "gear": 100.0}
VOLTS = AMPERES | {"command": "voltage", "resistance": 2.0, "back_emf": 0.1}
ENDS = ([-1.2, 0.3], [-0.5, 0.9])
GAINS = {"gains": {"Gp": [100.0], "Gv": [20.0]}, "basis": {"kind": "modes", "order": 1}}


def fast(effort):
    return {
        "fast_loop": {"weights": {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": effort}}
    }


LAWS = {
    "decoupling": ({}, {}),
    "composite": (fast(0.1), fast(0.1 * PER_AMPERE**2)),
}


def margin(arm, method, tables):
    design = make_design(*ENDS, method, **GAINS, **tables)
    truth = BasisChoice(kind="modes", order=1)
    return stiffness_margin(arm, design, truth_basis=truth, n_path=2)


@pytest.mark.slow
@pytest.mark.parametrize("method", LAWS)
def test_a_margin_does_not_depend_on_the_unit_of_the_command(method):
    arm = two_link((0.0, -9.81, 0.0), EI=40.0).model_copy()
    links = [link | {"damping_ratio": 0.02} for link in arm.table()["link"]]
    arm = type(arm).model_validate({**arm.table(), "name": "arm", "link": links})
    driven = with_motors(arm, AMPERES, AMPERES)
    pairs = zip((arm, driven), LAWS[method], strict=True)
    own, other = (margin(one, method, tables) for one, tables in pairs)

    assert other.exact.alpha_upper == pytest.approx(own.exact.alpha_upper, rel=1e-5)
    assert other.exact.alpha_lower == pytest.approx(own.exact.alpha_lower, rel=1e-5)


def test_holding_torques_beyond_the_current_refuse_a_margin():
    weak = with_motors(two_link((0.0, -9.81, 0.0), EI=40.0), VOLTS | {"current_limit": 0.05}, VOLTS)
    with pytest.raises(ValueError, match="cannot hold the arm"):
        margin(weak, "decoupling", {})
