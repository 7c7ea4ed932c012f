"""Margins at the sensors against loops made here, and against what they mean: scaled readings."""

from dataclasses import replace
from pathlib import Path

import control
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import flexctl
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.law_signals import LawSignals
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.search.tuning.free_numbers import read_free
from flexctl.search.tuning.refusals import check_metrics
from flexctl.search.tuning.requirements import read_objective, read_requirement
from flexctl.verdict import linear_poses_metrics, metrics, stability_margins
from flexctl.verdict.margins_at_sensors import own_torques, sensor_margins
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.arms import rigid_link, rigid_two_link, single_link, sliding_arm
from tests.designs import make_design
from tests.loops import hand_made

pytestmark = pytest.mark.usefixtures("no_compiler")

HUB = "single-link-hub", "hub-lqg"
J, GP, GV, TAU, T = 0.5, 40.0, 6.0, 0.004, 0.002  # of a rigid joint under PD control
PD = {"method": "joint-pd", "gains": {"Gp": [GP], "Gv": [GV]}}
PID = {"Gp": [GP], "Gv": [GV], "Gi": [20.0], "derivative_filter": 300.0}
READ = [{"kind": "encoder"}, {"kind": "difference", "time_constant": TAU}]
LATE = [{"kind": "encoder", "delay": 0.003}, READ[1]]
NOISY = [{"kind": "encoder", "noise": 1e-6}]
GAUGED = [*NOISY, {"kind": "gauge", "xi": 0.1, "noise": 1e-3}]
SAMPLED = {"loop": {"sample_time": T, "delay": T}}
EARTH = (0.0, -9.81, 0.0)
LQG = {
    "method": "lqg",
    "gains": None,
    "second_loop": {"weights": {"joint_error": 300.0, "joint_rate": 3.0, "effort": 0.01}},
}
ROBUST = {
    "joint_error": 1000.0, "joint_rate": 30.0, "strain_energy": 10.0, "kinetic_energy": 10.0,
    "effort": 1.0,
}  # fmt: skip
NUMBERS = (
    "gain_up_db", "gain_down_db", "phase_deg", "delay_seconds", "disk", "reading_disk",
    "reading_sensitivity_peak", "reading_complementary_peak",
)  # fmt: skip
SPRING = {"flexible_joint": {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.05}}


def closed(arm, start, end, order=1, **tables):
    """A loop of an arm on its own design plant."""
    tables.setdefault("basis", {"kind": "modes", "order": order})
    design = make_design(start, end, **tables)
    return close_loop(design_controller(arm, design), arm, BasisChoice(order=order))


def crossings(values, w, f):
    """Frequencies at which a real function changes its sign, from values on a grid."""
    return [
        scipy.optimize.brentq(f, w[k], w[k + 1], xtol=1e-14)
        for k in np.flatnonzero(np.diff(np.sign(values)) != 0)
    ]


@pytest.mark.parametrize("sampled", [False, True])
def test_one_encoder_of_one_joint_sees_the_loop_of_its_actuator(sampled):
    tables = PD | {"instruments": READ} | (SAMPLED if sampled else {})
    linear = flexctl.linearise(closed(rigid_link(J), [0.0], [0.5], **tables))

    def L(w):  # the sampled one is a sample late, and its difference that of the low-pass held
        if not sampled:
            s = 1j * w
            return (GP + GV * s / (TAU * s + 1)) / (J * s**2)
        z, a = np.exp(1j * w * T), np.exp(-T / TAU)
        return (
            T**2
            / (2 * J)
            * (z + 1)
            / (z - 1) ** 2
            / z
            * (GP + GV * (1 - a) / T * (z - 1) / (z - a))
        )

    w = np.geomspace(0.1, 0.999 * np.pi / T if sampled else 1e4, 20001)
    one = crossings(np.abs(L(w)) - 1, w, lambda x: np.abs(L(x)) - 1)
    real = [x for x in crossings(L(w).imag, w, lambda x: L(x).imag) if L(x).real < 0]
    gain = 20 * np.log10(-1 / np.array([L(x).real for x in real]))
    expected = gain[gain > 0].min(initial=np.inf), (-gain[gain < 0]).min(initial=np.inf)
    phase = min(abs(np.degrees(np.angle(-L(x)))) for x in one)
    disk = 1 / np.abs(1 / (1 + L(w)) - 0.5).max()

    assert len(real) == sampled  # a continuous loop of two integrators never loses stability
    for found in (sensor_margins(linear), sensor_margins(linear, stability_margins(linear))):
        assert found.readings == ("encoder of joint1",)
        assert found.gain_up_db[0] == pytest.approx(expected[0], rel=1e-7)
        assert min(found.gain_down_db[0], 200.0) == pytest.approx(min(expected[1], 200.0))
        assert found.phase_deg[0] == pytest.approx(phase, rel=1e-7)
        assert found.disk == pytest.approx(disk, rel=1e-5)
        assert found.reading_disk == pytest.approx([found.disk], rel=1e-6)


