"""What dry friction does to linear loops: closed forms, scans, and runs that hunt or rest."""

from dataclasses import replace

import control
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal

from flexctl.control import wrap_controller
from flexctl.errors import ComputationError
from flexctl.loop import close_loop
from flexctl.loop.linear import linear_poses
from flexctl.model import BasisChoice, Friction
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict import damped_loop
from flexctl.verdict.damped_loop import DampedLoop, hold
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.friction import (
    FrictionVerdict,
    _DryJoints,
    _judge,
    _with_one_stuck,
    judge_friction,
    steepest_fall,
)
from flexctl.verdict.named_metrics import metrics
from flexctl.verdict.reasons import _friction, find_reasons
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.stick_and_slip import stick_and_slip

MASS = 2.0
RUBS = {"coulomb": 0.6, "static": 1.0, "stribeck_velocity": 0.01, "smoothing_velocity": 1e-5}
PD = {"Gp": [50.0], "Gv": [10.0]}
PID = PD | {"Gi": [40.0]}


@pytest.fixture(scope="module")
def judged(make):
    """judged(friction, gains, ...): the loop of a sliding mass, and the verdict on friction."""

    def judge(friction, gains=PD, **loop):
        link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": friction}
        motion = {"kind": loop.pop("kind", "cycloid")}
        start = [0.1] if motion["kind"] == "setpoint" else [0.0]
        design = make["design"](start, [0.1], "joint-pd", gains=gains, loop=loop, **motion)
        closed = make["close"](make["arm"]([link]), design)
        return closed, judge_friction(closed, linear_poses(closed).final)

    return judge


def test_the_steepest_fall_is_that_of_the_formula():
    friction = Friction(**RUBS)
    v = np.linspace(0, 0.05, 200_001)
    slope = np.gradient(friction.level(v), v)
    assert steepest_fall(friction) == pytest.approx(-slope.min(), rel=1e-6)
    assert v[slope.argmin()] == pytest.approx(0.01 / np.sqrt(2), rel=1e-3)
    assert steepest_fall(Friction(coulomb=1.0)) == 0.0


def test_the_steepest_chord_is_that_of_the_formula(judged):
    best = scipy.optimize.minimize_scalar(
        lambda x: -(1 - np.exp(-(x**2))) / x,
        bounds=(0.5, 2),
        method="bounded",
        options={"xatol": 1e-9},
    )
    (own,) = judged(RUBS)[1].dampers
    chord = -best.fun * 0.4 / 0.01
    for gain, breaks in ((0.999 * chord, True), (1.001 * chord, False)):
        (own,) = judged(RUBS, {"Gp": [50.0], "Gv": [gain]})[1].dampers
        assert own.breaks_away is breaks
    assert not own.slides  # the steepest slope is steeper


def test_a_pd_loop_is_stable_with_every_damper_above_minus_its_own(judged):
    _, verdict = judged(RUBS)
    (own,) = verdict.dampers
    assert verdict.stable
    assert own.stable
    assert own.least == pytest.approx(-np.sqrt(2 / np.e) * 0.4 / 0.01)
    assert [(u.low, u.high) for u in own.unstable] == [(own.least, pytest.approx(-10.0))]
    assert own.stuck is True
    assert own.amplitude == 0.0


def test_a_pid_loop_loses_stability_where_routh_says(judged):
    _, verdict = judged(RUBS, PID)
    (own,) = verdict.dampers
    # m s^3 + (c + d) s^2 + k s + k_i: (c + d) k > m k_i
    assert own.unstable[0].high == pytest.approx(MASS * 40 / 50 - 10)
    assert verdict.hunts
    assert verdict.sticking_offset is None
    assert own.stuck is True  # the integral winds up, and moves nothing


@pytest.mark.parametrize(("gains", "hunts"), [(PD, False), (PID, True)])
def test_only_integral_action_hunts(judged, gains, hunts):
    assert judged(RUBS, gains)[1].hunts is hunts
    assert not judged({"coulomb": 0.6}, gains)[1].hunts


def test_where_it_sticks_is_static_friction_over_stiffness(judged):
    assert judged(RUBS)[1].sticking_offset == pytest.approx(1.0 / 50)


@pytest.mark.parametrize("gains", [PD, PID])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_actuator_that_cannot_lift_what_sticks_leaves_it_anywhere(make, gains, side):
    weight, friction = MASS * 9.81, 8.0
    for limit, weak in ((weight + friction - 0.01, True), (weight + friction + 0.01, False)):
        link = {"joint": "prismatic", "hub": {"mass": MASS}, "limits": {"torque": limit}}
        link |= {"friction": {"coulomb": friction, "model": "events"}}
        design = make["design"]([0.0], [0.1], "joint-pd", gains=gains)
        loop = make["close"](make["arm"]([link], (0.0, 0.0, side * 9.81)), design)
        verdict = judge_friction(loop, linear_poses(loop).final)
        allowed = None if "Gi" in gains else pytest.approx(friction / 50)
        assert verdict.weak == ((0,) if weak else ())
        assert verdict.sticking_offset == (np.inf if weak else allowed)


