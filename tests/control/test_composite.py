"""Composite control: the law's parts one by one, gains given and designed, the schedule."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.control.fast_loop import design_fast_loop
from flexctl.control.singular_perturbation import separate_time_scales
from flexctl.errors import DesignError, InputError
from flexctl.model.law import FastWeights
from flexctl.model.lookup import load_design
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of
from tests.two_scales import (
    ARMS,
    HEAVY,
    arm_of,
    design_of,
    out_of_balance,
    pose_of,
    quasi_steady,
    stiff_twin,
    stiffened,
    weights,
)

LIGHT, EVERY, ANGLES = list(ARMS), [*ARMS, *HEAVY], ["link", "rotor"]
COLUMNS = ["link1.y.1", "link1.y.2", "link2.y.1", "link2.y.2", "rotor1", "rotor2"]
NEVER = {"Kp": [[1.0] * 6] * 2, "Kv": [[0.5] * 6] * 2, "columns": COLUMNS}


def law_at(controller, q_d, v_d, a_d, q, v):
    return np.array(controller.law(0.0, [], q_d, v_d, a_d, q, v)[0]).ravel()


def made(name, angle="rotor", fast=None, **more):
    arm = arm_of(name)
    return design_controller(arm, design_of(arm, angle, fast, **more))


@pytest.mark.slow_but("rigid-links-rotor", "subudhi-morris-rotor")
@pytest.mark.parametrize(
    ("name", "angle"),
    [
        *((n, "rotor") for n in ("subudhi-morris", "rigid-links", "sliding")),
        ("heavy-sliding", "link"),
    ],
)
def test_slow_control_is_computed_torque_of_the_arm_with_rigid_joints(name, angle):
    arm, rng = arm_of(name), np.random.default_rng(3)
    twin = stiff_twin(arm)
    decoupling = design_of(arm, slow_loop=None, method="decoupling")
    q, (v, v_d, a_d) = 0.9 * pose_of(arm), rng.normal(size=(3, len(arm.links)))
    soft = design_controller(arm, design_of(arm, angle))
    hard = design_controller(twin, decoupling)
    straight = soft.plant.straight
    found = law_at(soft, pose_of(arm), v_d, a_d, straight(q), straight(v))
    np.testing.assert_allclose(found, law_at(hard, pose_of(arm), v_d, a_d, q, v), rtol=1e-11)


@pytest.mark.slow_but("sliding-rotor", "rigid-joints-rotor", "rigid-links-link")
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", LIGHT)
def test_fast_gains_multiply_the_fast_positions_and_their_rates(name, angle):
    controller = made(name, angle, weights())
    plant, none = controller.plant, np.zeros(controller.plant.m)
    at = (0.0, [], pose_of(plant.arm), none, none, plant.straight(pose_of(plant.arm)))
    J = controller.evaluate("law_jacobian", *at, np.zeros(plant.n))[0]
    T_z = controller.fast.scales.T[:, plant.m :]
    expected = -np.hstack([controller.fast.Kp, controller.fast.Kv])
    found = np.hstack([J[:, : plant.n] @ T_z, J[:, plant.n :] @ T_z])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", EVERY)
def test_what_is_not_a_torque_vanishes_at_the_quasi_steady_deflection(name, angle):
    # moving, accelerating, under gravity: z_qs read off the law, put into the inverse dynamics
    arm = stiffened(arm_of(name), 1e6)
    controllers = [
        design_controller(arm, design_of(arm, angle, f))
        for f in (None, weights(1e6), weights(1e6, quasi_steady=False))
    ]
    plant, rng = controllers[0].plant, np.random.default_rng(5)
    rates = rng.normal(size=(2, plant.m))
    S, T = plant.straight, controllers[1].fast.scales.T
    at = (pose_of(arm), 0 * rates[0], rates[1], S(0.99 * pose_of(arm)), S(rates[0]))
    slow, full, without = (law_at(c, *at) for c in controllers)
    np.testing.assert_allclose(without, slow, rtol=1e-12)  # undeflected: z = 0
    z = quasi_steady(plant, T, at, slow, full - slow, controllers[1].fast.Kp)
    assert np.abs(z).max() <= 1e-4  # or the next line would say little
    rest = out_of_balance(plant, T, at, slow, z)
    assert np.abs(rest).max() <= 1e-4 * np.abs(slow).max()


@pytest.mark.slow_but("rotor-heavy-sliding", "link-heavy-sliding")
@pytest.mark.parametrize("name", list(HEAVY))
@pytest.mark.parametrize("angle", ANGLES)
def test_the_torque_at_rest_tends_to_what_holds_the_arm(name, angle):
    # order one in epsilon: the deflected arm weighs on its joints a little otherwise
    errors = []
    for factor in (100.0, 1000.0):
        arm = stiffened(arm_of(name), factor)
        controller = design_controller(arm, design_of(arm, angle, weights(factor)))
        rest, none = linearise(controller.plant, controller.plant.straight(pose_of(arm))), [0.0] * 3
        m, v = controller.plant.m, np.zeros(controller.plant.n)
        tau = law_at(controller, pose_of(arm), none[:m], none[:m], rest.q0, v)
        errors.append(np.abs(tau - rest.tau0).max())
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("name", EVERY)
def test_the_fast_loop_is_stable_and_solves_its_riccati_equation(name):
    fast = made(name, fast=weights()).fast
    assert fast.poles.real.max() < 0
    assert fast.lqr.residual < 1e-9
    np.testing.assert_allclose(
        np.sort(fast.lqr.poles.imag), np.sort(fast.poles.imag), rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("factor", [10.0, 1e4])
@pytest.mark.parametrize("name", LIGHT)
def test_scaled_gains_are_the_same_for_every_stiffness(name, factor):
    soft, hard = (
        separate_time_scales(plant_of(arm), pose_of(arm))
        for arm in (arm_of(name), stiffened(arm_of(name), factor))
    )
    n_z, cost = len(soft.names), {"strain_energy": 2.0, "kinetic_energy": 0.5}
    found = design_fast_loop(hard, FastWeights(**cost, effort=0.1 / factor)).gain
    expected = design_fast_loop(soft, FastWeights(**cost, effort=0.1)).gain
    ratio = np.repeat([factor, np.sqrt(factor)], n_z)
    np.testing.assert_allclose(
        found / ratio, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max()
    )


def test_energies_weigh_what_they_say():
    # from any start the cost is that of the energies along the optimal motion: V = x'Px
    scales = separate_time_scales(plant_of(arm_of("mixed")), pose_of(arm_of("mixed")))
    lqr = design_fast_loop(scales, FastWeights(strain_energy=3.0, kinetic_energy=2.0, effort=0.2))
    A, B = scales.fast
    n_z, closed = len(scales.names), A - B @ lqr.gain
    Q = np.zeros_like(A)
    Q[:n_z, :n_z], Q[n_z:, n_z:] = 1.5 * scales.K_z, 1.0 * np.linalg.inv(scales.H_f)
    rest = closed.T @ lqr.cost + lqr.cost @ closed + Q + 0.2 * lqr.gain.T @ lqr.gain
    assert np.abs(rest).max() <= 1e-8 * np.abs(Q).max()


def units_of(arm, modes):
    """Own coordinates per unit of the file's, as in `COLUMNS`, from the model file's figures."""
    plant = plant_of(arm)
    if modes == "tip":
        shapes = [body.planes["y"].value(1.0)[:, 0] for body in plant.bodies]
        return np.concatenate([1 / shapes[0], 1 / shapes[1], [1.0, 1.0]])
    K = separate_time_scales(plant, pose_of(arm)).K_z.diagonal()[2:]
    w = np.concatenate([arm.expect[f"link_frequencies.link{j}.y"].value for j in (1, 2)])
    return np.concatenate([np.sqrt(w**2 * 0.1 / K), [1.0, 1.0]])  # (46): k = w^2 m, m = rho l


@pytest.mark.parametrize("modes", ["tip", "mass", None])
@pytest.mark.parametrize("scaled", [True, False])
def test_given_gains_are_read_in_the_terms_they_are_given_in(modes, scaled):
    arm = arm_of("subudhi-morris")
    expected = made("subudhi-morris", fast=weights()).fast
    order = [expected.scales.names.index(name) for name in COLUMNS]
    unit = units_of(arm, modes) if modes else np.ones(6)
    k_c = min(expected.scales.K_z.diagonal()[order] * unit**2) if scaled else 1.0
    Kp, Kv = expected.Kp[:, order] * unit / k_c, expected.Kv[:, order] * unit / np.sqrt(k_c)
    fast = {"Kp": Kp.tolist(), "Kv": Kv.tolist(), "columns": COLUMNS, "scaled": scaled}
    found = made("subudhi-morris", fast=fast | ({"modes": modes} if modes else {})).fast
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"columns": [*COLUMNS[:5], "rotor3"]},
            "fast_loop.columns: expected each fast position of",
        ),
        ({"Kp": [[1.0] * 6] * 3}, "fast_loop.Kp: expected 2 rows, one per joint of subudhi-morris"),
        (
            {"Kv": [[1.0] * 6]},
            "fast_loop.Kv: expected 2 rows, one per joint of subudhi-morris-2r, ",
        ),
    ],
)
def test_given_gains_that_do_not_fit_the_arm_are_refused(change, message):
    with pytest.raises(InputError, match=f"trial: {message}") as caught:
        made("subudhi-morris", fast=NEVER | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("modes", ["tip", "mass"])
def test_given_gains_mean_the_same_for_a_line_written_in_pieces(modes):
    arm = arm_of("subudhi-morris")
    table = arm.table()
    for link in table["link"]:
        rho_A = link["mass_per_length"]
        link["mass_per_length"] = {"x": [0, 0.4, 1], "value": [rho_A] * 3}
    pieces = type(arm).model_validate(table | {"name": arm.name})
    gains = np.arange(1.0, 13.0).reshape(2, 6).tolist()
    fast = {"Kp": gains, "Kv": gains, "columns": COLUMNS, "modes": modes}
    found, expected = (
        design_controller(a, design_of(arm, fast=fast)).fast.gains for a in (pieces, arm)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("modes", "units"), [("tip", [2.0, np.sqrt(2)]), ("mass", [1.0, 1.0])])
@pytest.mark.parametrize("pieces", [False, True])
def test_gains_of_a_twist_mean_what_those_of_bending_mean(modes, units, pieces):
    # clamped and free: psi(1) = 2 of bending, sqrt(2) of twist; both have the mass of the line
    table = arm_of("rigid-joints").table()
    polar = {"x": [0, 0.4, 1], "value": [1e-4] * 3} if pieces else 1e-4
    table["link"] = [table["link"][0] | {"torsion": {"GJ": 3.0, "polar_inertia": polar}}]
    arm = type(arm_of("rigid-joints")).model_validate(table | {"name": "twisting"})
    fast = {"Kp": [[3.0, 5.0]], "Kv": [[0.2, 0.4]], "columns": ["link1.y.1", "link1.twist.1"]}
    basis = BasisChoice(order=1)
    found, plain = (
        design_controller(arm, design_of(arm, fast=f), basis).fast.gains
        for f in (fast | {"modes": modes}, fast)
    )
    np.testing.assert_allclose(found, plain * np.tile(units, 2), rtol=1e-9)


def test_elements_have_no_modes_to_normalise():
    arm, names = arm_of("rigid-joints"), ["node2.deflection", "node2.slope"]
    fast = {"columns": [f"link{j}.y.{name}" for j in (1, 2) for name in names], "modes": "tip"}
    fast |= {"Kp": [[1.0] * 4] * 2, "Kv": [[1.0] * 4] * 2}
    with pytest.raises(InputError, match=r'expected no such key with basis\.kind "elements"'):
        design_controller(arm, design_of(arm, fast=fast), BasisChoice(kind="elements", order=1))


@pytest.mark.parametrize("fast", [None, weights()])
def test_a_rigid_arm_is_refused_in_words(make, fast):
    arm = make["rigid"]()
    with pytest.raises(
        InputError, match=r"a flexible link \(EI\) or a flexible joint, got a rigid one"
    ):
        design_controller(arm, design_of(arm, fast=fast))


def test_a_wide_path_needs_more_poses_than_two():
    arm = arm_of("sliding")
    reference = {"kind": "quintic", "from": [0.0, 0.5], "to": [1.0, 0.9], "duration": 2.0}
    design = design_of(arm, fast=weights(schedule=2), reference=reference)
    with pytest.raises(
        DesignError,
        match=r"fast_loop\.schedule: expected gains "
        r"interpolated within",
    ):
        design_controller(arm, design)


@pytest.fixture(scope="module")
def scheduled():
    arm = arm_of("sliding")
    reference = {"kind": "quintic", "from": [0.0, 0.5], "to": [1.0, 0.9], "duration": 2.0}
    return design_controller(arm, design_of(arm, fast=weights(schedule=9), reference=reference))


@pytest.mark.parametrize("share", [0.0, 0.137, 0.5, 0.81, 1.0])
def test_a_schedule_gives_the_gains_designed_at_the_pose(scheduled, share):
    pose = np.array([0.0, 0.5]) + share * np.array([1.0, 0.4])
    scales = separate_time_scales(scheduled.plant, pose)
    expected = design_fast_loop(scales, scheduled.design.fast_loop.weights).gain
    J = np.array(
        scheduled.evaluate(
            "law_jacobian",
            0.0,
            [],
            pose,
            [0, 0],
            [0, 0],
            scheduled.plant.straight(pose),
            np.zeros(5),
        )[0]
    )
    found = -np.hstack([J[:, :5] @ scales.T[:, 2:], J[:, 5:] @ scales.T[:, 2:]])
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= max(2 * scheduled.fast.interpolation_error, 1e-12)


def test_the_schedule_is_worth_it(scheduled):
    # the gains of the end are far from those of the start
    change = np.linalg.norm(scheduled.fast.at(0.0) - scheduled.fast.at(1.0))
    assert change > 10 * scheduled.fast.interpolation_error * np.linalg.norm(scheduled.fast.at(0.0))
    assert change > 0.1 * np.linalg.norm(scheduled.fast.at(0.0))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("subudhi-morris-printed", "the fast subsystem is not stable under these gains (pole at"),
        ("subudhi-morris-slow-only", "slow control alone: no feedback damps the vibrations"),
        ("subudhi-morris-too-fast", "the slow law measures the link angles, which are not colloc"),
        ("subudhi-morris-lqr", "the slow law measures the rotor angles, collocated with the torq"),
    ],
)
def test_a_catalogue_design_says_what_it_rests_on(name, said):
    controller = design_controller(arm_of("subudhi-morris"), load_design(name))
    assert any(sentence.startswith(said) for sentence in controller.assumptions)
