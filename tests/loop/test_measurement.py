"""What the controller sees of a truth plant: ideal strain gauges and a least-squares fit."""

import casadi as ca
import numpy as np
import pytest

from flexctl.control.sensors import gauge_positions
from flexctl.errors import InputError
from flexctl.loop.measurement import make_measurement
from flexctl.model.settings import apply_settings


def numbers(function, *arguments):
    return [np.array(result).ravel() for result in function(*map(ca.DM, arguments))]


def curvature(plant, line, q, xi):
    """w'' [1/m] of a line at the fractions xi (k,), from the plant's own coordinates q (n,)."""
    start = plant.m
    for j, body in enumerate(plant.bodies):
        for direction, shapes in body.planes.items():
            count = len(shapes.names)
            if f"{body.link.name}.{direction}" == line:
                sliding = body.link.joint == "prismatic"
                length = q[j] + body.link.dh.d if sliding else body.link.length
                d = q[start : start + count] * length**shapes.power
                return shapes.curvature(np.asarray(xi)).T @ d / length**2
            start += count
    raise AssertionError(line)


def bent(plant, seed, scale=0.01):
    """Random q, v (n,) with the sliding joints inside their beams."""
    rng = np.random.default_rng(seed)
    q = scale * rng.normal(size=plant.n)
    for j, link in enumerate(plant.arm.links):
        q[j] = 0.6 * link.length if link.joint == "prismatic" else 0.4
    return q, rng.normal(size=plant.n)


@pytest.mark.parametrize("basis", [("modes", 2), ("elements", 2)])
def test_equal_plants_are_seen_as_they_are(make, plant_of, basis):
    plant = plant_of(make["sliding"](), *basis)
    measurement = make_measurement(plant, plant_of(make["sliding"](), *basis))
    q, v = bent(plant, 1)
    for found, expected in zip(numbers(measurement.function, q, v), (q, v), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not measurement.gauges
    assert "full state" in measurement.assumption


@pytest.mark.parametrize(
    ("design", "truth"),
    [
        (("modes", 2), ("modes", 4)),
        (("elements", 1), ("elements", 2)),
        (("elements", 2), ("elements", 4)),
    ],
)
def test_a_deflection_in_the_span_of_the_design_is_seen_exactly(make, plant_of, design, truth):
    arm = make["sliding"]()
    seen, real = plant_of(arm, *design), plant_of(arm, *truth)
    measurement = make_measurement(seen, real)
    expected, v = bent(seen, 2)
    # the same deflection and its rate in the truth's coordinates, by interpolation of the shapes
    own, fine = seen.bodies[1].planes["x"], real.bodies[1].planes["x"]
    length = expected[1]
    xi = np.linspace(0.02, 1, 60)
    to_fine = np.linalg.lstsq(fine.value(xi).T, own.value(xi).T, rcond=None)[0]

    def expand(delta):
        return to_fine @ delta

    scaled = expected[2:] * length**own.power
    rate = v[2:] * length**own.power + expected[2:] * own.power * v[1]
    d = expand(scaled) / length**fine.power
    d_rate = (expand(rate) - d * fine.power * v[1]) / length**fine.power
    q = np.concatenate([expected[:2], d])
    found_q, found_v = numbers(measurement.function, q, np.concatenate([v[:2], d_rate]))
    np.testing.assert_allclose(found_q, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found_v, v, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("truth", [("modes", 4), ("elements", 4)])
def test_the_fit_is_the_least_squares_one_of_the_curvatures(make, plant_of, truth):
    arm = make["sliding"]()
    seen, real = plant_of(arm), plant_of(arm, *truth)
    measurement = make_measurement(seen, real)
    q, v = bent(real, 3)
    found, _ = numbers(measurement.function, q, v)
    xi = measurement.gauges["link2.x"]
    truth_curvature = curvature(real, "link2.x", q, xi)
    columns = []
    for unit in np.eye(2):
        columns.append(curvature(seen, "link2.x", np.concatenate([q[:2], unit]), xi))
    best = np.linalg.lstsq(np.array(columns).T, truth_curvature, rcond=None)[0]
    np.testing.assert_allclose(found[2:], best, rtol=1e-8)


@pytest.mark.parametrize("truth", [("modes", 4), ("elements", 3)])
def test_rates_are_derivatives_of_what_is_seen_while_sliding(make, plant_of, truth):
    arm = make["sliding"]()
    measurement = make_measurement(plant_of(arm, "elements", 2), plant_of(arm, *truth))
    q, v = bent(plant_of(arm, *truth), 4)
    h = 1e-6
    ahead, behind = (numbers(measurement.function, q + s * h * v, v)[0] for s in (1, -1))
    _, rate = numbers(measurement.function, q, v)
    np.testing.assert_allclose((ahead - behind) / (2 * h), rate, rtol=1e-6, atol=1e-7)


def test_its_jacobian_is_the_derivative(make, plant_of):
    arm = make["sliding"]()
    real = plant_of(arm, "elements", 3)
    measurement = make_measurement(plant_of(arm), real)
    q, v = bent(real, 5)
    J = np.array(measurement.jacobian(q, v))
    step = np.random.default_rng(5).normal(size=2 * real.n)
    h, n = 1e-6, real.n
    ends = [
        np.concatenate(numbers(measurement.function, q + s * h * step[:n], v + s * h * step[n:]))
        for s in (1, -1)
    ]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), J @ step, rtol=1e-5, atol=1e-6)


