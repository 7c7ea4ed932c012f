"""The linearised loop: against finite differences, and against how runs grow."""

import numpy as np
import pytest
import scipy.optimize

from flexctl.errors import InputError
from flexctl.loop.eigenvalues import damping_ratios, judge_poles
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.loop.linear_loop import LinearLoop
from flexctl.model.settings import apply_settings
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from tests.arms import sliding_arm
from tests.loops import hand_made


def differentiated_loop(loop, joints, share):
    """Rest [q; v; z] of the nonlinear right-hand side and its eigenvalues there, by differences.

    SciPy looks for the rest from the reference; nothing of the package's own search is used.
    """
    truth, n = loop.truth, loop.truth.n
    still, law = np.zeros(truth.m), loop.controller.law

    def rate(x):
        seen = loop.measurement.function(x[:n], x[n : 2 * n])
        tau, z_rate = law(share, x[2 * n :], joints, still, still, *seen)
        a = truth.forward_dynamics(x[:n], x[n : 2 * n], np.array(tau).ravel())
        return np.concatenate([x[n : 2 * n], a, np.array(z_rate).ravel()])

    straight = truth.straight(joints)
    start = [straight, np.zeros(n), loop.agreeing_state(straight, np.zeros(n))]
    solved = scipy.optimize.root(rate, np.concatenate(start), tol=1e-13)
    rest, h = solved.x, 1e-6
    columns = [(rate(rest + h * e) - rate(rest - h * e)) / (2 * h) for e in np.eye(len(rest))]
    return rest, np.linalg.eigvals(np.array(columns).T)


ALL = ["encoder", "tachometer", "strain_gauge"]
SECOND = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
CASES = {
    "decoupling": ({}, 0.0, 1),
    "integral": ({"gains": {"Gp": [100.0], "Gv": [20.0], "Gi": [150.0]}}, 0.0, 1),
    "second loop": ({"second_loop": {"weights": SECOND | {"effort": 1e-4}}}, 1.0, 1),
    "joint-pd": ({"method": "joint-pd", "gains": {"Gp": [40.0, 20.0], "Gv": [4.0, 2.0]}}, 0.0, 1),
    "seen by gauges": ({}, 0.0, 2),
    "observer": ({"loop": {"measures": ALL}}, 0.0, 1),
    "observer of a finer arm": ({"loop": {"measures": ALL}}, 0.0, 2),
    "observer and integral": (
        {
            "loop": {"measures": ALL},
            "gains": {"Gp": [100.0], "Gv": [20.0], "Gi": [150.0]},
            "second_loop": {"weights": SECOND | {"effort": 1e-4}},
        },
        1.0,
        2,
    ),
}


def nearest_match(found, expected):
    """Distance of every pole in `found` to its nearest in `expected`, in units of its size."""
    gap = np.abs(found[:, None] - expected[None]).min(axis=1)
    return gap / np.maximum(np.abs(found), 1)


@pytest.mark.slow_but("decoupling", "joint-pd")
@pytest.mark.parametrize("name", CASES)
def test_poles_are_those_of_the_differentiated_loop(two_link_loop, name):
    tables, share, order = CASES[name]
    loop = two_link_loop(truth_order=order, **tables)
    joints = loop.controller.reference.final if share else np.array([-0.8, 0.6])
    linear = linearise_loop(loop, joints, share)
    rest, expected = differentiated_loop(loop, joints, share)
    np.testing.assert_allclose(linear.plant.q0, rest[: loop.truth.n], atol=1e-8)
    assert len(linear.poles) == len(expected)
    assert nearest_match(linear.poles, expected).max() < 1e-5
    assert nearest_match(expected, linear.poles).max() < 1e-5


@pytest.mark.slow  # takes long
def test_poles_of_the_sliding_arm_too(make):
    design = make["design"]([0.0, 0.3], [0.5, 0.8])
    loop = make["close"](make["sliding"]((0.0, -9.81, 0.0)), design, kind="elements", order=1)
    joints = np.array([0.4, 0.7])
    linear = linearise_loop(loop, joints, 0.0)
    _, expected = differentiated_loop(loop, joints, 0.0)
    assert nearest_match(linear.poles, expected).max() < 1e-5


@pytest.mark.slow
def test_on_its_own_plant_decoupling_has_the_poles_it_asks_for(make):
    # s^2 + 20 s + 100 twice over, and the clamped modes of the links as they are
    design = make["design"]([0.0, 0.3], [0.5, 0.8], gains={"Gp": [125.0], "Gv": [20.0]})
    loop = make["close"](make["sliding"](), design, order=2)
    linear = linearise_loop(loop, np.array([0.4, 0.7]), 0.0)
    joint = linear.poles[np.abs(linear.poles) < 20]
    assert len(joint) == 4
    np.testing.assert_allclose(joint[joint.imag > 0], [-10 + 5j] * 2, rtol=1e-6)
    M, D, K = (term[2:, 2:] for term in (linear.plant.M, linear.plant.D, linear.plant.K))
    solved = np.linalg.solve(M, np.hstack([-K, -D]))
    clamped = np.linalg.eigvals(np.vstack([np.eye(2, 4, 2), solved]))
    assert nearest_match(clamped, linear.poles).max() < 1e-9


