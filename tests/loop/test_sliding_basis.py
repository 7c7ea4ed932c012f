"""Loops whose design or truth has a sliding link's exact modes at every length."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.eigenvalues import name_modes
from flexctl.loop.measurement import make_measurement
from flexctl.loop.setup import default_truth
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.simulation import simulate
from tests.arms import plant_of

RRP = load_model("theodore-ghosal-rrp")
EXACT = BasisChoice(order=2, sliding="exact")
ONE = BasisChoice(order=1, sliding="exact")


@cache
def rrp_plant(sliding, order=2, settings=(), kind="modes"):
    return plant_of(apply_settings(RRP, settings), kind, order, sliding)


@cache
def loop_of(design="rrp-gentle", basis=ONE, truth=ONE):
    controller = design_controller(RRP, load_design(design), basis, interpreted=True)
    return close_loop(controller, RRP, truth)


def numbers(function, *arguments):
    return [np.array(result).ravel() for result in function(*map(ca.DM, arguments))]


def bent(plant, seed, length=0.6):
    rng = np.random.default_rng(seed)
    q, v = 0.01 * rng.normal(size=plant.n), rng.normal(size=plant.n)
    q[2] = length
    return q, v


def rows(plant, line="link3.x"):
    return [i for i, name in enumerate(plant.coordinates) if name.startswith(line)]


def curvature(plant, q, xi):
    """d2w/dx2 [1/m] of link 3 at the fractions xi (k,)."""
    shapes = plant.bodies[2].shapes_at("x", q[2])
    return shapes.curvature(np.asarray(xi)).T @ (q[rows(plant)] * q[2] ** shapes.power) / q[2] ** 2


def test_equal_bases_give_the_full_state():
    again = assemble_plant(RRP, EXACT, interpreted=True)
    assert not make_measurement(rrp_plant("exact"), again).gauges


@pytest.mark.parametrize("truth", ["fixed", "exact"])
def test_equal_names_of_other_modes_are_no_full_state(truth):
    # a truth with another payload has other modes by the same names
    settings = ("payload.mass=+40%",) if truth == "exact" else ()
    assert make_measurement(rrp_plant("exact"), rrp_plant(truth, 2, settings)).gauges


@pytest.mark.parametrize(
    ("seen", "real"), [("exact", "fixed"), ("fixed", "exact"), ("exact", "elements")]
)
@pytest.mark.parametrize("length", [0.2, 0.9])
def test_the_fit_is_the_least_squares_one_at_the_present_length(seen, real, length):
    truth = rrp_plant("fixed", 3, kind="elements") if real == "elements" else rrp_plant(real, 3)
    design, (q, v) = rrp_plant(seen), bent(truth, 3, length)
    measurement = make_measurement(design, truth)
    found, _ = numbers(measurement.function, q, v)
    xi = measurement.gauges["link3.x"]
    shapes = design.bodies[2].shapes_at("x", length)
    best = np.linalg.lstsq(
        shapes.curvature(np.array(xi)).T / length**2, curvature(truth, q, xi), rcond=None
    )[0]
    np.testing.assert_allclose(found[rows(design)], best, rtol=1e-7)


def test_modes_that_the_design_has_are_seen_exactly_while_sliding():
    # on gauges of Gauss the third mode's curvature is not orthogonal: it must be at rest
    design, truth = rrp_plant("exact", 1), rrp_plant("exact", 2)
    q, v = bent(truth, 4)
    still = [i for i, name in enumerate(truth.coordinates) if name.endswith(".2")]
    q[still] = v[still] = 0.0
    kept = [truth.coordinates.index(name) for name in design.coordinates]
    found_q, found_v = numbers(make_measurement(design, truth).function, q, v)
    lines = rows(design, "link3")
    np.testing.assert_allclose(found_q[lines], q[kept][lines], rtol=1e-8)
    np.testing.assert_allclose(found_v[lines], v[kept][lines], rtol=1e-6, atol=1e-8)


def test_rates_are_derivatives_of_what_is_seen_while_sliding():
    truth, h = rrp_plant("fixed", 2, kind="elements"), 1e-6
    function = make_measurement(rrp_plant("exact"), truth).function
    q, v = bent(truth, 5)
    ahead, behind = (numbers(function, q + s * h * v, v)[0] for s in (1, -1))
    np.testing.assert_allclose(
        (ahead - behind) / (2 * h), numbers(function, q, v)[1], rtol=1e-6, atol=1e-7
    )


def test_too_few_gauges_for_the_modes_are_refused():
    with pytest.raises(InputError, match="expected at least 2 positions"):
        make_measurement(rrp_plant("exact"), rrp_plant("fixed", 3), (0.5,))


def test_the_loop_ends_where_the_modes_of_its_law_do():
    loop = loop_of(truth=BasisChoice(order=1))
    low, high = loop.valid_range
    assert low[2] == pytest.approx(0.095)
    assert high[2] == pytest.approx(1.313)
    np.testing.assert_array_equal(low[3:], loop.truth.valid_range[0][3:])
    assert "joint3 leaves the range of free lengths that its modes" in loop.why_out_of_range(2)
    assert "joint1 leaves its beam" in loop.why_out_of_range(0)


def test_units_of_modes_that_change_are_refused():
    gains = {"Kp": [[1.0] * 4] * 3, "Kv": [[0.1] * 4] * 3, "modes": "tip"}
    columns = [f"link{j}.{d}.1" for j, d in ((2, "y"), (2, "z"), (3, "x"), (3, "y"))]
    table = {**load_design("rrp-composite").table(), "fast_loop": {**gains, "columns": columns}}
    design = Design.model_validate({**table, "name": "given"})
    with pytest.raises(
        InputError, match=r"fast_loop\.modes: expected no such key with basis\.sliding "
    ):
        design_controller(RRP, design, ONE, interpreted=True)


def test_an_observer_is_made_on_exact_modes():
    controller = design_controller(RRP, load_design("rrp-observer"), ONE, interpreted=True)
    assert controller.observer is not None


def test_motions_of_the_line_are_named_by_its_modes():
    loop = loop_of()
    names = name_modes(loop, np.array([0.0, 0.0, 0.6]), 2 * loop.truth.n)
    assert names.names[: loop.truth.n] == loop.truth.coordinates


def test_a_truth_that_no_file_names_has_modes_of_the_same_kind():
    arm = RRP.model_copy(update={"truth": None})
    assert default_truth(arm, EXACT) == BasisChoice(order=4, sliding="exact")
    assert default_truth(RRP, EXACT) == RRP.truth


@pytest.mark.parametrize(("sliding", "more"), [("fixed", {}), ("exact", {"sliding": "exact"})])
def test_what_is_printed_names_the_modes(sliding, more):
    assert BasisChoice(sliding=sliding).described() == {"kind": "modes", "order": 2, **more}


@pytest.mark.slow
@pytest.mark.parametrize("truth", [ONE, BasisChoice(kind="elements", order=1)], ids=["own", "fem"])
def test_the_account_of_energy_closes_along_the_motion(truth):
    run = simulate(loop_of(truth=truth), duration=0.5)
    assert run.q[2, -1] > 0.9
    assert run.energy.imbalance < 1e-8
