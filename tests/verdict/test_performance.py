"""What a run shows, figured again by loops over its samples: nothing of the package adds up here.

Runs are made by hand, so that every joint, every phase and both norms have values of their own.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl.simulation.trajectory import EnergyAccount, Trajectory
from flexctl.verdict.performance import find_no_rest, judge_effort, judge_residual, judge_tracking

END, LAST, BAND = 1.0, 3.0, 0.02


def designed(end=END, last=LAST, band=BAND, rests=True):
    """What the judges ask of a controller."""
    reference = SimpleNamespace(duration=end, rests=rests)
    design = SimpleNamespace(loop=SimpleNamespace(settle_within=band))
    return SimpleNamespace(reference=reference, duration=last, design=design)


def run_of(t, tau, v, q=None, desired=None, tip=None, desired_tip=None, rest_tip=(0, 0, 0), **more):
    """A run with the given signals and zeros elsewhere: m torques on the rows `drives` of q."""
    t, tau, v = np.asarray(t, float), np.atleast_2d(tau), np.atleast_2d(v)
    n, m, N = len(v), len(tau), len(t)
    nothing = np.zeros(N)
    account = EnergyAccount(
        kinetic=nothing, strain=nothing, potential=nothing, supplied=nothing, dissipated=nothing
    )
    values = dict(
        t=t, q=np.zeros((n, N)) if q is None else q, v=v, a=np.zeros((n, N)), tau=tau, torque=tau,
        z=np.zeros((0, N)), desired=np.zeros((m, N)) if desired is None else desired,
        desired_rate=np.zeros((m, N)), tip=np.zeros((3, N)) if tip is None else tip,
        desired_tip=np.zeros((3, N)) if desired_tip is None else desired_tip,
        tip_rate=np.zeros((3, N)), desired_tip_rate=np.zeros((3, N)),
        rest_tip=np.array(rest_tip, float), deflection={}, slope={}, energy=account,
        coordinates=tuple(f"x{k}" for k in range(n)), joints=tuple(f"j{k}" for k in range(m)),
        drives=tuple(range(m)), command_units=m * ("N m",), saturated=np.zeros(m),
        steps=1, rejected=0, evaluations=1, wall_seconds=0.0, integrator="explicit", assumptions=(),
    )  # fmt: skip
    return Trajectory(**(values | more))


def uneven(count=61, last=LAST, seed=3):
    """Times from 0 to `last` with the end of the reference among them, no two steps alike."""
    inner = np.random.default_rng(seed).uniform(0, last, count - 3)
    return np.unique(np.concatenate([[0.0, END, last], inner]))


def trapezoids(t, y):
    """Integral of y over t, added up one by one."""
    return sum((t[k + 1] - t[k]) * (y[k] + y[k + 1]) / 2 for k in range(len(t) - 1))


@pytest.fixture(scope="module")
def busy():
    """Three joints, the middle one behind a spring: its torque acts on the rotor, row 3 of q."""
    rng, t = np.random.default_rng(8), uneven()
    n, m, N = 6, 3, len(t)
    return run_of(
        t,
        rng.normal(size=(m, N)) * np.array([[5.0], [0.4], [70.0]]),
        rng.normal(size=(n, N)),
        q=0.01 * rng.normal(size=(n, N)),
        desired=0.01 * rng.normal(size=(m, N)),
        tip=0.01 * rng.normal(size=(3, N)),
        desired_tip=0.01 * rng.normal(size=(3, N)),
        rest_tip=(0.01, -0.02, 0.03),
        drives=(0, 3, 2),
        saturated=np.array([0.25, 0.0, 1.5]),
    )


def distance(a, b):
    return [float(sum((a[i][k] - b[i][k]) ** 2 for i in range(3)) ** 0.5) for k in range(len(a[0]))]


def test_energy_is_the_sum_of_what_every_actuator_moves(busy):
    found = judge_effort(busy)
    each = [
        trapezoids(busy.t, [abs(a * b) for a, b in zip(busy.tau[j], busy.v[row], strict=True)])
        for j, row in enumerate((0, 3, 2))
    ]

    assert found.energy == pytest.approx(sum(each), rel=1e-12)


def test_joints_that_feed_each_other_cost_both():
    # +3 W and -3 W at once: 6 W of effort, and not the 0 W that the arm gets
    run = run_of([0.0, 1.0, 2.0], [[3.0] * 3, [-1.5] * 3], [[1.0] * 3, [2.0] * 3])

    assert judge_effort(run).energy == pytest.approx(12.0)


def test_peaks_rms_and_seconds_at_the_limit_are_those_of_each_joint(busy):
    found = judge_effort(busy)
    for j in range(3):
        squares = [x * x for x in busy.tau[j]]
        assert found.peak[j] == max(abs(x) for x in busy.tau[j])
        assert found.rms[j] == pytest.approx((trapezoids(busy.t, squares) / LAST) ** 0.5, rel=1e-12)
    assert found.saturated_seconds.tolist() == [0.25, 0.0, 1.5]


def test_means_are_over_the_time_of_the_run_whenever_it_begins(busy):
    later = replace(busy, t=busy.t + 7.0)

    np.testing.assert_allclose(judge_effort(later).rms, judge_effort(busy).rms, rtol=1e-12)


def test_tracking_is_judged_until_the_reference_ends(busy):
    found = judge_tracking(busy, designed())
    count = sum(1 for x in busy.t if x <= END)
    error = distance(busy.tip, busy.desired_tip)[:count]
    assert 3 < count < len(busy.t) - 3

    mean = trapezoids(busy.t[:count], [x * x for x in error]) / END
    assert found.tip_error_max == pytest.approx(max(error), rel=1e-12)
    assert found.tip_error_rms == pytest.approx(mean**0.5, rel=1e-12)
    for j in range(3):
        expected = max(abs(busy.q[j][k] - busy.desired[j][k]) for k in range(count))
        assert found.joint_error_max[j] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("controller", [designed(end=0.0), designed(rests=False)])
def test_tracking_is_that_of_the_whole_run_where_no_motion_ends(busy, controller):
    found = judge_tracking(busy, controller)
    error = distance(busy.tip, busy.desired_tip)

    assert found.tip_error_max == pytest.approx(max(error), rel=1e-12)
    mean = trapezoids(busy.t, [x * x for x in error]) / LAST
    assert found.tip_error_rms == pytest.approx(mean**0.5, rel=1e-12)


def test_a_single_sample_is_its_own_mean():
    run = run_of([0.0, 2.0], np.zeros((1, 2)), np.zeros((1, 2)), tip=np.full((3, 2), -0.1))
    found = judge_tracking(run, designed())

    assert found.tip_error_rms == found.tip_error_max == pytest.approx(0.1 * 3**0.5)


def test_two_samples_have_a_mean_of_their_own():
    tip = np.array([[0.0, 3.0, 9.0], [0.0, 0.0, 9.0], [0.0, 0.0, 9.0]])
    run = run_of([0.0, 1.0, 2.0], np.zeros((1, 3)), np.zeros((1, 3)), tip=tip)

    assert judge_tracking(run, designed()).tip_error_rms == pytest.approx((9 / 2) ** 0.5)


def fallen(part):
    """How much of the time between two samples without rates a part of the fall takes.

    The cubic between them is 1 - 3 s^2 + 2 s^3.
    """
    roots = np.roots([2.0, -3.0, 0.0, part])
    return float(next(s.real for s in roots if abs(s.imag) < 1e-9 and 0 <= s.real <= 1))


def resting(after, rest_tip=(0.1, 0.0, 0.0), before=0.5):
    """A run whose tip is off its rest by `after` at even times from END to LAST."""
    t = np.concatenate([[0.0, 0.5], np.linspace(END, LAST, len(after))])
    off = np.concatenate([[before, before], after])
    tip = np.array([off, 0 * off, 0 * off]) + np.array(rest_tip)[:, None]
    return run_of(t, np.zeros((1, len(t))), np.zeros((1, len(t))), tip=tip, rest_tip=rest_tip)


def test_a_residual_is_the_distance_from_rest_once_the_reference_has_ended():
    found = judge_residual(resting([0.03, -0.05, 0.01, 0.01, 0.004]), designed())

    assert found.tip_error_max == pytest.approx(0.05, rel=1e-12)
    # the tenth begins at 2.8 s, on the cubic from 0.01 at 2.5 s to 0.004 at 3 s
    assert found.tip_error_end == pytest.approx(0.01 - 0.006 * (3 * 0.6**2 - 2 * 0.6**3), rel=1e-9)


@pytest.mark.parametrize(
    ("after", "settling"),
    [
        # at END + 0, 0.5, 1, 1.5, 2 s
        ([0.01, 0.01, 0.01, 0.01, 0.01], 0.0),
        ([0.019999999, 0.0, 0.0, 0.0, 0.0], 0.0),
        ([0.04, 0.0, 0.0, 0.0, 0.0], 0.25),
        ([0.06, 0.01, 0.0, 0.0, 0.0], 0.5 * fallen(0.8)),
        ([0.06, 0.01, 0.05, 0.01, 0.0], 1 + 0.5 * fallen(0.75)),
        ([0.01, 0.01, 0.01, 0.03, 0.01], 1.75),
        ([0.01, 0.01, 0.01, 0.01, 0.03], None),
        ([0.03, 0.03, 0.03, 0.03, 0.0200001], None),
    ],
)
def test_a_tip_has_settled_when_it_stays_within_the_band(after, settling):
    found = judge_residual(resting(after), designed()).settling_time

    assert found == (settling if settling is None else pytest.approx(settling, rel=1e-6, abs=1e-9))


@pytest.mark.parametrize(("peak", "settling"), [(17, 1.7), (18, None), (19, None)])
def test_a_run_that_ends_in_a_trough_of_its_ringing_has_not_settled(peak, settling):
    after = np.full(21, 0.01)  # every 0.1 s; the last tenth of 2 s are the last three samples
    after[peak] = 0.05
    found = judge_residual(resting(after), designed()).settling_time

    assert found == (settling and pytest.approx(settling + 0.1 * fallen(0.75)))


def test_an_error_on_the_band_itself_is_within_it():
    found = judge_residual(resting([0.25, 0.125, 0.125], (0, 0, 0)), designed(band=0.125))

    assert found.settling_time == pytest.approx(1.0)


def test_the_error_at_the_end_is_the_largest_of_the_last_tenth_of_the_time_at_rest():
    after = np.full(21, 0.001)  # every 0.1 s; the last tenth of 2 s are the last three samples
    after[[0, 17, 18, 19, 20]] = [0.09, 0.05, 0.004, 0.007, 0.002]

    assert judge_residual(resting(after), designed()).tip_error_end == pytest.approx(0.007)
    after[18] = 0.008
    assert judge_residual(resting(after), designed()).tip_error_end == pytest.approx(0.008)


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (designed(), None),
        (designed(end=1.0, last=1.0), ("1 s", "1 s")),
        (designed(end=2.5, last=1.25), ("1.25 s", "2.5 s")),
        (designed(end=1.0, last=1.0 + 1e-12), None),
        (designed(end=0.0, last=0.1), None),
    ],
)
def test_there_is_a_rest_to_judge_where_the_run_goes_on_after_the_reference(controller, words):
    said = find_no_rest(controller)

    assert (said is None) == (words is None)
    if words:
        run, reference = words  # in this order
        assert run in said
        assert reference in said[said.index(run) + len(run) :]


def test_a_reference_that_never_rests_leaves_none():
    assert "never comes to rest" in find_no_rest(designed(rests=False))
