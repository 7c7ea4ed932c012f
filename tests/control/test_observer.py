"""The observer: the Kalman filter against python-control, what it reads, what it cannot see."""

import control
import numpy as np
import pytest

from flexctl import close_loop, design_controller
from flexctl.errors import DesignError, InputError
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise

ALL = ["encoder", "tachometer", "strain_gauge"]
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}


def observed(make, arm, m=None, measures=ALL, start=None, **tables):
    """Controller of an arm with an observer, from 0 to 0.5 at every joint."""
    m = m or len(arm.links)
    tables.setdefault("loop", {"measures": list(measures)})
    design = make["design"]([0.0] * m if start is None else start, [0.5] * m, **tables)
    return design_controller(arm, design, BasisChoice(kind="modes", order=2))


def flexible_two_link(make, gravity=(0.0, -9.81, 0.0)):
    """Two flexible links under gravity, the second joint flexible, the first rigid."""
    links = [dict(link) for link in make["two-link"](gravity).table()["link"]]
    links[1]["flexible_joint"] = ROTOR
    return make["arm"](links, gravity, {"mass": 0.2})


ARMS = {
    "single": lambda make: make["single"](),
    "elastic joint": lambda make: make["single"](flexible_joint=ROTOR),
    "two-link": lambda make: make["two-link"]((0.0, -9.81, 0.0)),
    "both": flexible_two_link,
}


@pytest.fixture(scope="module", params=ARMS)
def controller(request, make):
    return observed(make, ARMS[request.param](make))


def steady(controller):
    """A, C of the design plant at the final pose, intensities of what disturbs it and of noise.

    Torques of 0.1 N m s^1/2, a force at the tip of 0.1 N s^1/2; they work on v and the tip's rate.
    """
    plant = controller.plant
    linear = linearise(plant, plant.straight(controller.reference.final))
    read = controller.observer.instruments
    forces = 0.1**2 * (
        plant.B @ plant.B.T + sum(np.outer(J, J) for J in tip_rows(plant, linear.q0))
    )
    inverse = np.linalg.inv(linear.M)
    n = plant.n
    W = np.zeros((2 * n, 2 * n))
    W[n:, n:] = inverse @ forces @ inverse
    return linear.A_state, read.C, (W + W.T) / 2, read.V


def tip_rows(plant, q):
    """Derivatives of the tip's coordinates by q (3, n), by differences."""
    h = 1e-6
    return np.array([plant.tip(q + h * e) - plant.tip(q - h * e) for e in np.eye(plant.n)]).T / (
        2 * h
    )


def test_gain_and_covariance_are_those_of_python_control(controller):
    # states in units of their error and readings in units of their noise: rates and deflections
    # differ too much in size for a solver that does not scale them
    A, C, W, V = steady(controller)
    found = controller.observer
    s, R = np.sqrt(np.diag(found.covariance)), np.linalg.cholesky(V)
    disturbed = W / np.outer(s, s)
    L, P, _ = control.lqe(
        A * s / s[:, None],
        np.eye(len(A)),
        np.linalg.solve(R, C) * s,
        (disturbed + disturbed.T) / 2,
        np.eye(len(V)),
    )

    np.testing.assert_allclose(found.covariance / np.outer(s, s), P, atol=1e-6)
    np.testing.assert_allclose(found.gain @ R / s[:, None], L, atol=1e-6 * np.abs(L).max())


def test_the_covariance_solves_the_riccati_equation_of_the_filter(controller):
    A, C, W, V = steady(controller)
    P = controller.observer.covariance
    parts = (A @ P, P @ A.T, -P @ C.T @ np.linalg.solve(V, C @ P), W)
    size = sum(np.abs(part) for part in parts).max()

    assert np.abs(sum(parts)).max() < 1e-9 * size


def test_poles_are_those_of_the_error(controller):
    A, C, _, _ = steady(controller)
    found, expected = (
        np.sort_complex(x)
        for x in (
            controller.observer.poles,
            np.linalg.eigvals(A - controller.observer.gain @ C),
        )
    )

    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert found.real.max() < 0


@pytest.mark.parametrize("sample_time", [0.0, 1e-3])
def test_only_ratios_of_densities_matter_to_the_filter(make, sample_time):
    usual = {"encoder": 1e-4, "tachometer": 1e-2, "strain_gauge": 1e-3, "torque": 0.1, "tip": 0.1}
    loop = {"measures": ALL} | ({"sample_time": sample_time} if sample_time else {})
    found, small = (
        observed(make, make["single"](), loop=loop, observer={"noise": noise}).observer
        for noise in (usual, {key: 1e-12 * density for key, density in usual.items()})
    )

    np.testing.assert_allclose(small.gain, found.gain, rtol=1e-8)
    np.testing.assert_allclose(small.covariance * 1e24, found.covariance, rtol=1e-8)