@pytest.mark.usefixtures("no_compiler")
def test_a_run_that_comes_from_below_stays_there(make):
    # 50 N/m times 0.4 m would overcome friction, if the actuator gave it
    friction, gains = {"coulomb": 8.0, "model": "events"}, {"Gp": [50.0], "Gv": [20.0]}
    link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": friction}
    left = []
    for limit in (MASS * 9.81 + 7.9, 40.0):
        arm = make["arm"]([link | {"limits": {"torque": limit}}], (0.0, 0.0, -9.81))
        design = make["design"]([0.0], [0.4], "joint-pd", kind="setpoint", gains=gains)
        run = simulate(make["close"](arm, design), times=np.array([0.0, 2.0, 4.0]))
        left.append(0.4 - run.q[0, -1])
    assert left[0] == pytest.approx(0.4, abs=1e-6)
    assert abs(left[1]) <= 8.0 / 50 + 1e-6


def test_viscous_friction_alone_needs_no_verdict(judged):
    assert judged({"viscous": 3.0})[1] is None


def test_a_sampled_loop_is_judged_with_its_one_sample_map(judged):
    loop, verdict = judged(RUBS, sample_time=0.01)
    (own,) = verdict.dampers
    T = 0.01

    def largest(d):
        A = np.array([[0, 1, 0], [0, -d / MASS, 1 / MASS], [0, 0, 0]])
        step = scipy.linalg.expm(A * T)
        return np.abs(np.linalg.eigvals(step[:2, :2] + step[:2, 2:] @ [[-50.0, -10.0]])).max() - 1

    assert own.unstable[0].high == pytest.approx(scipy.optimize.brentq(largest, -12, -8), rel=1e-6)
    assert loop.controller.sample_time == T


@pytest.fixture(scope="module")
def pushed(make):
    """pushed(seed): springs and masses with feedback from elsewhere, often unstable."""

    def push(seed, n=3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, n))
        M, K = np.eye(n) + X @ X.T / 5, 40 * (X.T @ X) + 20 * np.eye(n)
        gains = rng.normal(size=(1, n)) * 12, rng.normal(size=(1, n)) * 1.5
        return make["linear"](M, 0.3 * np.eye(n), K, *gains)

    return push


@pytest.fixture(scope="module")
def bounded(pushed):
    """bounded(seed): a loop that is unstable with dampers of a range that ends, and its verdict."""
    dry = _DryJoints(
        rows=(1,),
        fall=np.zeros(1),
        coulomb=np.array([0.6]),
        breakaway=np.array([0.6]),
        slide=(False,),
    )
    return lambda seed: (pushed(seed), _judge(pushed(seed), dry, 0, 0))


def test_a_range_of_unstable_dampers_that_ends_has_a_threshold(bounded):
    linear, own = bounded(249)
    outer, first, second = own.unstable
    damped = DampedLoop(loop=linear, rows=(1,), size=np.ones(1))
    w = abs(max(damped._with(first.high).poles, key=lambda pole: pole.real).imag)
    assert first.threshold == pytest.approx(4 * 0.6 / (np.pi * w * first.high))
    assert second.high == np.inf
    assert second.threshold == 0.0
    assert first.amplitude > first.threshold > second.amplitude
    assert outer.low <= 0  # unstable without friction, which bounds what is smaller
    assert (own.amplitude, own.threshold) == (np.inf, outer.threshold)
    assert own.smaller_amplitude == first.amplitude < outer.threshold


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "grows"), [(0.7, False), (1.5, True)])
def test_only_vibrations_above_the_threshold_grow(bounded, factor, grows):
    linear, own = bounded(391)
    M, K, n = linear.plant.M, linear.plant.K, len(linear.plant.M)
    lower = np.linalg.solve(M, linear.plant.B @ linear.feedback)
    lower -= np.linalg.solve(M, np.hstack([K, linear.plant.D]))
    A = np.vstack([np.eye(n, 2 * n, n), lower])
    pushes = np.append(np.zeros(n), np.linalg.solve(M, np.eye(n)[1]))
    held = A - own.unstable[0].high * np.outer(pushes, np.eye(2 * n)[n + 1])
    values, vectors = np.linalg.eig(held)
    k = values.real.argmax()
    w = abs(values[k].imag)
    start = np.real(vectors[:, k] / vectors[1, k]) * factor * own.threshold

    def motion(_t, x):
        return A @ x - 0.6 * np.tanh(x[n + 1] / (3e-3 * own.threshold * w)) * pushes

    times = np.linspace(0, 12 * 2 * np.pi / w, 601)
    done = scipy.integrate.solve_ivp(
        motion, (0, times[-1]), start, "Radau", times, rtol=1e-6, atol=1e-9 * own.threshold
    )
    first, last = np.ptp(done.y[1, :51]), np.ptp(done.y[1, -51:])
    assert (last > first) == grows