def test_gauges_on_a_truth_of_other_length_measure_its_curvature(make, plant_of):
    # curvature is d2w/dx2 = w_xixi / l^2: a design that takes the beam for shorter than it is
    # fits deflections (l_design / l_truth)^2 times as large to the same strains
    arm = make["single"]()
    longer = apply_settings(arm, ["link1.length=1.1"])
    seen, real = plant_of(arm), plant_of(longer, "modes", 4)
    measurement = make_measurement(seen, real)
    q = np.array([0.3, 0.01, 0.0, 0.0, 0.0])
    found, _ = numbers(measurement.function, q, np.zeros(5))
    xi = np.array(measurement.gauges["link1.y"])
    np.testing.assert_allclose(
        curvature(seen, "link1.y", found, xi), curvature(real, "link1.y", q, xi), rtol=1e-6
    )


def test_default_gauges_are_inside_the_line_and_enough(make, plant_of):
    for kind, order in (("modes", 1), ("modes", 6), ("elements", 1), ("elements", 5)):
        shapes = plant_of(make["single"](), kind, order).bodies[0].planes["y"]
        xi = np.array(gauge_positions(shapes))
        assert (xi > 0).all()
        assert (xi < 1).all()
        assert len(set(xi)) == len(xi) >= len(shapes.names)


def test_too_few_gauges_are_refused(make, plant_of):
    arm = make["single"]()
    with pytest.raises(InputError, match=r"strain_gauges.*at least 3"):
        make_measurement(plant_of(arm, "modes", 3), plant_of(arm, "modes", 4), (0.1, 0.5))


def test_gauges_that_cannot_tell_shapes_apart_are_refused(make, plant_of):
    # three gauges in one place read one number
    arm, places = make["single"](), (0.3, 0.3 + 1e-12, 0.3 + 2e-12)
    with pytest.raises(InputError, match=r"strain_gauges.*cannot distinguish"):
        make_measurement(plant_of(arm, "modes", 3), plant_of(arm, "modes", 4), places)


def test_gauges_of_a_design_file_are_used(make):
    design = make["design"]([0.0], [1.0], loop={"strain_gauges": [0.1, 0.4, 0.7]})
    loop = make["close"](make["single"](), design, order=4)
    assert loop.measurement.gauges == {"link1.y": (0.1, 0.4, 0.7)}
    assert any("0.1, 0.4, 0.7" in sentence for sentence in loop.assumptions)


def test_an_arm_of_other_lines_is_refused(make):
    design = make["design"]([0.0], [1.0])
    with pytest.raises(InputError, match="elastic lines"):
        make["close"](make["single"](), design, make["rigid-link"]())