def test_instruments_read_drives_joints_and_strains_only(make):
    arm = flexible_two_link(make)
    controller = observed(make, arm, measures=[*ALL, "joint_encoder"])
    plant, n = controller.plant, controller.plant.n
    names = plant.coordinates
    assert names[:3] == ("joint1", "joint2", "rotor2")
    read = controller.observer.instruments
    rows = [int(np.flatnonzero(row)[0]) for row in read.C]

    expected = [0, 2, n, n + 2, *range(3, n), 0, 1]  # encoders, tachometers, strains, joints
    assert rows == expected
    assert (read.C.sum(axis=1) == 1).all()
    assert read.names[1] == "encoder of rotor2"
    assert read.names[3] == "tachometer of rotor2"
    assert read.names[-1] == "joint_encoder of joint2"


def test_noise_of_gauges_is_that_of_a_least_squares_fit(make, controller_of):
    # one mode, k gauges of curvature noise s: variance s^2 l^4 / sum of psi''^2
    del controller_of
    design = make["design"](
        [0.0],
        [0.5],
        loop={"measures": ["encoder", "strain_gauge"], "strain_gauges": [0.1, 0.3, 0.6]},
        observer={"noise": {"strain_gauge": 2e-3}},
    )
    arm = make["single"]()
    controller = design_controller(arm, design, BasisChoice(kind="modes", order=1))
    shapes = controller.plant.bodies[0].planes["y"]
    bent = shapes.curvature(np.array([0.1, 0.3, 0.6]))[0]

    found = controller.observer.instruments.V[1, 1]
    assert found == pytest.approx(4e-6 * arm.links[0].length ** 4 / (bent @ bent), rel=1e-12)


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        (["tachometer"], "the motion at 0 rad/s of joint1"),
        (["strain_gauge"], "the motion at 0 rad/s of joint1"),
        (["tachometer", "strain_gauge"], "the motion at 0 rad/s of joint1"),
    ],
)
def test_what_the_instruments_do_not_show_is_refused_by_name(make, measures, words):
    with pytest.raises(DesignError, match=f"^observer: {words} does not decay and .*measures"):
        observed(make, make["single"](), measures=measures)


def test_an_undamped_mode_without_encoder_on_its_joint_is_named(make):
    # the rotor turns with its joint: rates and strains do not say where
    arm = make["single"](flexible_joint=ROTOR)
    with pytest.raises(DesignError, match=r"^observer: the motion at .* does not decay"):
        observed(make, arm, measures=["tachometer", "strain_gauge"])


def test_an_undamped_mode_that_no_torque_moves_is_named(make):
    # out of the joint's plane: gauges show it, and without disturbance no filter corrects it
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "joint_inertia": 0.1}
    link |= {"EI": {"y": 18.4, "z": 30.0}, "foreshortening": False}
    arm = make["arm"]([link], (0.0, 0.0, 0.0), {"mass": 0.25})
    with pytest.raises(
        DesignError, match=r"of link1\.z\.\d does not decay and none of the disturbances"
    ):
        observed(make, arm, observer={"noise": {"tip": 0.0}})


def test_a_force_at_the_tip_moves_it(make):
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "joint_inertia": 0.1}
    link |= {"EI": {"y": 18.4, "z": 30.0}, "foreshortening": False}
    arm = make["arm"]([link], (0.0, 0.0, 0.0), {"mass": 0.25})

    assert observed(make, arm).observer.poles.real.max() < 0


def test_damped_it_needs_no_disturbance(make):
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "joint_inertia": 0.1}
    link |= {"EI": {"y": 18.4, "z": 30.0}, "foreshortening": False, "damping_ratio": 0.01}
    arm = make["arm"]([link], (0.0, 0.0, 0.0), {"mass": 0.25})

    assert observed(make, arm, observer={"noise": {"tip": 0.0}}).observer.poles.real.max() < 0


@pytest.mark.parametrize("measures", [["encoder"], ["joint_encoder"], ["encoder", "tachometer"]])
def test_positions_alone_show_everything(make, measures):
    arm = make["single"](flexible_joint=ROTOR)
    assert observed(make, arm, measures=measures).observer.poles.real.max() < 0


def test_gauges_on_rigid_links_are_refused(make):
    with pytest.raises(InputError, match=r"loop\.measures: expected no strain_gauge, as no link"):
        observed(make, make["rigid"]())


@pytest.mark.parametrize("key", ["encoder", "tachometer", "torque"])
def test_noise_of_another_number_of_joints_is_refused(make, key):
    noise = {"noise": {key: [1e-3, 1e-3, 1e-3]}}
    with pytest.raises(InputError, match=rf"observer\.noise\.{key}: expected one number, or 2"):
        observed(make, make["two-link"]((0.0, 0.0, 0.0)), observer=noise)