def test_a_second_loop_has_the_poles_of_its_design(make):
    second = {"weights": SECOND | {"effort": 1e-4}}
    design = make["design"]([0.0], [0.5], second_loop=second)
    loop = make["close"](make["single"](), design, order=2)
    poles = linearise_loop(loop, loop.controller.reference.final, 1.0).poles
    assert nearest_match(poles, loop.controller.feedback.poles).max() < 1e-6


@pytest.mark.slow
def test_a_growing_run_grows_at_the_rate_of_the_pole(make):
    # a stiffness that is overestimated makes an undamped link grow, however little it is
    arm = make["single"](damping=0.0)
    truth = apply_settings(arm, ["link1.EI=*0.98"])
    design = make["design"](
        [0.0], [1e-3], loop={"duration": 12.0}, gains={"Gp": [100.0], "Gv": [20.0]}
    )
    loop = make["close"](arm, design, truth, order=2)
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
    worst = linear.poles[linear.poles.real.argmax()]
    assert 0.02 < worst.real < 2
    assert judge_poles(linear.poles) is False
    times = np.linspace(0, 12, 6001)
    run = simulate(
        loop, times=times, tolerance=Tolerance(relative=1e-9, position=1e-13, rate=1e-11)
    )
    size = np.abs(run.deflection["link1.y"])
    windows = [(8, 9), (11, 12)]
    peaks = [size[(times >= a) & (times < b)].max() for a, b in windows]
    found = np.log(peaks[1] / peaks[0]) / 3
    assert found == pytest.approx(worst.real, rel=0.05, abs=0.02)


def test_a_stiffness_that_is_underestimated_does_not(make):
    arm = make["single"](damping=0.0)
    truth = apply_settings(arm, ["link1.EI=*1.2"])
    loop = make["close"](arm, make["design"]([0.0], [1.0]), truth, order=2)
    assert judge_poles(linearise_loop(loop, loop.controller.reference.final, 0.0).poles) is True


@pytest.mark.parametrize(
    ("poles", "verdict"),
    [
        ([-1, -2 + 3j, -2 - 3j], True),
        ([-1, 1e-3 + 3j, 1e-3 - 3j], False),
        ([-1, 1e-12 + 3j, 1e-12 - 3j], "marginal"),
        ([-1, -1e-12 + 3j, -1e-12 - 3j], "marginal"),
        ([0.0, -1.0], "marginal"),
        ([1e-12 + 3j, 2.0], False),
    ],
)
def test_poles_are_judged(poles, verdict):
    assert judge_poles(np.array(poles, dtype=complex)) == verdict


def test_damping_ratios_are_cosines():
    poles = np.array([-1.0, 3j, -3 + 4j, 3 - 4j], dtype=complex)
    np.testing.assert_allclose(damping_ratios(poles), [1, 0, 0.6, -0.6])


@pytest.mark.usefixtures("no_compiler")
def test_a_pose_outside_a_beam_is_refused_as_a_vector_too(make):
    arm = sliding_arm()
    gains = {"Gp": [40.0, 40.0], "Gv": [9.0, 9.0]}
    loop = make["close"](arm, make["design"]([0.0, 0.4], [0.3, 0.6], gains=gains), order=1)
    with pytest.raises(InputError, match=r"^pose\.joint2: expected a free length within the beam"):
        linearise(loop, np.array([0.0, 5.0]))


def by_hand(**options):
    """A mass under PD control with an integral, of lists."""
    plant = hand_made(np.eye(1), np.zeros((1, 1)), np.eye(1), [[-3.0]], [[-1.0]]).plant
    law = {"feedback": [[-3, -1]], "integral_gain": [[-2]], "sample_time": None, "delay": 0.0}
    return LinearLoop(plant=plant, **law | options)


def test_a_loop_may_be_made_of_lists_and_keeps_its_own_arrays():
    feedback = np.array([[-3.0, -1.0]])
    loop = by_hand(feedback=feedback, driven_by=[[1, 0]], own=[[0]])
    feedback[:] = 0.0

    # s^3 + s^2 + 4 s + 2 = 0
    np.testing.assert_allclose(np.poly(loop.poles), [1, 1, 4, 2], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sample_time": 0.0}, "sample_time: expected one number above 0, got 0.0"),
        ({"sample_time": -0.1}, "sample_time: expected one number above 0, got -0.1"),
        ({"sample_time": "a"}, "sample_time: expected real numbers, got 'a'"),
        ({"sample_time": 0.1, "delay": -0.1}, "delay: expected one number of at least 0"),
        ({"delay": None}, "delay: expected real numbers, got None"),
        ({"feedback": [-3.0, -1.0]}, r"feedback: expected an array of shape \(1, 2\), got \(2,\)"),
        ({"integral_gain": [-2.0]}, r"integral_gain: expected an array of shape \(1, 1\), got"),
        ({"integral_gain": -2.0}, r"integral_gain: expected an array of shape"),
        ({"feedback": "K"}, "feedback: expected real numbers, got 'K'"),
        ({"own": [[np.nan]]}, "own: expected finite numbers"),
    ],
)
def test_what_makes_no_loop_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        by_hand(**options)