@pytest.mark.parametrize("seed", range(6))
def test_crossings_are_those_of_a_scan(pushed, seed):
    linear = pushed(seed)
    M, K, n = linear.plant.M, linear.plant.K, len(linear.plant.M)
    damped = DampedLoop(loop=linear, rows=(1,), size=np.ones(1))
    found = damped.unstable(-1.0)

    def poles(d):
        D = linear.plant.D + np.diag([0.0, d, 0.0])
        A = np.block(
            [
                [np.zeros((n, n)), np.eye(n)],
                [
                    np.linalg.solve(M, linear.plant.B @ linear.feedback[:, :n] - K),
                    np.linalg.solve(M, linear.plant.B @ linear.feedback[:, n:] - D),
                ],
            ]
        )
        return np.linalg.eigvals(A)

    for low, high, w_low, w_high in found:
        for end, w in ((low, w_low), (high, w_high)):
            if w is not None:
                assert np.abs(poles(end) - 1j * w).min() < 1e-6 * w
    for d in np.concatenate([np.linspace(-1.0, 1.0, 60), np.geomspace(1.0, 1e4, 200)]):
        rate = poles(d).real.max()
        near = min((abs(d - end) for low, high, *_ in found for end in (low, high)), default=1.0)
        if near > 1e-6 * (1 + abs(d)):
            assert (rate > 0) == any(low < d < high for low, high, *_ in found), d


TWO = _DryJoints(
    rows=(0, 1),
    fall=np.array([0.2, 0.1]),
    coulomb=np.ones(2),
    breakaway=np.ones(2),
    slide=(False, False),
)


@pytest.fixture(scope="module")
def coupled(make):
    """coupled(seed, n_z): three springs and masses, feedback of all to the first two, integrals."""

    def couple(seed, n_z=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3, 3))
        M, K = np.eye(3) + X @ X.T / 5, 8 * (X.T @ X) + 4 * np.eye(3)
        gains = rng.normal(size=(2, 3)) * 12, rng.normal(size=(2, 3)) * 3 - 3 * np.eye(2, 3)
        by_z = -np.diag(rng.uniform(1, 3, 2)) if n_z else None
        return make["linear"](M, 0.3 * np.eye(3), K, *gains, by_z)

    return couple


def beside(linear, stuck, d):
    """Eigenvalues with a mass fixed, without its integral, and a damper d on the other one."""
    M, K, D = linear.plant.M, linear.plant.K, linear.plant.D.copy()
    D[1 - stuck, 1 - stuck] += d
    free = np.setdiff1d(range(3), [stuck])
    moved, grid = [*free, *(free + 3)], np.ix_(free, free)
    push = np.linalg.solve(M[grid], linear.plant.B[free])
    springs = np.linalg.solve(M[grid], np.hstack([K[grid], D[grid]]))
    n_z = linear.integral_gain.shape[1]
    winds = [k for k in range(n_z) if k != stuck]
    A = np.zeros((4 + len(winds), 4 + len(winds)))
    A[:2, 2:4] = np.eye(2)
    A[2:4, :4] = push @ linear.feedback[:, moved] - springs
    A[2:4, 4:] = push @ linear.integral_gain[:, winds]
    if len(winds):
        A[4, list(free).index(winds[0])] = 1.0
    return np.linalg.eigvals(A)


@pytest.mark.parametrize("seed", [1969, 3341, 5431])
def test_a_damper_beside_a_stuck_joint_may_be_all_that_is_unstable(coupled, seed):
    linear = coupled(seed)
    alone = [_judge(linear, TWO, k, k) for k in (0, 1, None)]
    assert all(own.stable and own.stuck is True for own in alone)
    found = list(_with_one_stuck(linear, TWO, (0, 1)))
    assert [(own.joint, own.stuck_joint) for own in found] == [(1, 0), (0, 1)]
    assert [own.stable for own in found].count(False) == 1


