"""Errors of the stiffness that move the equilibrium: their limits against scans of the errors."""

import numpy as np
import pytest

from flexctl import design_controller, load_design, load_model
from flexctl.loop import close_loop
from flexctl.model import apply_settings
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.stiffness.followed_equilibria import _dips, stiffness_family


def family_along(direction, design="vertical-2r-lqg", settings=()):
    """Loops whose law computes with stiffnesses that are wrong in a direction (p,)."""
    arm = apply_settings(load_model("vertical-2r"), settings)
    controller = design_controller(arm, load_design(design), parameters=(STIFFNESS_ERROR,))
    loop = close_loop(controller, arm)
    weight = controller.final_second_loop_weight
    return stiffness_family(loop, controller.reference.final, weight, np.array(direction))


def first_unstable(family, errors):
    """The last stable and the first unstable one of errors, from equilibrium to equilibrium."""
    here = family.start
    for error in errors:
        there = family.at(float(error), here)
        if there is None or there.grows:
            return here.error, float(error)
        here = there
    return None


@pytest.mark.slow
def test_an_interval_of_unstable_errors_between_stable_ones_is_not_stepped_over():
    # unstable from 0.79 to 1.55, by 0.1 1/s at most, and stable again up to 4.6
    family = family_along([0.62654048, 0.82551115, 0.21327155, 0.45899312])
    stable, unstable = first_unstable(family, np.linspace(0.02, 1.0, 50))
    assert stable < family.end(1).alpha < unstable
    assert family.end(1).alpha == pytest.approx(0.7896866, rel=1e-6)


@pytest.mark.slow
def test_at_the_limit_of_an_undamped_arm_the_mode_that_grows_is_named():
    # next to it that of 29 000 rad/s has a real part of 1e-7 1/s by round-off
    keys = ("damping_ratio", "flexible_joint.damping")
    undamped = [f"link{k}.{key}=0" for k in (1, 2) for key in keys]
    end = family_along(np.ones(4), settings=undamped).end(1)
    assert end.alpha == pytest.approx(0.2775613, rel=1e-6)
    assert end.frequency == pytest.approx(144.06, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("direction", [[0.63, 0.83, 0.21, 0.46], [1.0, -0.5, 0.0, 0.7]])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_direction_and_its_opposite_have_the_same_limits(direction, sign):
    one, other = family_along(direction), family_along(-np.array(direction))
    assert one.end(sign).alpha == pytest.approx(-other.end(-sign).alpha, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("direction", [[1.0, -0.5, 0.0, 0.7], [-0.3, -1.0, -0.2, 0.0]])
def test_limits_of_mixed_errors_are_those_of_a_scan(direction, sign):
    family = family_along(direction)
    farthest = family.highest if sign > 0 else -family.lowest
    places = np.arange(0.02, family._place(farthest, sign), 0.02)
    found = first_unstable(family, [sign * family._size(place, sign) for place in places])
    assert found is not None
    low, high = sorted(map(abs, found))
    assert low * (1 - 1e-4) <= abs(family.end(sign).alpha) <= high * (1 + 1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_places_are_the_logarithm_of_what_is_left_of_the_stiffness(sign):
    family = family_along([0.5, -2.0, 0.0, 0.1], "vertical-2r-pd")
    assert family._size(family._place(0.3, sign), sign) == pytest.approx(0.3)
    left = 1 - 0.3 * (2.0 if sign > 0 else 0.5)
    assert family._place(0.3, sign) == pytest.approx(-np.log(left))


@pytest.mark.parametrize(
    ("distances", "least"),
    [
        ((4.0, 1.0, 1.0), 0.625),  # 1.5 s^2 - 1.5 s + 1 at s = -1, 0 and 1
        ((3.0, 2.0, 1.0), None),  # straight
        ((1.0, 2.0, 1.0), None),  # away from the axis and back
    ],
)
def test_a_dip_is_the_least_of_a_parabola(distances, least):
    before, here, there = (np.array([x]) for x in distances)
    near = min(distances[1:])
    expected = 0.0 if least is None else (near - least) / (0.7 * near)
    assert _dips(before, here, there, 1.0, np.ones(1)) == pytest.approx(expected)


def test_a_path_that_dips_through_the_axis_between_stable_errors_is_refused():
    s = np.array([-0.5, 0.0, 1.0])
    before, here, there = ((s - 0.6) ** 2 - 0.05)[:, None]
    assert _dips(before, here, there, 2.0, np.ones(1)) > 1
