"""Claims of [TG95]: sections 2 and 3 and the appendix, and their numbers."""

import pytest

from examples.papers.theodore_ghosal import conclusions, control, dynamics, kinematics

M_3, M_P, RHO_A = 0.4303, 0.0828, 0.331  # table 3
MIDDLE = 0.65  # m: free length of link 3 in the middle of the motion


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (kinematics.transformations, "holds"),
        (kinematics.slopes_of_modes, "differs"),
        (kinematics.axes_of_slopes, "differs"),
        (kinematics.hermite, "holds"),
        (kinematics.data, "holds"),
        (dynamics.sliding_inertia, "differs"),
        (dynamics.strain_energy, "differs"),
        (dynamics.gravity, "differs"),
        (dynamics.row_of_the_sliding_joint, "differs"),
        (dynamics.coriolis, "holds"),
        (dynamics.inverse, "differs"),
        (dynamics.definite, "holds"),
        (control.decoupling, "differs"),
        (control.joint_errors, "differs"),
        (control.bounded_response, "holds"),
        pytest.param(control.second_loop, "holds", marks=pytest.mark.slow),
        pytest.param(conclusions.recommendation, "differs", marks=pytest.mark.slow),
    ],
)
def test_a_claim_has_its_verdict_and_says_why(make, verdict):
    claim = make()

    assert claim.verdict == verdict
    assert verdict == "holds" or claim.why


@pytest.mark.parametrize(
    ("make", "number", "low", "high"),
    [
        (kinematics.slopes_of_modes, "right", 0, 1e-9),
        (kinematics.slopes_of_modes, "printed", 0.3, 0.4),
        (dynamics.sliding_inertia, "right", M_3 + M_P - 1e-12, M_3 + M_P + 1e-12),
        (dynamics.sliding_inertia, "stretched", M_P + RHO_A * MIDDLE / 3 - 1e-12, 0.15452),
        (dynamics.strain_energy, "right", 4 - 1e-9, 4 + 1e-9),
        (dynamics.inverse, "right", 0, 1e-12),
        (control.decoupling, "right", 0, 1e-9),
        (control.decoupling, "printed_3", 200, 300),
        (control.joint_errors, "right", -20 - 1e-6, -20 + 1e-6),
    ],
)
def test_a_number_lies_where_it_was_found(make, number, low, high):
    assert low <= make().numbers[number] <= high


def test_the_row_of_the_sliding_joint_is_the_slope_of_the_strain_energy():
    numbers = dynamics.row_of_the_sliding_joint().numbers

    assert numbers["right"] == pytest.approx(numbers["slope"], rel=1e-7)


def test_holding_joint_2_takes_the_weights_times_their_levers():
    # Link 2 at 45 deg, link 3 at right angles to it, 0.65 m in its hub and 0.65 m out of it: its
    # centre is on joint 3, only the payload lies beyond.
    lever, g = 2**-0.5, 9.81
    torque = g * lever * (RHO_A * 1.0 * 0.5 + M_3 * 1.0 + M_P * (1.0 + MIDDLE))

    assert dynamics.gravity().numbers["right"] == pytest.approx(torque, rel=1e-4)
