"""Integrals while a torque is at its limit: clamped, or driven back."""

import numpy as np
import pytest
import scipy.integrate

from flexctl.errors import InputError
from flexctl.loop import close_loop
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate

LIMIT, INERTIA, Kp, Kd, Ki, TRACKING = 2.0, 0.5, 30.0, 6.0, 20.0, 0.15
LAG = 300.0  # rad/s


def close(make, how, sample_time=0.0, filters=(), method="joint-pd", **loop):
    """Rigid link that jumps one radian with bounded torque."""
    more = {"tracking_time": TRACKING} if how == "back-calculation" else {}
    factor = 1 if method == "joint-pd" else INERTIA  # decoupling: gains of accelerations
    gains = {"Gp": [Kp / factor], "Gv": [Kd / factor], "Gi": [Ki / factor]}
    loop = {"duration": 2.0, "sample_time": sample_time, "anti_windup": how} | more | loop
    tables = {"kind": "setpoint", "gains": gains, "loop": loop, "filters": list(filters)}
    return make["close"](
        make["rigid-link"](torque=LIMIT), make["design"]([0.0], [1.0], method, **tables)
    )


def by_hand(times, how, period=0.0, lag=None):
    """Angles (N,) of the same link, integrated by small steps of SciPy."""

    def law(x):
        u = -Kp * (x[0] - 1) - Kd * x[1] - Ki * x[2]
        tau = u if lag is None else x[3]
        acts = np.clip(tau, -LIMIT, LIMIT)
        e = x[0] - 1
        summed = (
            (e if acts == tau else 0.0) if how == "clamping" else e - (acts - tau) / Ki / TRACKING
        )
        return acts, summed, 0.0 if lag is None else lag * (u - x[3])

    def rate(_t, x):
        acts, summed, moved = law(x)
        return [x[1], acts / INERTIA, summed, moved]

    if not period:
        options = {"rtol": 1e-9, "atol": 1e-11, "max_step": 1e-3}
        return scipy.integrate.solve_ivp(
            rate, (0, times[-1]), np.zeros(4), t_eval=times, **options
        ).y[0]
    x, angles = np.zeros(4), [0.0]
    for _ in range(round(times[-1] / period)):
        acts, summed, _ = law(x)
        a = acts / INERTIA
        x = x + period * np.array([x[1] + period * a / 2, a, summed, 0.0])
        angles.append(x[0])
    return np.interp(times, period * np.arange(len(angles)), angles)


TIMES = np.linspace(0, 2, 41)
WAYS = ["clamping", "back-calculation"]


@pytest.mark.slow_but("back-calculation-joint-pd")
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", ["joint-pd", "decoupling"])
@pytest.mark.parametrize("how", WAYS)
def test_a_run_is_that_of_an_integrator_by_hand(make, how, method):
    run = simulate(close(make, how, method=method), times=TIMES, tolerance=Tolerance.of(1e-8))
    assert run.saturated[0] > 0.2
    np.testing.assert_allclose(run.q[0], by_hand(TIMES, how), atol=2e-4)


@pytest.mark.slow_but("clamping-bdf", "back-calculation-bdf")
@pytest.mark.parametrize("integrator", ["explicit", "esdirk", "bdf"])
@pytest.mark.parametrize("how", WAYS)
def test_a_sampled_one_too(make, how, integrator):
    run = simulate(close(make, how, 0.005), times=TIMES, integrator=integrator)
    np.testing.assert_allclose(run.q[0], by_hand(TIMES, how, 0.005), atol=1e-7)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("how", WAYS)
def test_behind_a_filter_the_integral_is_driven_back_by_its_gain_at_rest(make, how):
    lag = [{"kind": "low-pass", "frequency": LAG, "order": 1}]
    run = simulate(close(make, how, filters=lag), times=TIMES, tolerance=Tolerance.of(1e-8))
    np.testing.assert_allclose(run.q[0], by_hand(TIMES, how, lag=LAG), atol=2e-4)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("how", WAYS)
def test_with_an_observer_of_all_states_the_run_is_the_same(make, how):
    # without noise, errors and disturbances the estimate is exact
    loop = {"measures": ["encoder", "tachometer"]}
    run = simulate(
        close(make, how, method="decoupling", **loop), times=TIMES, tolerance=Tolerance.of(1e-8)
    )
    np.testing.assert_allclose(run.q[0], by_hand(TIMES, how), atol=2e-4)