def random_loop(seed, p, sampled=False):
    """Stable loop of three masses under two torques; the law has two states and p readings."""
    rng = np.random.default_rng(seed)
    R, Q = rng.normal(size=(2, 3, 3))
    M, K = np.eye(3) + 0.2 * R @ R.T, 30 * Q @ Q.T + np.eye(3)
    C, by_tau, by_z, F = (rng.normal(size=shape) for shape in ((p, 6), (2, p), (2, p), (2, 2)))
    F = F - (1 + np.linalg.norm(F, 2)) * np.eye(2)
    for share in 30 * 0.8 ** np.arange(60):  # the strongest feedback that is stable
        wild = share * by_tau
        period = {"sample_time": 0.02, "delay": 0.02} if sampled else {}
        loop = hand_made(M, 0.3 * np.eye(3) + 0.01 * K, K, np.zeros((2, 3)), np.zeros((2, 3)))
        read = LawSignals(names=tuple("abc"[:p]), C=C, by_tau=wild, by_z=by_z, of_instruments=True)
        loop = replace(
            loop, feedback=wild @ C, integral_gain=2 * share * np.eye(2), driven_by=by_z @ C,
            own=F, read=read, **period,
        )  # fmt: skip
        if growth(loop, np.ones(p)) < 0:
            return loop
    raise AssertionError("no stable loop")


def closed_matrix(loop, factors):
    """State matrix with the readings multiplied by factors (p,), or the map over a sample."""
    read, A, B = loop.signals, loop.plant.A_state, loop.plant.B_state
    K, E = (gain @ np.diag(factors) @ read.C for gain in (read.by_tau, read.by_z))
    L, F, (n, m) = loop.integral_gain, loop.F, B.shape
    if loop.sample_time is None:
        return np.block([[A + B @ K, B @ L], [E, F]])
    period = loop.sample_time
    assert loop.delay == period  # the torque of a sample acts from the next one on
    Phi = scipy.linalg.expm(period * np.block([[A, B], [np.zeros((m, n + m))]]))
    Phi, Gamma = Phi[:n, :n], Phi[:n, n:]
    law = np.eye(len(F)) + period * F
    return np.block([
        [Phi, np.zeros((n, len(F))), Gamma],
        [period * E, law, np.zeros((len(F), m))],
        [K, L, np.zeros((m, m))],
    ])  # fmt: skip


def growth(loop, factors):
    """Above 0 where the loop with its readings multiplied by factors is unstable."""
    values = np.linalg.eigvals(closed_matrix(loop, factors))
    return values.real.max() if loop.sample_time is None else np.abs(values).max() - 1


LOOPS = [(1, 2, False), (2, 3, False), (3, 2, True), (4, 3, True), (5, 1, False)]


@pytest.fixture(params=LOOPS, ids=str, scope="module")
def loop(request):
    return random_loop(*request.param)


@pytest.fixture(scope="module")
def found(loop):
    return sensor_margins(loop)


