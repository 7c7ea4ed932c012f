"""The differential form of the frequency equation, and what the misprint of (47) does to it."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from examples.papers.theodore_ghosal.mode_rates import sliding, varying
from examples.papers.theodore_ghosal.root_rate import equation_by_load, root_rate
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
from tests.beam.sliding_witness import equation

# models/theodore-ghosal-rrp.toml, link 3 and payload; designs/rrp-stiff.toml, reference
LINE = SlidingLine(mass_per_length=0.331, mass=0.0828)
START, END, DURATION = 0.3, 1.0, 0.5
TIMES = np.linspace(0, DURATION, 101)


def length(t):
    s = t / DURATION
    return START + (END - START) * (s - np.sin(2 * np.pi * s) / (2 * np.pi))


def speed(t):
    return (END - START) / DURATION * (1 - np.cos(2 * np.pi * t / DURATION))


def integrated(rate, beta):
    """Roots (times, n) by integration of dbeta/dt."""
    run = solve_ivp(
        rate, (0, DURATION), beta, method="DOP853", rtol=1e-13, atol=1e-15, t_eval=TIMES
    )
    assert run.success
    return run.y.T


def sliding_rate(t, beta, *, power):
    """(45) to (47) of [TG95] over cosh; `power` is that of m_p in (47): 1, or 2 as printed."""
    m, unit = LINE.mass, LINE.mass_per_length * length(t)
    s, c, tanh = np.sin(beta), np.cos(beta), np.tanh(beta)
    f_1 = m / (unit * length(t)) * beta * (tanh * c - s)
    f_2 = (1 + m**power / unit) * (tanh * c - s) - 2 * m / unit * beta * tanh * s
    return f_1 / f_2 * speed(t)


@pytest.fixture(scope="module")
def exact():
    return roots_along(4, LINE.loads(length(TIMES)))


def test_integrated_roots_of_the_sliding_motion_agree_with_root_finding(exact):
    def rate(t, beta):
        return root_rate(beta[None], sliding(LINE.loads([length(t)])))[0] * speed(t) / length(t)

    np.testing.assert_allclose(integrated(rate, exact[0]), exact, rtol=0, atol=1e-12)


def test_the_corrected_sliding_form_agrees_with_root_finding(exact):
    found = integrated(lambda t, beta: sliding_rate(t, beta, power=1), exact[0])
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)


def test_the_misprinted_sliding_form_drifts_away(exact):
    # m_p^2 / (rho A l) is no number: the first frequency comes out 7.3 percent too high
    drift = integrated(lambda t, beta: sliding_rate(t, beta, power=2), exact[0])[-1] - exact[-1]
    np.testing.assert_allclose(drift, [5.664e-2, 8.068e-3, 2.869e-3, 1.255e-3], rtol=5e-4)


def test_integrated_roots_follow_the_loads_of_a_turning_arm():
    # link 1 of a planar 3R arm: M rests, J and D turn with joint 3
    def path(angle):
        inertia, offset = 0.5 + 0.3 * np.cos(angle), 0.35 + 0.2 * np.cos(angle)
        rate = (0.0, -0.3 * np.sin(angle), -0.2 * np.sin(angle))
        tip = TipLoad(mass=1.2, inertia=inertia, offset=offset)
        return varying(LoadPath.through(tip), rate=rate)

    angles = np.linspace(0, 3.0, 31)
    exact = np.array([roots_along(3, path(a))[0] for a in angles])
    run = solve_ivp(
        lambda a, beta: root_rate(beta[None], path(a))[0],
        (0, 3.0),
        exact[0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-15,
        t_eval=angles,
    )
    np.testing.assert_allclose(run.y.T, exact, rtol=0, atol=2e-12)


LOAD = TipLoad(mass=0.8, inertia=0.3, offset=-0.4)


@pytest.mark.parametrize("beta", [0.9, 1.7, 4.6, 11.0, 25.0])
@pytest.mark.parametrize("by", range(3), ids="MJD")
def test_derivatives_by_the_load_are_those_of_the_printed_equation(beta, by):
    at = (beta, LOAD.mass, LOAD.inertia, LOAD.offset)
    order = tuple(int(i == 1 + by) for i in range(4))
    with mpmath.workdps(50):
        exact = mpmath.diff(equation, at, order) / mpmath.cosh(beta)
    value = equation_by_load(np.array([[beta]]), LoadPath.through(LOAD).parts)[by][0, 0]
    # round-off of the largest term, of order beta^4
    assert value == pytest.approx(float(exact), rel=1e-12, abs=1e-14 * beta**4)


@pytest.mark.parametrize(("low", "high"), [("value", "rate"), ("rate", "second")])
def test_rates_of_the_loads_agree_with_differences(low, high):
    h = 1e-4
    line = SlidingLine(mass_per_length=0.5, mass=2.0, inertia=0.3, first_moment=-0.4)
    slope = np.diff(getattr(sliding(line.loads(0.7 * np.exp([-h, h]))), low), axis=0)[0] / (2 * h)
    # the next term of the difference is h^2 / 6 times 27 at most
    np.testing.assert_allclose(getattr(sliding(line.loads([0.7])), high)[0], slope, rtol=1e-7)


def test_high_roots_do_not_overflow():
    path = sliding(LINE.loads([0.3]))
    rate = root_rate(roots_along(200, path), path)
    assert np.isfinite(rate).all()
    # tan(beta) = 1 + 1 / (M beta) there: beta is k pi + pi/4 + 1 / (2 M beta), and M goes as 1 / l
    np.testing.assert_allclose(
        rate[0, 100:] * (2 * path.mass * roots_along(200, path))[0, 100:], 1.0, rtol=0.01
    )