@pytest.mark.parametrize("seed", [13, 26])
def test_falling_friction_is_not_blamed_for_what_a_stuck_joint_does(coupled, seed):
    pairs = list(_with_one_stuck(coupled(seed), TWO, (0, 1)))
    unstable = [own for own in pairs if beside(coupled(seed), own.stuck_joint, 0.0).real.max() > 0]
    assert unstable
    for own in unstable:
        assert any(range_.low < 0 < range_.high for range_ in own.unstable)
        assert not own.stable
        assert own.slides
        assert not own.breaks_away
        assert own.amplitude == 0


def test_joints_without_coulomb_friction_feel_no_damper_together(coupled):
    one = replace(TWO, coulomb=np.array([0.0, 1.0]), fall=np.zeros(2))
    assert _judge(coupled(225), one, None, None).unstable[-1].high == np.inf


@pytest.mark.parametrize("n_z", [0, 2])
@pytest.mark.parametrize("seed", [*range(40, 52), 1969, 3341, 5431])
def test_ranges_beside_a_stuck_joint_are_those_of_a_scan(coupled, seed, n_z):
    linear = coupled(seed, n_z)
    for own in _with_one_stuck(linear, TWO, (0, 1)):
        ends = [end for range_ in own.unstable for end in (range_.low, range_.high)]
        for d in np.concatenate([np.linspace(own.least, 1.0, 30), np.geomspace(1.0, 1e4, 100)]):
            if min((abs(d - end) for end in ends), default=1.0) > 1e-6 * (1 + abs(d)):
                rate = beside(linear, own.stuck_joint, d).real.max()
                inside = any(range_.low < d < range_.high for range_ in own.unstable)
                assert (rate > 0) == inside, (own.joint, d)
        for range_ in own.unstable:
            if range_.frequency is not None:
                end = range_.low if range_.low > 0 else range_.high
                near = beside(linear, own.stuck_joint, end) - 1j * range_.frequency
                assert np.abs(near).min() < 1e-6 * max(range_.frequency, 1.0)


def test_what_is_unstable_when_stuck_is_so_with_large_dampers(make):
    # of a sampled loop, beyond the grid of dampers: 1e4 times the damper that stops the inertia
    rng = np.random.default_rng(1606)
    X = rng.normal(size=(3, 3))
    M, K = np.eye(3) + X @ X.T / 5, 8 * (X.T @ X) + 4 * np.eye(3)
    gains = rng.normal(size=(2, 3)) * 12, rng.normal(size=(2, 3)) * 3 - 3 * np.eye(2, 3)
    linear = make["linear"](M, 0.02 * np.eye(3), K, *gains, None, sample_time=0.02)
    damped = DampedLoop(loop=linear, rows=(1,), size=np.ones(1))

    def growth(d):
        D = 0.02 * np.eye(3) + np.diag([0.0, d, 0.0])
        A = np.zeros((8, 8))
        A[:3, 3:6] = np.eye(3)
        A[3:6] = np.linalg.solve(M, np.hstack([-K, -D, np.eye(3, 2)]))
        step = scipy.linalg.expm(0.02 * A)[:6]
        return np.abs(np.linalg.eigvals(step[:, :6] + step[:, 6:] @ linear.feedback)).max() - 1

    last = damped.unstable(0.0)[-1]
    assert damped.stuck is False
    assert last.high == np.inf
    assert last.low > 1e4 * damped.scale
    assert last.low == pytest.approx(scipy.optimize.brentq(growth, 5e4, 5e5), rel=1e-4)


@pytest.mark.parametrize("delay", [0.0, 0.008, 0.02, 0.05])
@pytest.mark.parametrize("stuck", [0, 1])
def test_dampers_judged_together_are_judged_as_one_by_one(make, delay, stuck):
    X = np.random.default_rng(3).normal(size=(3, 3))
    M, K = np.eye(3) + X @ X.T / 5, 8 * (X.T @ X) + 4 * np.eye(3)
    gains = -5 * np.eye(2, 3), -3 * np.eye(2, 3), -2 * np.eye(2)
    linear = make["linear"](M, 0.02 * np.eye(3), K, *gains, sample_time=0.02, delay=delay)
    rows = (1,)
    if stuck:  # its integral winds up
        linear, rows = hold(linear, [0]), (0,)
    damped = DampedLoop(loop=linear, rows=rows, size=np.array([0.7]), n_zero=stuck)
    dampers = [-2.0, -0.3, 0.0, 0.1, 5.0, 1e4]
    together = damped._abscissae_of(dampers)
    np.testing.assert_allclose(together, [damped.abscissa(d) for d in dampers], rtol=1e-8)