def test_nothing_inside_the_disk_of_all_readings_destabilises(loop, found):
    p, rng = len(found.readings), np.random.default_rng(0)
    radius = found.disk * 0.999 * np.sqrt(rng.uniform(size=(1000, p)))
    radius[:500] = found.disk * 0.999
    delta = radius * np.exp(2j * np.pi * rng.uniform(size=(1000, p)))

    assert max(growth(loop, (2 + one) / (2 - one)) for one in delta) < 0


def test_the_worst_of_readings_just_outside_does(loop, found):
    p, at = len(found.readings), found.disk_frequency
    s = 1j * at if loop.sample_time is None else np.exp(1j * at * loop.sample_time)
    Z = sensitivity(loop, s) - np.eye(p) / 2

    def most(phases):  # the eigenvalue of Z Delta that a common phase makes 1, for |delta| = 1
        return -np.abs(np.linalg.eigvals(Z * np.exp(1j * np.append(phases, 0.0)))).max()

    starts = np.random.default_rng(1).uniform(0, 2 * np.pi, size=(12, p - 1))
    tried = [scipy.optimize.minimize(most, x).x if p > 1 else x for x in starts]
    worst = min(tried, key=most)
    turned = np.exp(1j * np.append(worst, 0.0))
    values = np.linalg.eigvals(Z * turned)
    delta = 1.01 * found.disk * turned * np.exp(-1j * np.angle(values[np.abs(values).argmax()]))

    assert -most(worst) * found.disk == pytest.approx(1, rel=1e-5)  # of up to three exact
    assert growth(loop, (2 + delta) / (2 - delta)) > 0


def sensitivity(loop, s):
    """(I + P C)^-1 at the readings at a point s or z, from the parts of the loop."""
    read, A, B = loop.signals, loop.plant.A_state, loop.plant.B_state
    period, late = loop.sample_time, 1.0
    F, by_z = loop.F, read.by_z
    if period is not None:
        n, m = B.shape
        whole = scipy.linalg.expm(period * np.block([[A, B], [np.zeros((m, n + m))]]))
        A, B, late = whole[:n, :n], whole[:n, n:], 1 / s
        F, by_z = np.eye(len(F)) + period * F, period * by_z
    P = late * read.C @ np.linalg.solve(s * np.eye(len(A)) - A, B)
    K = read.by_tau + loop.integral_gain @ np.linalg.solve(s * np.eye(len(F)) - F, by_z)
    return np.linalg.inv(np.eye(len(read.names)) - P @ K)


@pytest.mark.slow_but("(2, 3, False)", "(5, 1, False)", "(1, 2, False)")
def test_disks_and_peaks_are_those_of_the_sensitivity_on_a_grid(loop, found):
    at, fastest = found.disk_frequency, np.inf
    if loop.sample_time is not None:
        fastest = np.pi / loop.sample_time
    w = np.append(np.geomspace(0.02, min(fastest, 500.0), 4000), at)
    S = np.array([
        sensitivity(loop, 1j * x if loop.sample_time is None else np.exp(1j * x * loop.sample_time))
        for x in w
    ])  # fmt: skip
    own = np.einsum("kii->ki", S)

    for values, expected in (
        (found.reading_sensitivity_peak, np.abs(own).max(axis=0)),
        (found.reading_complementary_peak, np.abs(own - 1).max(axis=0)),
        (found.reading_disk, 1 / np.abs(own - 0.5).max(axis=0)),
    ):
        np.testing.assert_allclose(values, expected, rtol=5e-3)  # the grid misses the very peak
    assert found.disk <= found.reading_disk.min() * (1 + 1e-9)


def test_the_disk_of_all_readings_is_that_of_python_control():
    loop = random_loop(6, 3)
    read, n = loop.signals, len(loop.plant.A_state)
    plant = control.ss(loop.plant.A_state, loop.plant.B_state, read.C, np.zeros((3, 2)))
    law = control.ss(loop.F, read.by_z, -loop.integral_gain, -read.by_tau)
    found = sensor_margins(loop)
    at = found.disk_frequency
    w = np.sort(np.append(np.geomspace(at / 100, at * 100, 800), at))
    expected = control.disk_margins(plant * law, w, skew=0.0)[0]

    assert found.disk == pytest.approx(expected, rel=1e-3)
    assert found.disk <= expected * (1 + 1e-6)
    assert n == 6


