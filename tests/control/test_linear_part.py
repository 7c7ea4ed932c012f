"""Linear parts of a law: at rest, in series, and discretised."""

from itertools import pairwise

import control
import numpy as np
import pytest

from flexctl.control.filters import filter_part
from flexctl.control.linear_part import LinearPart, in_series, timed
from flexctl.errors import InputError
from flexctl.model import Filter, Loop

W = 70.0  # rad/s
T = 2e-3
FILTERS = {
    "first": {"kind": "low-pass", "order": 1},
    "second": {"kind": "low-pass", "damping_ratio": 0.4},
    "lead": {"kind": "lead", "phase_lead": 0.7},
    "ratio": {"kind": "lead", "ratio": 9.0},
    "notch": {"kind": "notch"},
    "deep": {"kind": "notch", "zero_damping": 0.0, "pole_damping": 0.2},
    **{f"roll-off {n}": {"kind": "roll-off", "order": n} for n in (1, 2, 3, 8)},
}
FREQUENCIES = np.geomspace(1, 1500, 40)


def filter_of(name):
    return Filter.model_validate({"frequency": W} | FILTERS[name])


def transfer_function(name, s):
    """The filter as it is written in textbooks, at s/W."""
    one, S = FILTERS[name], s / W
    if one["kind"] == "lead":
        r = one.get("ratio") or (1 + np.sin(one["phase_lead"])) / (1 - np.sin(one["phase_lead"]))
        return (1 + S * np.sqrt(r)) / (1 + S / np.sqrt(r))
    if one["kind"] == "notch":
        zero, pole = one.get("zero_damping", 0.05), one.get("pole_damping", 0.5)
        return (S**2 + 2 * zero * S + 1) / (S**2 + 2 * pole * S + 1)
    if one["kind"] == "roll-off":
        n = one["order"]
        poles = np.exp(1j * np.pi * (2 * np.arange(n) + n + 1) / (2 * n))
        return np.prod([-p / (S - p) for p in poles], axis=0)
    if one.get("order") == 1:
        return 1 / (1 + S)
    return 1 / (1 + 2 * one["damping_ratio"] * S + S**2)


def response(part, w):
    """C (jw - A)^-1 B + D (k,)."""
    eye = np.eye(len(part.A))
    return np.array([part.C @ np.linalg.solve(1j * x * eye - part.A, part.B) + part.D for x in w])


def sampled_response(part, loop, w):
    """Response at z = e^{jwT} of x+ = x + T N (x - x_0 u), y = g u + R (x - x_0 u)."""
    N, R = timed(part, loop)
    A, B = np.eye(len(N)) + T * N, -T * N @ part.rest
    D = part.gain - R @ part.rest
    eye = np.eye(len(N))
    z = np.exp(1j * np.asarray(w) * T)
    return np.array([R @ np.linalg.solve(x * eye - A, B) + D for x in z])


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_those_of_textbooks(name):
    part = filter_part(filter_of(name)).faster(W)
    expected = transfer_function(name, 1j * FREQUENCIES)
    np.testing.assert_allclose(response(part, FREQUENCIES), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", FILTERS)
def test_filters_have_the_gain_one_at_rest(name):
    assert filter_part(filter_of(name)).gain == pytest.approx(1, abs=1e-14)


def test_the_largest_lead_is_at_the_frequency():
    w = W * np.geomspace(0.5, 2, 401)
    lead = np.angle(response(filter_part(filter_of("lead")).faster(W), w))
    assert lead.argmax() == 200
    assert lead.max() == pytest.approx(0.7, rel=1e-9)


def test_a_roll_off_is_flat_and_falls_by_its_order():
    part = filter_part(filter_of("roll-off 3")).faster(W)
    gain = np.abs(response(part, np.array([0.01 * W, W, 100 * W])))
    np.testing.assert_allclose(gain, [1, 0.5**0.5, 1e-6], rtol=1e-5)


@pytest.mark.parametrize("name", FILTERS)
def test_held_inputs_are_discretised_as_by_python_control(name):
    part = filter_part(filter_of(name)).faster(W)
    system = control.ss(part.A, part.B[:, None], part.C[None], part.D)
    expected = control.sample_system(system, T, "zoh")
    w = np.geomspace(1, 0.99 * np.pi / T, 20)
    own = sampled_response(part, Loop(sample_time=T), w)
    np.testing.assert_allclose(own, expected(np.exp(1j * w * T)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("prewarp", [None, W, 1200.0])
@pytest.mark.parametrize("name", FILTERS)
def test_tustin_is_that_of_python_control(name, prewarp):
    part = filter_part(filter_of(name)).faster(W)
    system = control.ss(part.A, part.B[:, None], part.C[None], part.D)
    expected = control.sample_system(system, T, "bilinear", prewarp_frequency=prewarp)
    w = np.geomspace(1, 0.99 * np.pi / T, 20)
    loop = Loop(sample_time=T, discretisation="tustin", prewarp=prewarp)
    own = sampled_response(part, loop, w)
    np.testing.assert_allclose(own, expected(np.exp(1j * w * T)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FILTERS)
def test_tustin_is_exact_where_it_is_prewarped(name):
    part, w = filter_part(filter_of(name)).faster(W), np.array([1.3 * W])
    loop = Loop(sample_time=T, discretisation="tustin", prewarp=float(w[0]))
    own = sampled_response(part, loop, w)
    np.testing.assert_allclose(own, response(part, w), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("how", "order"), [("exact", 1), ("tustin", 2)])
def test_sampled_parts_tend_to_the_continuous_one(how, order):
    # wT from 0.03 to 0.004: past the coarse end, and errors from 1e-2 to 1e-6, above round-off
    part, w = filter_part(filter_of("second")).faster(W), 90.0
    exact, errors = response(part, [w])[0], []
    periods = 2.0 ** -np.arange(11, 15)
    for period in periods:
        N, R = timed(part, Loop(sample_time=float(period), discretisation=how))
        A, B = np.eye(2) + period * N, -period * N @ part.rest
        z = np.exp(1j * w * period)
        own = R @ np.linalg.solve(z * np.eye(2) - A, B) + part.gain - R @ part.rest
        errors.append(abs(own - exact))
    orders = [np.log2(one / other) for one, other in pairwise(errors)]
    np.testing.assert_allclose(orders, order, atol=0.05)


@pytest.mark.parametrize("period", [1e-9, 1e-3, 10.0])
def test_a_part_at_rest_stays_there_over_any_period(period):
    # short: e^{AT} - I is no difference of equal numbers; long: the state arrives at rest
    part = filter_part(filter_of("second")).faster(W)
    N, _ = timed(part, Loop(sample_time=period))
    expected = part.A if period < 1e-6 else N
    np.testing.assert_allclose(N, expected, rtol=1e-6, atol=1e-3)
    if period > 1:
        np.testing.assert_allclose(period * N, -np.eye(2), atol=1e-12)


def test_two_parts_in_series_are_their_product():
    one, other = (filter_part(filter_of(name)).faster(W) for name in ("lead", "notch"))
    own = response(in_series(one, other), FREQUENCIES)
    expected = response(one, FREQUENCIES) * response(other, FREQUENCIES)
    np.testing.assert_allclose(own, expected, rtol=1e-11)


def test_a_part_of_other_sizes_is_refused():
    with pytest.raises(InputError, match="B: expected"):
        LinearPart(A=-np.eye(2), B=np.ones(3), C=np.ones(2))
