"""State feedback after composite control: torques about the final equilibrium."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.control.second_loop import passive_rows, second_loop_model
from flexctl.errors import DesignError, InputError
from flexctl.model.design import Design
from flexctl.model.refusals import build_file
from flexctl.plant.linearisation import linearise
from tests.two_scales import ARMS, HEAVY, arm_of, design_of, pose_of, weights

EVERY = [*ARMS, *HEAVY]
WEIGHTS = {"joint_error": 10.0, "joint_rate": 1.0, "strain_energy": 2.0, "kinetic_energy": 0.5}
SECOND = {"weights": WEIGHTS | {"effort": 0.1}, "decay": 0.8}


def made(name, second=SECOND, **more):
    arm = arm_of(name)
    return design_controller(arm, design_of(arm, fast=weights(), second_loop=second, **more))


def state_of(plant, seed):
    rng = np.random.default_rng(seed)
    q, v = plant.straight(0.97 * pose_of(plant.arm)), rng.normal(size=plant.n)
    q[plant.m :] += rng.uniform(-0.01, 0.01, plant.n - plant.m)
    return q, v


def torque(controller, s, q, v):
    end, none = pose_of(controller.plant.arm), np.zeros(controller.plant.m)
    return np.array(controller.law(s, [], end, none, none, q, v)[0]).ravel()


@pytest.mark.slow_but("subudhi-morris", "rigid-links", "heavy-sliding")
@pytest.mark.parametrize("name", EVERY)
def test_it_feeds_back_the_deviation_from_the_final_equilibrium(name):
    controller = made(name)
    plant = controller.plant.folded
    linear = linearise(plant, plant.straight(pose_of(plant.arm)))
    q, v = state_of(plant, 3)
    order = [*plant.drives, *passive_rows(plant.n, plant.drives)]
    x = np.concatenate([(q - linear.q0)[order], v[order]])
    expected = linear.tau0 - controller.feedback.gain @ x
    np.testing.assert_allclose(torque(controller, 1.0, q, v), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["mixed", "heavy-sliding"])
def test_in_the_gross_motion_the_law_is_composite_control_alone(name):
    second, plain = made(name), made(name, second=None)
    q, v = state_of(second.plant, 4)
    first, after, between = (torque(second, s, q, v) for s in (0.0, 1.0, 0.3))
    np.testing.assert_allclose(first, torque(plain, 0.0, q, v), rtol=1e-12)
    np.testing.assert_allclose(between, 0.7 * first + 0.3 * after, rtol=1e-9)
    assert np.abs(after - first).max() > 1e-3
    assert (second.final_second_loop_weight, plain.final_second_loop_weight) == (1.0, 0.0)


@pytest.mark.parametrize("name", EVERY)
def test_its_model_is_the_arm_under_torques(name):
    plant = made(name, second=None).plant.folded
    linear = linearise(plant, plant.straight(pose_of(plant.arm)))
    A, B = second_loop_model(linear, plant.drives, torques=True)
    rng = np.random.default_rng(7)
    x, tau = rng.normal(size=2 * plant.n), rng.normal(size=plant.m)
    order = [*plant.drives, *passive_rows(plant.n, plant.drives)]
    q, v = np.zeros((2, plant.n))
    q[order], v[order] = x[: plant.n], x[plant.n :]
    force = linear.B @ tau - linear.D @ v - linear.K @ q
    rate = A @ x + B @ tau
    np.testing.assert_allclose(rate[: plant.n], x[plant.n :])
    np.testing.assert_allclose(linear.M[np.ix_(order, order)] @ rate[plant.n :], force[order])


def test_gains_grow_with_the_inertia_where_nothing_bends_much():
    # A and B of the rotor's side of one stiff joint: with ten times all masses and stiffness, and a
    # tenth of the effort in squares of torques, the same motion takes ten times the torques
    arm, second = arm_of("rigid-links"), {"decay": 2.0}
    gains = []
    for factor in (1.0, 10.0):
        table = arm.table()
        for link in table["link"]:
            link["mass_per_length"] *= factor
            link["joint_inertia"] *= factor
            for key in ("rotor_inertia", "stiffness", "damping"):
                link["flexible_joint"][key] *= factor
        table["payload"]["mass"] *= factor
        table["payload"]["inertia"] = [factor * x for x in table["payload"]["inertia"]]
        heavy = type(arm).model_validate(table | {"name": "arm"})
        design = design_of(heavy, fast=None, second_loop=second)
        gains.append(design_controller(heavy, design).feedback.gain)
    np.testing.assert_allclose(gains[1], 10 * gains[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (
            {"weights": WEIGHTS | {"effort": 1.0}, "gain": [[1.0]]},
            "gain: expected no such key besi",
        ),
        ({"decay": 1.0, "gain": [[1.0]]}, "gain: expected no such key beside decay"),
        (
            {"solver": "scipy"},
            "weights: expected a value .or decay or gain in its place., got noth",
        ),
        ({"decay": 0.0}, "decay: expected more than 0, got 0"),
        ({"decay": "fast"}, 'decay: expected a number, got "fast"'),
        ({"gain": [[1.0]], "schedule": 3}, "schedule: expected no such key, as the gain is given"),
        ({"decay": 1.0, "schedule": 1}, "schedule: expected 0, or at least 2 poses, got 1"),
        (
            {"decay": 1.0, "schedule": 3, "switch": {"blend": 0.1}},
            "switch: expected no such key beside schedule",
        ),
    ],
)
def test_one_meaning_each_or_a_refusal_in_one_line(second, words):
    table = design_of(arm_of("mixed")).table() | {"second_loop": second}
    with pytest.raises(InputError, match=rf"^trial: second_loop\.{words}") as caught:
        build_file(Design, table, "trial", None)
    assert "\n" not in str(caught.value)


def test_a_gain_of_another_plant_is_refused():
    with pytest.raises(InputError, match=r"second_loop.gain: expected an array of shape \(2, "):
        made("rigid-joints", second={"gain": np.ones((2, 2)).tolist()})


def test_a_given_gain_is_used_as_it_is_and_says_so():
    gain = 0.5 * made("mixed").feedback.gain
    controller = made("mixed", second={"gain": gain.tolist()})
    np.testing.assert_array_equal(controller.feedback.gain, gain)
    assert "the gain of the second loop is given and follows from no weights" in (
        controller.assumptions
    )


def test_a_designed_decay_is_among_the_assumptions():
    said = [words for words in made("mixed").assumptions if "decay at 0.8 1/s or faster" in words]
    assert len(said) == 1


@pytest.mark.parametrize(("damping", "words"), [(0.0, "is not stable"), (0.001, "decays at ")])
def test_a_twist_that_no_torque_moves_is_refused_by_name(damping, words):
    # joints turn across the lines of a planar arm: they never twist these
    table = arm_of("rigid-joints").table()
    first, last = table["link"]
    last = last | {"torsion": {"GJ": 2.0, "polar_inertia": 1e-3}, "damping_ratio": damping}
    twisting = type(arm_of("mixed")).model_validate(table | {"name": "t", "link": [first, last]})
    design = design_of(twisting, fast=None, second_loop={"decay": 2.0})
    with pytest.raises(
        DesignError, match=rf"second loop: the mode at .*mode . of the arm.* {words}"
    ):
        design_controller(twisting, design)