def test_an_estimator_that_is_robust_at_its_torque_need_not_be_at_its_sensors():
    # the compensator from the gains alone: x^' = (A - B G - L C) x^ + L y, u = -G x^
    arm, ends = single_link(), ([0.0], [0.6])
    noise = {"encoder": 1e-6, "tachometer": 1e-4, "strain_gauge": 1e-5, "torque": 3e-3, "tip": 3e-3}
    measured = {"measures": ["encoder", "tachometer", "strain_gauge"]}
    tables = {"method": "lqg", "gains": None, "second_loop": {"decay": 4.0, "weights": ROBUST}}
    seen = closed(arm, *ends, **tables, observer={"noise": noise}, loop=measured)
    linear, observer = flexctl.linearise(seen), seen.controller.observer
    state = flexctl.linearise(closed(arm, *ends, **tables))
    A, B, G = linear.plant.A_state, linear.plant.B_state, -state.feedback
    C, L = observer.instruments.C, observer.gain
    law = control.ss(A - B @ G - L @ C, L, G, np.zeros((1, len(C))))
    around = control.ss(A, B, C, np.zeros((len(C), 1))) * law
    found, at_torque = sensor_margins(linear), stability_margins(linear)
    at = found.disk_frequency
    w = np.sort(np.append(np.geomspace(at / 100, at * 100, 800), at))

    assert found.disk == pytest.approx(control.disk_margins(around, w, skew=0.0)[0], rel=1e-3)
    assert found.disk < 0.5 * at_torque.disk


def test_the_disks_of_the_reference_are_those_of_the_catalogue():
    loop = flexctl.close_loop(flexctl.design_controller(*HUB), HUB[0])
    disks = flexctl.stability_margins(loop).disk, flexctl.sensor_margins(loop).disk
    page = (Path(__file__).parents[2] / "docs/reference/verdicts.md").read_text("utf-8")

    assert f"`{HUB[1]}` has the disks {disks[0]:.3f} and {disks[1]:.3f}." in page


CASES = {
    "rigid joint": (rigid_link, PD | {"instruments": READ}, [0.0], [0.5]),
    "late reading": (rigid_link, PD | {"instruments": LATE} | SAMPLED, [0.0], [0.5]),
    "tachometer": (
        rigid_link,
        PD | {"instruments": [{"kind": "encoder"}, {"kind": "tachometer"}]} | SAMPLED,
        [0.0],
        [0.5],
    ),
    "gravity, sampled": (
        rigid_two_link, PD | {"instruments": READ} | SAMPLED, [-1.2, 0.3], [-0.5, 0.9],
    ),
    "computed torque": (
        rigid_two_link,
        PD | {"method": "computed-torque", "instruments": READ} | SAMPLED,
        [-1.2, 0.3],
        [-0.5, 0.9],
    ),
    "sliding": (sliding_arm, PD | {"instruments": READ} | SAMPLED, [0.0, 0.3], [0.5, 0.8]),
    "observer of springs": (
        lambda: single_link(**SPRING), LQG | {"instruments": NOISY} | SAMPLED, [0.0], [0.6],
    ),
    "observer with gauges": (single_link, LQG | {"instruments": GAUGED}, [0.0], [0.6]),
    "sampled gauges": (single_link, LQG | {"instruments": GAUGED} | SAMPLED, [0.0], [0.6]),
    "integral action": (
        single_link,
        {"method": "pid", "gains": PID, "instruments": NOISY} | SAMPLED,
        [0.0],
        [0.6],
    ),
}  # fmt: skip


ALIKE = ("tachometer", "computed torque", "sampled gauges")  # too slow for every run


@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.slow) if n in ALIKE else n for n in CASES],
    scope="module",
)
def instrumented(request):
    arm, tables, start, end = CASES[request.param]
    return flexctl.linearise(closed(arm(), start, end, **tables))


