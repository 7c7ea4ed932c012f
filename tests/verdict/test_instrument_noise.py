"""Noise levels of loops with instruments, against the map with the noise in its states."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.verdict.stationary_noise import noise_levels

T = 0.01


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def closed(make, instruments, **tables):
    tables |= {"instruments": instruments, "loop": {"sample_time": T, "delay": 0.004}}
    gains = {"Gp": [5.0], "Gv": [1.5]}
    design = make["design"]([0.0], [0.1], "joint-pd", gains=gains, **tables)
    controller = design_controller(make["single"](), design, BasisChoice(kind="modes", order=2))
    return close_around(controller, controller.plant)


@pytest.mark.parametrize("way", ["difference", "observer"])
def test_levels_are_those_of_the_noise_in_the_states(make, way):
    encoder = {"kind": "encoder", "noise": 1e-4, "delay": T}
    own = [encoder, {"kind": "difference", "time_constant": 0.005}]
    own = [encoder, {"kind": "gauge", "xi": 0.1, "noise": 1e-3}] if way == "observer" else own
    loop = closed(make, own, **({"observer": {}} if way == "observer" else {}))
    linear = linearise(loop)
    levels = noise_levels(loop, linear)
    A, n = sampled_loop(linear, T, linear.delay), 2 * loop.truth.n
    rows, fitted = loop.controller.noise_rows, loop.controller.fitted
    sizes = [fitted.readings[k].deviation for k in fitted.noisy]
    G = A[:, n + rows.start : n + rows.stop] * sizes
    P = scipy.linalg.solve_discrete_lyapunov(A, G @ G.T)
    J = loop.truth.tip_jacobian(linear.plant.q0) @ np.eye(loop.truth.n, 2 * loop.truth.n)
    own = P[:n, :n]
    expected = np.sqrt(np.trace(J @ own @ J.T))
    assert levels.tip_rms == pytest.approx(expected, rel=1e-6)


def test_rounding_is_noise_of_its_variance(make):
    step = 1e-3
    rounded, noisy = (
        closed(make, [{"kind": "encoder"} | own, {"kind": "difference", "time_constant": 0.005}])
        for own in ({"resolution": step}, {"noise": step / np.sqrt(12) * np.sqrt(T)})
    )
    levels = [noise_levels(loop, linearise(loop)) for loop in (rounded, noisy)]
    assert levels[0].tip_rms == pytest.approx(levels[1].tip_rms, rel=1e-9)
    np.testing.assert_allclose(levels[0].torque_rms, levels[1].torque_rms, rtol=1e-9)


def test_ideal_readings_of_an_instrument_give_no_noise(make):
    loop = closed(make, [{"kind": "encoder"}, {"kind": "difference"}])
    assert noise_levels(loop, linearise(loop)) is None


def test_ideal_instruments_that_are_sampled_have_the_noise_of_real_ones(make):
    # an encoder of loop.measures, and the same one of [[instruments]]
    noise = {"encoder": [1e-4], "torque": [0.1], "tip": 0.1}
    gains, loop = {"Gp": [20.0], "Gv": [4.0]}, {"sample_time": T, "delay": 0.004}
    tables = {"gains": gains, "basis": {"kind": "modes", "order": 1}}
    ideal = make["design"](
        [0.0], [0.1], "decoupling", observer={"noise": noise},
        loop=loop | {"measures": ["encoder"]}, **tables,
    )  # fmt: skip
    noise = {"torque": [0.1], "tip": 0.1}
    real = make["design"](
        [0.0], [0.1], "decoupling", observer={"noise": noise}, loop=loop,
        instruments=[{"kind": "encoder", "noise": 1e-4}], **tables,
    )  # fmt: skip
    levels = []
    for design in (ideal, real):
        controller = design_controller(make["single"](), design)
        one = close_around(controller, controller.plant)
        levels.append(noise_levels(one, linearise(one)))
    assert levels[0].tip_rms == pytest.approx(levels[1].tip_rms, rel=1e-6)
    np.testing.assert_allclose(levels[0].torque_rms, levels[1].torque_rms, rtol=1e-6)
