"""The sampled Kalman filter: its Riccati equation, its delays, its limit, against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.control.observer import disturbance
from flexctl.control.sampled_observer import torque_spans, torques_waiting
from flexctl.errors import DesignError, InputError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.verdict.stationary_noise import noise_levels

ENCODER = {"kind": "encoder", "noise": 1e-5}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
MODES = BasisChoice(kind="modes", order=2)


def observed(make, arm, instruments, T=2e-3, loop=None, **tables):
    m = len(arm.links)
    tables |= {"instruments": instruments, "loop": {"sample_time": T, **(loop or {})}}
    design = make["design"]([0.0] * m, [0.5] * m, observer=tables.pop("observer", {}), **tables)
    return design_controller(arm, design, MODES)


ARMS = {
    "single": lambda make: make["single"](),
    "flexible joint": lambda make: make["single"](flexible_joint=ROTOR),
    "two-link": lambda make: make["two-link"]((0.0, -9.81, 0.0)),
}


def steady(controller, T):
    """Phi, Q of the linear design plant at the final pose, by SciPy and many small steps."""
    plant, choice = controller.plant, controller.design.observer
    linear = linearise(plant, plant.straight(controller.reference.final))
    N = disturbance(plant, linear, choice.noise)
    Q, Phi = np.zeros((2 * plant.n, 2 * plant.n)), scipy.linalg.expm(linear.A_state * T)
    x, w = np.polynomial.legendre.leggauss(40)
    for s, weight in zip(T / 2 * (x + 1), T / 2 * w, strict=True):
        G = scipy.linalg.expm(linear.A_state * s) @ N
        Q += weight * G @ G.T
    return Phi, Q


@pytest.mark.parametrize("arm", ARMS)
def test_the_filter_solves_its_riccati_equation(make, arm):
    # the equation again in physical units, with Q by another way
    controller = observed(make, ARMS[arm](make), [ENCODER, GAUGE])
    observer = controller.observer
    assert observer.residual < 1e-12  # round-off of the solver, states scaled
    Phi, Q = steady(controller, 2e-3)
    P, C, R = observer.covariance, observer.readings.C, observer.readings.variance
    L = P @ C.T @ np.linalg.inv(C @ P @ C.T + R)
    size = np.sqrt(np.outer(np.diag(P), np.diag(P)))
    rest = (Phi @ (P - L @ C @ P) @ Phi.T + Q - P) / size
    assert np.abs(rest).max() < 1e-9
    units = np.sqrt(np.diag(P))[:, None]
    np.testing.assert_allclose(observer.gain / units, L / units, rtol=1e-8, atol=1e-8)
    z = np.linalg.eigvals(Phi @ (np.eye(len(P)) - L @ C))
    np.testing.assert_allclose(
        np.sort_complex(observer.multipliers), np.sort_complex(z), rtol=1e-7, atol=1e-9
    )


def test_a_pencil_that_scipy_cannot_order_is_solved_by_doubling(make, monkeypatch):
    def fails(*_, **__):
        raise np.linalg.LinAlgError

    instruments = [{"kind": "encoder", "noise": 1e-5}, {"kind": "gauge", "xi": 0.2, "noise": 1e-3}]
    expected = observed(make, make["single"](), instruments).observer
    monkeypatch.setattr("scipy.linalg.solve_discrete_are", fails)
    found = observed(make, make["single"](), instruments).observer

    np.testing.assert_allclose(found.gain, expected.gain, rtol=1e-6)
    assert found.residual < 1e-9


def test_the_variance_of_a_sample_is_of_noise_and_rounding(make):
    encoder = {"kind": "encoder", "noise": 2e-5, "resolution": 1e-3, "sample_time": 5e-4}
    observer = observed(make, make["single"](), [encoder, GAUGE]).observer
    expected = [(2e-5) ** 2 / 5e-4 + (1e-3) ** 2 / 12, 1e-6 / 2e-3]
    np.testing.assert_allclose(np.diag(observer.readings.variance), expected, rtol=1e-12)


def test_late_readings_that_are_all_late_are_the_filter_and_a_prediction(make):
    # y_k = C x_(k-d): the best estimate of x_k is Phi^d times the one of x_(k-d)
    d, T = 3, 2e-3
    instruments = [ENCODER | {"delay": d * T}, GAUGE | {"delay": d * T}]
    late = observed(make, make["single"](), instruments)
    prompt = observed(make, make["single"](), [ENCODER, GAUGE])
    Phi, Q = steady(prompt, T)
    n = 2 * prompt.plant.n
    own = late.observer.covariance[:n, :n]
    # the prediction after the correction by y_(k-d) is one step ahead of it
    expected = prompt.observer.covariance
    for _ in range(d):
        expected = Phi @ expected @ Phi.T + Q
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(own / size, expected / size, atol=1e-8)


def test_the_sampled_filter_tends_to_the_continuous_one_with_order_one(make):
    # L/T tends to the gain, log(z)/T to the poles; T from 0.5 to 0.06 ms, poles up to 4e2 rad/s
    noise = {"encoder": [1e-4], "strain_gauge": 1e-3}
    loop = {"measures": ["encoder", "strain_gauge"]}
    tables = {"observer": {"noise": noise}}
    arm = make["single"]()
    design = make["design"]([0.0], [0.5], loop=loop, **tables)
    continuous = design_controller(arm, design, MODES).observer
    periods, errors = np.array([4e-4, 2e-4, 1e-4, 5e-5]), []
    for T in periods:
        sampled = make["design"]([0.0], [0.5], loop={**loop, "sample_time": float(T)}, **tables)
        observer = design_controller(arm, sampled, MODES).observer
        units = np.abs(continuous.gain).max(axis=1, keepdims=True)
        errors.append(np.abs((observer.gain / T - continuous.gain) / units).max())
    order = np.polyfit(np.log(periods), np.log(errors), 1)[0]
    assert order == pytest.approx(1, abs=0.1)
    assert errors[-1] < 0.05
    slowest = [np.sort(o.poles.real)[-1] for o in (continuous, observer)]
    assert slowest[1] == pytest.approx(slowest[0], rel=1e-2)


@pytest.mark.parametrize(
    ("delay", "spans", "waiting"),
    [
        (0.0, (1.0,), 0),
        (0.25, (0.25, 0.75), 1),
        (1.0, (1.0,), 1),
        (2.75, (0.75, 0.25), 3),
        (3 * (1 - 1e-12), (1.0,), 3),
    ],
)
def test_spans_of_a_sample_between_torques(delay, spans, waiting):
    np.testing.assert_allclose(torque_spans(1.0, delay), spans, rtol=1e-12)
    assert torques_waiting(1.0, delay) == waiting


def test_an_unobservable_motion_is_named(make):
    with pytest.raises(DesignError, match=r"unobservable with the instruments; add one that shows"):
        observed(make, make["single"](), [GAUGE])


def test_a_reading_without_noise_cannot_be_weighed(make):
    with pytest.raises(InputError, match=r"noise or a resolution above 0 of the encoder of joint1"):
        observed(make, make["single"](), [{"kind": "encoder"}, GAUGE])


def test_an_observer_needs_no_differences(make):
    with pytest.raises(InputError, match="expected no difference, as there is an observer"):
        observed(make, make["single"](), [ENCODER, {"kind": "difference"}])


def test_a_given_gain_takes_the_place_of_the_filters(make):
    arm, instruments = make["single"](), [ENCODER | {"delay": 2e-3}, GAUGE]
    own = observed(make, arm, instruments)
    given = observed(make, arm, instruments, observer={"gain": own.observer.gain.tolist()})
    np.testing.assert_allclose(
        np.sort_complex(given.observer.multipliers),
        np.sort_complex(own.observer.multipliers),
        atol=1e-9,
    )
    assert given.observer.covariance is None
    assert "observer of given gain" in given.observer.assumption
    assert "runs have no noise" not in " ".join(given.assumptions)  # of instruments
    with pytest.raises(InputError, match=r"observer\.gain"):
        observed(make, arm, [ENCODER, GAUGE], observer={"gain": own.observer.gain.tolist()})


@pytest.mark.parametrize("loop", [{}, {"sample_time": 0.0}], ids=["sampled", "continuous"])
def test_a_given_gain_needs_no_noise_of_readings(make, loop):
    arm, ideal = make["single"](), [{"kind": "encoder"}, {"kind": "gauge", "xi": 0.1}]
    own = observed(make, arm, [ENCODER, GAUGE], loop=loop)
    gain = {"gain": own.observer.gain.tolist()}
    noisy, given = (
        observed(make, arm, read, loop=loop, observer=gain) for read in ([ENCODER, GAUGE], ideal)
    )

    np.testing.assert_array_equal(given.observer.gain, own.observer.gain)
    np.testing.assert_allclose(
        np.sort_complex(given.observer.poles), np.sort_complex(noisy.observer.poles), rtol=1e-6
    )
    at_rest = close_around(given, given.plant)
    assert noise_levels(at_rest, linearise_loop(at_rest, [0.5], 0.0)) is None
    at_rest = close_around(noisy, noisy.plant)
    assert noise_levels(at_rest, linearise_loop(at_rest, [0.5], 0.0)).tip_rms > 0


@pytest.mark.parametrize("delay", [0.0, 3e-3])
def test_a_prediction_in_many_steps_is_called_and_not_written_out(make, delay):
    # written out, its slopes have millions of operations
    controller = observed(
        make, make["two-link"]((0.0, -9.81, 0.0)), [ENCODER, GAUGE], T=0.02, loop={"delay": delay}
    )
    counts = [one.count for one in controller.observer.predictions]
    law, slopes = controller.function, controller.law_jacobian
    given = [np.full(law.numel_in(k), 0.1) for k in range(law.n_in() - 1)] + [controller.numbers]
    written = law.expand()

    assert sum(counts) >= 4
    assert written.n_instructions() > 100 * law.n_instructions()
    for whole, part in zip(law(*given), written(*given), strict=True):
        np.testing.assert_allclose(np.array(whole), np.array(part), rtol=1e-12)
    found = [np.array(part) for part in slopes(*given)]
    step, n = 1e-6, 2 * len(controller.measured)
    column = np.zeros(n)
    column[0] = step
    near = [
        np.vstack(
            [
                np.array(part)
                for part in written(*given[:5], given[5] + sign * column[: n // 2], *given[6:])
            ]
        )
        for sign in (1, -1)
    ]
    slope = (near[0] - near[1]) / (2 * step)
    own = np.vstack([found[0][:, :1], found[2][:, :1]])
    np.testing.assert_allclose(own, slope, atol=1e-6 * np.abs(slope).max())


def test_records_check_themselves(make):
    readings = observed(make, make["single"](), [ENCODER, GAUGE]).observer.readings
    with pytest.raises(InputError, match="C"):
        replace(readings, C=readings.C[:1])
    with pytest.raises(InputError, match="variance"):
        replace(readings, variance=-readings.variance)


def test_by_tustins_rule_an_observer_s_law_sums_what_is_read(make):
    laws = []
    for rule in ("exact", "tustin"):
        gains, loop = {"Gp": [12.0], "Gv": [2.0], "Gi": [4.0]}, {"discretisation": rule}
        tables = {"method": "joint-pd", "gains": gains, "loop": loop}
        laws.append(observed(make, make["single"](), [ENCODER, GAUGE], **tables))
    exact, tustin = laws
    rng, q_d, still = np.random.default_rng(4), np.array([0.3]), np.zeros(1)
    z, y = rng.normal(size=exact.n_state), rng.normal(size=2)
    z[1:3] = 0.0  # noise of the readings
    known = 0.0, z, q_d, still, still, y, np.zeros(2)
    tau, rate = map(np.array, exact.law(*known))
    found, moved = map(np.array, tustin.law(*known))

    # half a sample of the error that the encoder reads, whatever the estimate
    assert (found - tau).item() == pytest.approx(-4.0 * 1e-3 * (y[0] - q_d[0]), rel=1e-9)
    n = 2 * exact.plant.n  # of the estimate, which this torque moves
    np.testing.assert_allclose(moved[:-n], rate[:-n], rtol=1e-12)