def scaled_growth(loop, j, factor):
    """Largest real part, or size less 1 of a multiplier, with one reading times a factor."""
    read, f = loop.signals, np.ones(len(loop.signals.names))
    f[j] = factor
    changed = replace(
        loop, feedback=read.by_tau * f @ read.C, driven_by=read.by_z * f @ read.C, read=None
    )
    if loop.sample_time is None:
        return np.linalg.eigvals(changed.A + changed.B @ changed.K).real.max()
    return np.abs(np.linalg.eigvals(sampled_loop(changed, loop.sample_time, loop.delay))).max() - 1


def test_a_reading_off_by_its_gain_margin_is_where_stability_ends(instrumented):
    found = sensor_margins(instrumented)
    ends = [(j, x, 1) for j, x in enumerate(found.gain_up_db) if x < 100]
    ends += [(j, x, -1) for j, x in enumerate(found.gain_down_db) if x < 100]
    for j, size, side in ends:
        end = 10 ** (side * size / 20)
        inside, outside = (1 + share * (end - 1) for share in (0.99, 1.01))
        assert scaled_growth(instrumented, j, inside) < 0
        assert scaled_growth(instrumented, j, outside) > 0


def test_readings_of_single_torques_have_the_margins_of_these(instrumented):
    own, direct = own_torques(instrumented), sensor_margins(instrumented)
    taken = sensor_margins(instrumented, stability_margins(instrumented))
    one_by_one = len(direct.readings) == instrumented.plant.B.shape[1]

    assert one_by_one or own is None
    assert_same(direct, taken)


def springs(C, **sampled):
    """Two rotors that drive a mass each, coupled; each torque by one reading and its filter."""
    M = np.diag([0.1, 0.2, 1.0, 2.0])
    k = np.array([[60, 0, -60, 0], [0, 40, 0, -40], [-60, 0, 70, -10], [0, -40, -10, 50.0]])
    loop = hand_made(M, 0.02 * k + 0.4 * np.eye(4), k, np.zeros((2, 4)), np.zeros((2, 4)))
    names, filtered = tuple("abcd"[: len(C)]), -np.diag([40.0, 60.0])
    order = [int(np.flatnonzero(row)[0]) % 2 for row in C]  # the torque of every reading
    by_tau = np.diag([-8.0, -5.0])[:, order]
    by_z = np.eye(2)[:, order]
    read = LawSignals(names=names, C=C, by_tau=by_tau, by_z=by_z, of_instruments=True)
    loop = replace(
        loop, feedback=by_tau @ C, integral_gain=-np.diag([20.0, 30.0]), driven_by=by_z @ C,
        own=filtered, read=read, **sampled,
    )  # fmt: skip
    return loop, order


LATE_TORQUE = {"sample_time": 0.01, "delay": 0.004}


@pytest.mark.parametrize("rows", [[0, 1], [1, 0], [2, 3], [3, 2]], ids=str)
@pytest.mark.parametrize("sampled", [{}, LATE_TORQUE], ids=["continuous", "sampled"])
def test_each_reading_with_a_torque_of_its_own_takes_its_margins(rows, sampled):
    loop, order = springs(np.eye(8)[rows], **sampled)
    known, direct = stability_margins(loop), sensor_margins(loop)
    taken = sensor_margins(loop, known)

    assert own_torques(loop).tolist() == order
    assert_same(direct, taken)
    assert len({x.round(6) for x in known.phase_deg}) == 2


def test_a_reading_far_from_its_torque_is_late_in_its_own_way():
    # by a part of a sample: torques that move other masses in it than the readings are of
    M = np.diag([0.43, 1.64, 0.56, 0.165])
    k = np.array([[50, 0, -50, 0], [0, 30, 0, -30], [-50, 0, 118, -63], [0, -30, -63, 101.0]])
    by_tau, C = -np.diag([3.4, 4.5]), np.eye(8)[[2, 3]]
    loop = hand_made(M, 0.02 * k + 0.3 * np.eye(4), k, by_tau @ C[:, :4], np.zeros((2, 4)))
    read = LawSignals(names=("a", "b"), C=C, by_tau=by_tau, by_z=np.zeros((0, 2)),
                      of_instruments=True)  # fmt: skip
    loop = replace(loop, read=read, sample_time=0.2, delay=0.06)
    known, direct = stability_margins(loop), sensor_margins(loop)

    assert_same(direct, sensor_margins(loop, known))
    assert np.abs(known.delay_seconds / direct.delay_seconds - 1).max() > 1e-3