def states(plant, seed):
    """Random positions and rates, straight arms and bent ones."""
    rng = np.random.default_rng(seed)
    q = plant.straight(rng.uniform(-0.5, 0.5, plant.m)) + rng.uniform(-0.01, 0.01, plant.n)
    return q, rng.normal(size=plant.n)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_estimate_that_is_right_moves_as_the_arm(make, seed):
    arm = flexible_two_link(make)
    controller, full = observed(make, arm), observed(make, arm, loop={})
    q, v = states(controller.plant, seed)
    z = np.concatenate([q, v])
    q_d, v_d, a_d = np.random.default_rng(seed + 10).normal(size=(3, 2))

    tau, z_rate = (np.array(x).ravel() for x in controller.law(0, z, q_d, v_d, a_d, q, v))
    expected = np.array(full.law(0, [], q_d, v_d, a_d, q, v)[0]).ravel()
    np.testing.assert_allclose(tau, expected, rtol=1e-12)
    a = controller.plant.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(z_rate, np.concatenate([v, a]), rtol=1e-8)


def test_the_law_takes_of_the_arm_what_the_instruments_read(make):
    controller = observed(make, flexible_two_link(make))
    n = controller.plant.n
    q, v = states(controller.plant, 4)
    z = np.concatenate(states(controller.plant, 5))
    still = [0.0, 0.0]
    _, at = controller.law(0, z, still, still, still, q, v)
    moved = [
        np.abs(np.array(controller.law(0, z, still, still, still, *(x[:n], x[n:]))[1] - at)).max()
        for x in np.concatenate([q, v]) + 1e-3 * np.eye(2 * n)
    ]
    unread = {1, *range(n + 1, 2 * n)} - {n + 2}  # the joint behind its spring, rates but drives'

    assert {k for k, size in enumerate(moved) if size == 0} == unread


def test_the_estimate_knows_that_torques_are_limited(make):
    arm = make["single"](limits={"torque": 0.5})
    controller = observed(make, arm)
    plant = controller.plant
    q = plant.straight(np.array([-0.4]))
    rest, z = np.zeros(plant.n), np.concatenate([q, np.zeros(plant.n)])
    tau, z_rate = controller.law(0, z, [0.5], [0.0], [0.0], q, rest)

    assert float(tau) == 0.5
    expected = plant.forward_dynamics(q, rest, np.array([0.5]))
    np.testing.assert_allclose(np.array(z_rate).ravel()[plant.n :], expected, rtol=1e-9)


def test_the_integral_takes_measured_positions(make):
    gains = {"Gp": [100.0], "Gv": [20.0], "Gi": [50.0]}
    controller = observed(make, make["single"](), gains=gains)
    plant = controller.plant
    assert (controller.n_integral, controller.n_state) == (1, 1 + 2 * plant.n)
    seen, thought = (plant.straight(np.array([x])) for x in (0.3, 0.1))
    z = np.concatenate([[0.0], thought, np.zeros(plant.n)])
    _, z_rate = controller.law(0, z, [0.5], [0.0], [0.0], seen, np.zeros(plant.n))

    assert float(z_rate[0]) == pytest.approx(0.3 - 0.5, rel=1e-14)


def test_the_estimate_starts_at_rest_off_by_the_error_asked_for(make):
    arm, error = flexible_two_link(make), [0.02, -0.03]
    right = observed(make, arm)
    wrong = observed(make, arm, observer={"start_error": error})
    plant, n = right.plant, right.plant.n
    first = right.initial_state()

    np.testing.assert_allclose(first[n:], 0)
    force = plant.inverse_dynamics(first[:n], np.zeros(n), np.zeros(n))
    assert np.abs(np.delete(force, plant.drives)).max() < 1e-9
    difference = wrong.initial_state() - first
    np.testing.assert_allclose(difference[:3], [0.02, -0.03, -0.03])
    np.testing.assert_allclose(difference[3:], 0, atol=1e-15)


@pytest.mark.parametrize("sample_time", [0.0, 1e-3])
def test_the_assumption_names_instruments_and_that_there_is_no_noise(make, sample_time):
    loop = {"measures": ALL, "sample_time": sample_time}
    words = " ".join(observed(make, make["single"](), loop=loop).assumptions)
    assert "encoders, tachometers, strain gauges" in words
    assert "runs have no noise" in words


def test_designs_that_differ_in_their_law_share_the_observer():
    loop = close_loop(design_controller("single-link-hub", "hub-lqg"), "single-link-hub", modes=2)

    def observer(**values):
        return loop.at({key.replace("__", "."): x for key, x in values.items()}).controller.observer

    plain = observer(second_loop__weights__effort=2.0)
    noisy = observer(observer__noise__encoder=1e-3)
    assert observer(second_loop__weights__effort=7.0) is plain
    assert (noisy.gain != plain.gain).any()
    np.testing.assert_array_equal(plain.gain, loop.controller.observer.gain)