ORDER_TWO = [{"kind": "notch", "frequency": 200.0}, {"kind": "low-pass", "frequency": LAG}]


@pytest.mark.parametrize("one", ORDER_TWO)
def test_readings_that_wait_do_not_change_how_an_integral_is_driven_back(make, one):
    """Behind filters of gain 1 at rest L is -Gi, also at samples without a new reading."""
    gains = {"Gp": [Kp], "Gv": [Kd], "Gi": [Ki]}
    loop = {"sample_time": 2e-3, "anti_windup": "back-calculation", "tracking_time": TRACKING}
    read = [{"kind": "encoder", "sample_time": 6e-3}, {"kind": "difference"}]
    tables = {"kind": "setpoint", "gains": gains, "loop": loop, "filters": [one]}
    design = make["design"]([0.0], [1.0], "joint-pd", instruments=read, **tables)
    closed = make["close"](make["rigid-link"](torque=LIMIT), design)
    controller = closed.controller
    z = np.linspace(3.0, 5.0, controller.n_state)
    desired, seen = (np.ones(1), np.zeros(1), np.zeros(1)), (np.zeros(1), np.zeros(1))
    for sample in range(1, controller.cycle + 1):
        z[controller.cycle_row] = sample
        tau, rate = map(np.ravel, map(np.array, controller.law(0, z, *desired, *seen)))
        acts, moved = closed.law(0, z, *desired, *seen, closed.law_numbers)
        excess = float(acts) - tau[0]
        assert abs(excess) > 0.1
        assert float(moved[0]) == pytest.approx(rate[0] - excess / Ki / TRACKING, rel=1e-9)


@pytest.mark.parametrize("how", WAYS)
def test_a_limit_that_an_observer_does_not_know_stops_no_integral(make, how):
    loop = {"measures": ["encoder", "tachometer"]}
    own = close(make, how, method="decoupling", **loop)
    other = close_loop(own.controller, make["rigid-link"](torque=LIMIT / 2), modes=2)
    z = np.array([0.0, 0.95, 0.0])  # of which the law gives 1.5 N m, between the limits
    still = np.zeros(1)
    given = 0, z, np.ones(1), still, still, still, still
    tau, known = own.law(*given, own.law_numbers)
    acts, rate = other.law(*given, other.law_numbers)

    assert float(tau) == pytest.approx(1.5)
    assert float(acts) == LIMIT / 2
    np.testing.assert_array_equal(rate, known)


def test_the_two_ways_differ():
    clamped, driven = (by_hand(TIMES, how) for how in WAYS)
    assert np.abs(clamped - driven).max() > 0.01


@pytest.mark.usefixtures("no_compiler")
def test_the_tracking_time_is_a_free_number(make):
    begun = close(make, "back-calculation")
    other, expected = (
        begun.at({"loop.tracking_time": 0.5}),
        close(make, "back-calculation", tracking_time=0.5),
    )
    assert other.law_key == begun.law_key
    own, known = (
        simulate(loop, times=TIMES, tolerance=Tolerance.of(1e-8)).q for loop in (other, expected)
    )
    np.testing.assert_allclose(own, known, atol=1e-9)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ({"tracking_time": None}, "loop.tracking_time: expected a value .s., as anti_windup is"),
        ({"tracking_time": 1e-3, "sample_time": 0.01}, "tracking_time: expected at least 0.01 s"),
        ({"anti_windup": "clamping"}, "tracking_time: expected no such key, as anti_windup is"),
        ({"anti_windup": "none"}, "expected one of 'clamping' or 'back-calculation'"),
    ],
)
def test_anti_windup_that_does_not_fit_is_refused(loop, message):
    from flexctl.model.design import Design
    from flexctl.model.refusals import build_file

    table = {
        "summary": "x",
        "source": "own",
        "model": "a",
        "method": "joint-pd",
        "gains": {"Gp": 1.0, "Gv": 1.0},
    }
    table |= {"reference": {"kind": "setpoint", "from": [0.0], "to": [1.0]}}
    loop = {"anti_windup": "back-calculation", "tracking_time": 0.1} | loop
    table["loop"] = {key: value for key, value in loop.items() if value is not None}
    with pytest.raises(InputError, match=message):
        build_file(Design, table, "trial", None)