@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 4, 1]], ids=str)
def test_readings_that_share_a_torque_are_judged_apart(rows):
    loop, _ = springs(np.eye(8)[rows])
    assert own_torques(loop) is None
    assert_same(sensor_margins(loop), sensor_margins(loop, stability_margins(loop)))


def fast_mode(turns, C, by_tau):
    """A joint under PD control that carries a mode of so many turns in a sample of 0.1 s."""
    M, D = np.array([[1.0, 0.5], [0.5, 1.0]]), np.diag([0.0, 1e-4])
    K = np.diag([0.0, 0.75 * (2 * np.pi * turns / 0.1) ** 2])
    loop = hand_made(M, D, K, [[-4.0, 0.0]], [[-3.0, 0.0]], None, 0.1)
    C, names = np.array(C, dtype=float), tuple("ab"[: len(C)])
    by_z = np.zeros((0, len(C)))
    read = LawSignals(names=names, C=C, by_tau=np.array(by_tau), by_z=by_z, of_instruments=True)
    return replace(loop, read=read)


READ_APART = [[1, 0, 0, 0], [0, 0, 1, 0]], [[-4.0, -3.0]]
READ_AS_ONE = [[4, 0, 3, 0]], [[-1.0]]


@pytest.mark.parametrize("read", [READ_APART, READ_AS_ONE], ids=["apart", "as one"])
@pytest.mark.parametrize(
    ("turns", "samples", "bound"), [(9.3, 0, False), (15.3, 0, True), (9.3, 2, True)]
)
def test_delays_of_readings_are_upper_bounds_beside_a_mode_that_is_too_fast(
    read, turns, samples, bound
):
    loop = fast_mode(turns, *read)
    loop = replace(loop, samples=(loop,) * samples)
    found = sensor_margins(loop, stability_margins(loop))

    assert found.delay_may_be_less == bound
    assert to_json(found)["delay_may_be_less"] is bound
    assert ("Delay margins are upper bounds." in explain(found)) == bound


def assert_same(one, other):
    for name in NUMBERS:
        a, b = (np.minimum(getattr(each, name), 120.0) for each in (one, other))
        np.testing.assert_allclose(a, b, rtol=2e-6, err_msg=name)


def check(loop, objective, limit):
    """Ask as tuning does whether the verdict has these metrics."""
    numbers = read_free(loop.controller.design, [], joints=1)
    check_metrics(loop, read_objective(objective), [read_requirement(limit)], numbers)


def test_a_law_of_the_state_has_none_and_tuning_says_so():
    loop = closed(single_link(), [0.0], [0.6])
    with pytest.raises(InputError, match="names no instruments: the law reads the state"):
        sensor_margins(loop)
    key = "margins.sensors.disk"
    assert linear_poses_metrics(loop, [key]) == {key: None}
    with pytest.raises(InputError, match=f"^subject_to: .* has, got {key} >= 0.5 .*no instruments"):
        check(loop, "effort.energy", f"{key}>=0.5")


def test_metrics_are_those_of_the_worst_reading():
    loop = closed(single_link(), [0.0], [0.6], **LQG | {"instruments": GAUGED})
    found, verdict = sensor_margins(loop), flexctl.evaluate(loop)
    known = {key: value for key, value in metrics(verdict).items() if ".sensors." in key}
    keys = list(known)

    check(loop, keys[-1], f"{keys[3]}>=0.5")
    assert linear_poses_metrics(loop, keys) == pytest.approx(known)
    assert known["margins.sensors.gain_db"] == found.gain_db.min()
    assert known["margins.sensors.disk"] == found.disk
    assert known["margins.sensors.reading_sensitivity_peak"] == found.reading_sensitivity_peak.max()
    assert flexctl.to_json(verdict)["margins"]["sensors"] == flexctl.to_json(found)
