"""Runs of loops with filters, beside the same loops written down by hand."""

import numpy as np
import pytest
import scipy.integrate
import scipy.signal

from flexctl.plant.library_cache import find_compiler
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate

LOW = {"kind": "low-pass", "frequency": 150.0, "damping_ratio": 0.6}
NOTCH = {"kind": "notch", "frequency": 40.0, "zero_damping": 0.1, "pole_damping": 0.4}
LEAD = {"kind": "lead", "frequency": 25.0, "ratio": 4.0}
SERIES = [LOW, NOTCH | {"joint": "joint1"}, LEAD]
TORQUE = 2.0


def rigid_link(make, filters, sample_time=0.0, **more):
    """Rigid link of 0.5 kg m^2 that jumps one radian under PD, filters and a torque limit."""
    design = make["design"](
        [0.0], [1.0], "joint-pd", kind="setpoint", gains={"Gp": [30.0], "Gv": [6.0]},
        loop={"duration": 1.0, "sample_time": sample_time} | more, filters=filters,
    )  # fmt: skip
    return make["close"](make["rigid-link"](torque=TORQUE), design)


def textbook(one):
    """Numerator and denominator of a filter."""
    w = one["frequency"]
    if one["kind"] == "low-pass":
        return [1], [1 / w**2, 2 * one["damping_ratio"] / w, 1]
    if one["kind"] == "lead":
        root = one["ratio"] ** 0.5
        return [root / w, 1], [1 / root / w, 1]
    zero, pole = one["zero_damping"], one["pole_damping"]
    return [1 / w**2, 2 * zero / w, 1], [1 / w**2, 2 * pole / w, 1]


def by_hand(filters, times, period=0.0, how="zoh"):
    """Angles (N,) of the same link with filters realised by SciPy, step by step if sampled."""
    parts = [scipy.signal.tf2ss(*textbook(one)) for one in filters]
    if period:
        parts = [scipy.signal.cont2discrete(part, period, how)[:4] for part in parts]
    sizes = np.cumsum([0, *(len(part[0]) for part in parts)])

    def law(x):
        u, rates = -30 * (x[0] - 1) - 6 * x[1], []
        for (A, B, C, D), a, b in zip(parts, sizes[:-1], sizes[1:], strict=True):
            own = x[2 + a : 2 + b]
            rates.append(A @ own + B[:, 0] * u)
            u = float(C[0] @ own + D[0, 0] * u)
        return np.clip(u, -TORQUE, TORQUE), np.concatenate(rates)

    def rate(_t, x):
        tau, rates = law(x)
        return [x[1], tau / 0.5, *rates]

    x = np.zeros(2 + sizes[-1])
    if not period:
        options = {"rtol": 1e-9, "atol": 1e-11, "max_step": 2e-3}
        return scipy.integrate.solve_ivp(rate, (0, times[-1]), x, t_eval=times, **options).y[0]
    angles = [x[0]]
    for _ in range(round(times[-1] / period)):
        tau, moved = law(x)
        held = [x[0] + period * x[1] + period**2 / 2 * tau / 0.5, x[1] + period * tau / 0.5]
        x = np.concatenate([held, moved])
        angles.append(x[0])
    return np.interp(times, period * np.arange(len(angles)), angles)


@pytest.mark.slow_but("adams-", "bdf-none")
@pytest.mark.parametrize("compiler", ["", "none"])
@pytest.mark.parametrize("integrator", ["explicit", "rk4", "bdf", "adams"])
def test_runs_are_those_of_filters_realised_by_scipy(make, monkeypatch, integrator, compiler):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    if integrator == "rk4" and not find_compiler():
        pytest.skip("rk4 is compiled")
    times = np.linspace(0, 1, 21)
    options = {"step": 2e-4} if integrator == "rk4" else {"tolerance": Tolerance.of(1e-9)}
    run = simulate(rigid_link(make, SERIES), times=times, integrator=integrator, **options)
    assert run.saturated[0] > 0.05
    np.testing.assert_allclose(run.q[0], by_hand(SERIES, times), atol=2e-5)


@pytest.mark.parametrize("integrator", ["auto", "esdirk", "midpoint"])
@pytest.mark.parametrize(("how", "name"), [("zoh", "exact"), ("bilinear", "tustin")])
def test_sampled_runs_are_those_of_filters_discretised_by_scipy(make, how, name, integrator):
    period, times = 0.005, np.linspace(0, 1, 21)
    loop = rigid_link(make, SERIES, period, discretisation=name)
    options = {"step": 1e-3} if integrator == "midpoint" else {}
    run = simulate(loop, times=times, integrator=integrator, **options)
    np.testing.assert_allclose(run.q[0], by_hand(SERIES, times, period, how), atol=1e-7)