@pytest.mark.parametrize("seed", [40, 47, 1969])
def test_crossings_are_bisected_where_the_exact_problem_is_refused(coupled, seed, monkeypatch):
    damped = DampedLoop(loop=coupled(seed), rows=(1,), size=np.ones(1))
    exact = damped.unstable(-0.5)

    def refuse(*_):
        raise ComputationError("too ill-conditioned")

    monkeypatch.setattr(damped_loop, "find_real_crossings", refuse)
    np.testing.assert_allclose(
        np.array(damped.unstable(-0.5), dtype=float), np.array(exact, dtype=float), rtol=1e-6
    )


def test_a_sampled_loop_that_grows_beyond_all_numbers_is_unstable(make):
    linear = make["linear"]([[1e-3]], [[0.0]], [[0.0]], [[-0.1]], [[-0.01]], sample_time=0.02)
    damped = DampedLoop(loop=linear, rows=(0,), size=np.ones(1))
    assert damped.abscissa(-1e3) == pytest.approx(np.log(np.finfo(float).max) / 0.02)
    (range_,) = damped.unstable(-1e3)
    assert range_.low == -1e3
    assert damped.abscissa(range_.high) == pytest.approx(0.0, abs=1e-3)


@pytest.fixture(scope="module")
def noncollocated(make):
    """A rotor, a spring and a link that rubs; the rotor's own feedback takes damping away."""
    M, D, K = np.diag([0.4, 0.05]), np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 2))
    K = 60 * D
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    B = np.array([[0.0], [0.0], [0.0], [1 / 0.05]])
    wanted = np.array([-0.1 + 3j, -0.1 - 3j, -0.15 + 30j, -0.15 - 30j])
    gain = -scipy.signal.place_poles(A, B, wanted).gain_matrix
    linear = make["linear"](M, D, K, gain[:, :2], gain[:, 2:])
    torque = np.eye(2)[:, 1:]
    linear = replace(linear, plant=replace(linear.plant, B=torque))
    return linear, A + B @ gain


@pytest.mark.parametrize(("multiplier", "stable"), [(-1.2, False), (-0.8, True), (0.0, True)])
def test_the_law_of_an_arm_that_sticks_as_a_whole_moves_on_by_samples(make, multiplier, stable):
    # z+ = multiplier z, of which z' = (z+ - z)/T
    linear = make["linear"](1.0, 1.0, 1.0, -1.0, -1.0, -1.0, sample_time=0.01)
    linear = replace(linear, own=np.array([[(multiplier - 1) / 0.01]]))
    assert DampedLoop(loop=linear, rows=(0,), size=np.ones(1)).stuck is stable


def test_a_stuck_joint_is_the_arm_without_its_coordinate(noncollocated):
    linear, A = noncollocated
    held = A[np.ix_([1, 3], [1, 3])]  # the rotor on its spring
    unstable = np.linalg.eigvals(held).real.max() > 0
    assert DampedLoop(loop=linear, rows=(0,), size=np.ones(1)).stuck is not unstable
    assert unstable


@pytest.mark.slow
def test_vibrations_below_the_stated_amplitude_grow_and_larger_ones_decay(noncollocated):
    linear, A = noncollocated
    (low, high, w, _), *_ = DampedLoop(loop=linear, rows=(0,), size=np.ones(1)).unstable(0.0)
    assert low > 0
    assert high == np.inf
    own = A.copy()
    own[2, 2] -= low / 0.4
    values, vectors = np.linalg.eig(own)
    k = np.abs(values - 1j * w).argmin()
    assert values[k] == pytest.approx(1j * w, abs=1e-6 * w)
    amplitude, cycle = 4 / (np.pi * w * low), 2 * np.pi / w  # of a friction of 1 N m

    def motion(_t, x):
        force = np.tanh(x[2] / (3e-3 * amplitude * w))
        return A @ x - np.array([0.0, 0.0, force / 0.4, 0.0])

    for factor in (0.6, 1.6):
        start = np.real(vectors[:, k] / vectors[0, k]) * factor * amplitude
        times = np.linspace(0, 8 * cycle, 401)
        done = scipy.integrate.solve_ivp(
            motion, (0, times[-1]), start, "Radau", times, rtol=1e-6, atol=1e-9 * amplitude
        )
        first, last = np.ptp(done.y[0, :101]), np.ptp(done.y[0, -101:])
        assert (last > first) == (factor < 1), factor


def test_pid_with_static_friction_hunts_with_the_amplitude_of_an_independent_simulation(judged):
    friction = {"coulomb": 0.6, "static": 1.0, "stribeck_velocity": 1e-5}
    friction |= {"smoothing_velocity": 1e-7}
    loop, verdict = judged(friction, PID, duration=120.0, kind="setpoint")
    assert verdict.hunts
    times, start = np.linspace(60.0, 120.0, 2001), (np.array([0.095]), np.zeros(1))
    run = simulate(loop, times=times, start=start, tolerance=Tolerance.of(1e-8))
    t, x = stick_and_slip(1.0, 0.6, 120.0)
    expected = np.ptp(x[t > 60.0])
    assert np.ptp(run.q[0]) == pytest.approx(expected, rel=0.01)
    assert 0.005 < expected < 0.02


def test_pid_with_coulomb_friction_alone_comes_to_rest(judged):
    loop, verdict = judged({"coulomb": 0.6, "smoothing_velocity": 1e-5}, PID, duration=120.0)
    assert not verdict.hunts
    run = simulate(loop, times=np.linspace(0.0, 120.0, 1201), tolerance=Tolerance.of(1e-8))
    off = np.abs(run.q[0] - 0.1)
    # of 0.6 N/k = 12 mm, within which friction holds it, less than a twentieth is left
    assert off[run.t > 60].max() < 0.05 * 0.6 / 50
    t, x = stick_and_slip(0.6, 0.6, 120.0)
    assert np.abs(x[t > 60]).max(initial=0.0) < 0.05 * 0.6 / 50


def test_the_verdict_reaches_json_words_and_metrics(judged):
    loop, _ = judged(RUBS)
    e = evaluate(loop)
    answer = to_json(e)["friction"]
    assert answer["sticking_offset"] == pytest.approx(0.02)
    assert answer["dampers"][0]["joint"] == "joint1"
    assert {reason.code for reason in find_reasons(e)} >= {"friction-slides", "sticks"}
    words = explain(e)
    assert "friction may hold its tip up to 20 mm from its reference" in words
    assert "slow sliding of joint1 is unstable (stick-slip)" in words
    assert metrics(e)["friction.sticking_offset"] == pytest.approx(0.02)
    assert metrics(e)["friction.stable"] is True
    assert metrics(e)["friction.slides"] is answer["slides"] is False


def test_friction_bounds_small_vibrations_of_an_unstable_loop(judged):
    # m s^3 + (c + d) s^2 + k s + k_i is unstable up to d = m k_i/k - c, where w^2 = k/m
    loop, verdict = judged({"coulomb": 0.6}, PID | {"Gv": [1.0]})
    w, d = np.sqrt(50 / MASS), MASS * 40 / 50 - 1
    bound = 4 * 0.6 / (np.pi * w * d)
    (own,) = verdict.dampers
    assert own.threshold == pytest.approx(bound, rel=1e-6)
    assert own.frequency == pytest.approx(w, rel=1e-6)
    assert verdict.amplitude == np.inf

    e = evaluate(loop)
    assert e.stability.stable is False
    codes = {reason.code for reason in find_reasons(e)}
    assert codes == {"unstable", "unstable-at-pose", "friction-vibrates"}
    (damper,) = to_json(e)["friction"]["dampers"]
    assert (damper["amplitude"], damper["threshold"]) == (None, pytest.approx(bound, rel=1e-6))
    assert metrics(e)["friction.amplitude"] is None
    words = "friction of joint1 keeps vibrations below about 255 mm (at 5 rad/s) bounded; larger"
    assert words in explain(e)


@pytest.mark.parametrize("coulomb", [0.6, 0.0])
@pytest.mark.parametrize("Gv", [1.0, 1.7])
def test_falling_friction_is_not_blamed_of_a_loop_that_is_unstable_without_it(judged, Gv, coulomb):
    # unstable without friction up to Gv = m k_i/k = 1.6
    _, verdict = judged(RUBS | {"coulomb": coulomb}, PID | {"Gv": [Gv]})
    unstable = Gv < 1.6

    assert verdict.slides is unstable
    assert verdict.hunts is not unstable
    assert verdict.dampers[0].unstable[0].low < 0


def test_joints_together_slide_whatever_falls_where_they_are_unstable_anyway(make):
    falling = -0.1 * np.eye(2)
    linear = make["linear"](np.eye(2), falling, np.eye(2), np.zeros((2, 2)), np.zeros((2, 2)))
    for coulomb in (1.0, 0.0):
        dry = _DryJoints(
            rows=(0, 1),
            fall=np.ones(2),
            coulomb=coulomb * np.ones(2),
            breakaway=2 * np.ones(2),
            slide=(False, False),
        )
        assert _judge(linear, dry, None, None).slides


def test_friction_bounds_nothing_where_no_damper_makes_a_loop_stable(make):
    # x'' + d x' - x = 0 with any d
    linear = make["linear"](1.0, 0.0, -1.0, 0.0, 0.0)
    dry = _DryJoints(
        rows=(0,),
        fall=np.zeros(1),
        coulomb=np.ones(1),
        breakaway=np.ones(1),
        slide=(False,),
    )
    own = _judge(linear, dry, 0, 0)
    assert [(one.low, one.high) for one in own.unstable] == [(0.0, np.inf)]
    assert own.threshold == 0.0
    verdict = FrictionVerdict(dampers=(own,), sticking_offset=1.0, hunts=False, integral=False)
    assert _friction(verdict, 1e-4) == []


def test_a_run_ends_where_friction_may_hold_it(judged):
    loop, verdict = judged(RUBS)
    e = evaluate(loop)
    assert 1e-4 < e.residual.tip_error_end < verdict.sticking_offset


def test_two_joints_are_judged_alone_and_together(make):
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    links = [line | {"friction": {"coulomb": F}} for F in (1.0, 0.3)]
    arm = make["arm"](links, (0.0, -9.81, 0.0))
    design = make["design"]([0.3, 0.4], [0.5, 0.2], gains={"Gp": [100.0], "Gv": [20.0]})
    loop = make["close"](arm, design)
    linear = linear_poses(loop).final
    verdict = judge_friction(loop, linear)
    pairs = [(0, None), (1, None), (None, None), (1, 0), (0, 1)]
    assert [(own.joint, own.stuck_joint) for own in verdict.dampers] == pairs
    assert verdict.stable
    # static equilibria by hand: (K - B Kq) q = -f at the corners
    J = linear.plant.K - linear.plant.B @ linear.feedback[:, :2]
    G = linear.plant.outputs[2:5, :2]
    off = [np.linalg.norm(G @ np.linalg.solve(J, [1.0, s * 0.3])) for s in (1, -1)]
    assert verdict.sticking_offset == pytest.approx(max(off), rel=1e-6)


@pytest.mark.usefixtures("no_compiler")
def test_what_rings_while_friction_holds_a_rotor_is_the_arm_alone(make):
    # a rigid link on its spring, and a notch that swings with less damping than the link
    spring = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.1}
    hub = {"mass": 1.0, "inertia": [0.4] * 3}
    link = {"length": 0.5, "mass_per_length": 0.2, "hub": hub, "friction": RUBS}
    arm = make["arm"]([{"joint": "revolute", "flexible_joint": spring, **link}])
    notch = {"kind": "notch", "frequency": 30.0, "zero_damping": 1e-4, "pole_damping": 1e-3}
    design = make["design"](
        [0.0], [0.5], "joint-pd", gains={"Gp": [5.0], "Gv": [1.0]}, filters=[notch]
    )
    loop = make["close"](arm, design)
    linear = linear_poses(loop).final
    verdict = judge_friction(loop, linear)
    inertia = linear.plant.M[0, 0]

    assert verdict.held_frequency == pytest.approx(
        np.sqrt(60 / inertia - (0.1 / (2 * inertia)) ** 2), rel=1e-6
    )
    assert verdict.held_damping_ratio == pytest.approx(0.1 / (2 * np.sqrt(60 * inertia)), rel=1e-6)


def test_a_rigid_link_that_sticks_does_not_ring(judged):
    verdict = judged(RUBS)[1]
    assert verdict.held_frequency is None
    assert verdict.held_damping_ratio is None


FALLS = ({"coulomb": 1.0}, {"coulomb": 0.1, "static": 0.5, "stribeck_velocity": 0.05})


def test_joints_together_slide_on_the_steepest_fall_of_each(make):
    """Not on that of the joint with the least Coulomb friction, scaled to the others."""
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    arm = make["arm"]([line | {"friction": own} for own in FALLS])
    slopes = [steepest_fall(Friction(**own)) for own in FALLS]
    found = []
    for Gv in (12.0, 6.0, 3.0):
        design = make["design"](
            [0.3, 0.4], [0.5, 0.2], "joint-pd", gains={"Gp": [40.0] * 2, "Gv": [Gv] * 2}
        )
        loop = make["close"](arm, design)
        linear = linear_poses(loop).final
        together = judge_friction(loop, linear).dampers[2]
        D = linear.plant.D - np.diag(slopes)
        poles = linear.with_plant(replace(linear.plant, D=D)).poles
        assert together.least == -1
        assert together.slides == bool(poles.real.max() < 0)
        chord = linear.plant.D - 0.6381726863 / np.sqrt(2 / np.e) * np.diag(slopes)
        poles = linear.with_plant(replace(linear.plant, D=chord)).poles
        assert together.breaks_away == bool(poles.real.max() > 0)
        found.append((together.slides, together.breaks_away))
    assert found == [(True, False), (False, False), (False, True)]


def test_joints_with_static_friction_alone_are_judged_together(make):
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    arm = make["arm"]([line | {"friction": {**FALLS[1], "coulomb": 0.0}}] * 2)
    gains = {"Gp": [40.0] * 2, "Gv": [12.0] * 2}
    loop = make["close"](arm, make["design"]([0.3, 0.4], [0.5, 0.2], "joint-pd", gains=gains))
    together = judge_friction(loop, linear_poses(loop).final).dampers[2]

    assert together.joint is None
    assert together.stable


def sprung(side):
    spring = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.5}
    hub = {"mass": 1.0, "inertia": [0.4] * 3}
    link = {
        "joint": "revolute",
        "length": 0.5,
        "mass_per_length": 0.2,
        "hub": hub,
        "dh": {"a": 0.5},
    }
    return link | {"flexible_joint": spring, "friction": {**RUBS, "side": side}}


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(("side", "held"), [("motor", None), ("link", 0.5 * RUBS["static"] / 60)])
def test_an_integral_at_the_motor_leaves_what_friction_holds_behind_the_spring(make, side, held):
    gains = {"Gp": [20.0], "Gv": [4.0], "Gi": [10.0]}
    design = make["design"]([0.0], [0.5], "joint-pd", gains=gains)
    loop = make["close"](make["arm"]([sprung(side)]), design)
    verdict = judge_friction(loop, linear_poses(loop).final)

    assert verdict.integral
    assert verdict.sticking_offset == (held and pytest.approx(held, rel=1e-6))


@pytest.mark.usefixtures("no_compiler")
def test_friction_behind_a_slow_instrument_is_held_by_the_mean_torque(make):
    """Against the periodic solution of the sampled loop over a whole cycle, by hand."""
    T, every = 0.002, 10
    link = {
        "joint": "revolute",
        "length": 0.6,
        "mass_per_length": 0.3,
        "EI": {"y": 6.0},
        "damping_ratio": 0.02,
        "joint_inertia": 0.05,
        "friction": {"coulomb": 0.2},
    }
    design = make["design"](
        [0.0],
        [0.3],
        "lqg",
        gains=None,
        basis={"kind": "modes", "order": 1},
        second_loop={"weights": {"joint_error": 100.0, "joint_rate": 1.0, "effort": 1.0}},
        observer={"noise": {"torque": 3e-3, "tip": 3e-3}},
        instruments=[
            {"kind": "encoder", "resolution": 1e-5},
            {"kind": "deflection", "xi": 1.0, "noise": 3e-5, "sample_time": T * every},
        ],
        loop={"sample_time": T},
    )
    loop = make["close"](make["arm"]([link]), design)
    linear = linear_poses(loop).final
    verdict = judge_friction(loop, linear)
    plant, n = linear.plant, len(linear.plant.M)
    force = np.zeros((2 * n, 1))
    force[n:, 0] = 0.2 * np.linalg.inv(plant.M)[:, 0]
    stacked = np.block([[plant.A_state, plant.B_state, force], [np.zeros((2, 2 * n + 2))]])
    over = scipy.linalg.expm(T * stacked)[: 2 * n]
    n_z = len(linear.F)

    def cycle(X, f):
        for one in linear.samples:
            x, z = X[: 2 * n], X[2 * n :]
            tau = one.feedback @ x + one.integral_gain @ z
            after = over[:, : 2 * n] @ x + over[:, 2 * n : -1] @ tau + over[:, -1] * f
            X = np.concatenate([after, z + T * (one.E @ x + one.F @ z)])
        return X

    size = 2 * n + n_z
    A = np.transpose([cycle(column, 0.0) for column in np.eye(size)])
    X = np.linalg.lstsq(np.eye(size) - A, cycle(np.zeros(size), 1.0), rcond=None)[0]

    assert len(linear.samples) == every
    moved = np.linalg.norm(plant.outputs[1:4] @ X[: 2 * n])
    assert verdict.sticking_offset == pytest.approx(moved, rel=1e-3)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(("slow", "integrates"), [(0.0, True), (-1.0, False)])
def test_a_law_with_a_fast_pole_integrates_only_if_another_one_is_zero(make, slow, integrates):
    arm = make["arm"]([{"joint": "prismatic", "hub": {"mass": MASS}, "friction": RUBS}])
    A, B = np.diag([-2e9, slow, -3.0]), np.ones((3, 2))
    law = control.ss(A, B, [[1.0, 0.1, 1.0]], [[40.0, 9.0]])
    reference = {"kind": "cycloid", "from": [0.0], "to": [0.5], "duration": 0.5}
    controller = wrap_controller(law, arm, reference, measures=["joint1", "joint1_rate"])
    loop = close_loop(controller, arm, BasisChoice(order=1))

    assert judge_friction(loop, linear_poses(loop).final).integral is integrates
