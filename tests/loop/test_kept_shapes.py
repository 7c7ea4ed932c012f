"""Shapes of modes where numbers of the arm change: kept, with their error, or rebuilt."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import flexctl
from flexctl.errors import InputError
from flexctl.loop import close_around
from flexctl.model import BasisChoice, apply_settings, load_model
from flexctl.plant import assemble_plant, kept_shape_error, kept_shapes, linearise
from flexctl.plant.parameters import Numbers, change_numbers, nonzero_numbers
from tests.designs import make_design

FINE = BasisChoice(kind="elements", order=1)
SAID = "shapes of the arm before its numbers were changed"
PD = {"gains": {"Gp": [60.0, 20.0], "Gv": [12.0, 5.0]}}


def two_link_arm():
    return apply_settings(load_model("planar-two-link"), ["links.EI=*30", "payload.mass=0.1"])


def close(arm, design, **basis):
    """Loop on its own design plant, interpreted."""
    basis = BasisChoice(**basis) if basis else None
    controller = flexctl.design_controller(arm, design, basis, interpreted=True)
    return close_around(controller, controller.plant)


@pytest.fixture(scope="module")
def two_links():
    """Loop of a two-link arm on two modes per link."""
    return close(two_link_arm(), make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", **PD))


def wave(x, beta, A, B, derivative=0):
    """Derivative (0 .. 3) of A (cosh - cos) + B (sinh - sin) of beta x, by x."""
    b, u = beta * x, beta**derivative
    even = (np.cosh(b) - np.cos(b), np.sinh(b) + np.sin(b))
    odd = (np.sinh(b) - np.sin(b), np.cosh(b) - np.cos(b))
    second = (np.cosh(b) + np.cos(b), np.sinh(b) - np.sin(b))
    third = (np.sinh(b) + np.sin(b), np.cosh(b) + np.cos(b))
    a = (even[0], even[1], second[0], second[1])[derivative]
    c = (odd[0], odd[1], third[0], third[1])[derivative]
    return u * (A * a + B * c)


def exact_modes(M, J, count):
    """Wave numbers and A, B of a clamped line with a mass M and an inertia J at its tip.

    w''(1) = beta^4 J w'(1) and w'''(1) = -beta^4 M w(1), of a line of unit mass and length.
    """

    def rows(beta):
        columns = []
        for A, B in ((1, 0), (0, 1)):
            w = [wave(1.0, beta, A, B, k) for k in range(4)]
            columns.append([w[2] - beta**4 * J * w[1], w[3] + beta**4 * M * w[0]])
        return np.array(columns).T

    def residual(beta):
        return np.linalg.det(rows(beta)) / (np.cosh(beta) * beta**4) ** 2

    grid = np.linspace(0.1, 5 * count, 4000)
    signs = np.sign([residual(beta) for beta in grid])
    places = np.flatnonzero(signs[1:] != signs[:-1])[:count]
    roots = [scipy.optimize.brentq(residual, grid[k], grid[k + 1], xtol=1e-14) for k in places]
    return [(beta, *scipy.linalg.null_space(rows(beta), rcond=1e-6)[:, 0]) for beta in roots]


def rayleigh_ritz(modes, M, J):
    """Frequencies of the same line with other M, J at its tip, by Ritz's method with some modes."""

    x, weights = np.polynomial.legendre.leggauss(60)
    x, weights = (x + 1) / 2, weights / 2
    w, curvature = (np.array([wave(x, *mode, k) for mode in modes]) for k in (0, 2))
    tip, slope = (np.array([wave(1.0, *mode, k) for mode in modes]) for k in (0, 1))
    mass = (w * weights) @ w.T + M * np.outer(tip, tip) + J * np.outer(slope, slope)
    stiffness = (curvature * weights) @ curvature.T
    return np.sqrt(scipy.linalg.eigh(stiffness, mass, eigvals_only=True))


@pytest.mark.slow_but("0.13")
@pytest.mark.parametrize("mass", [0.13, 0.3, 0.02])
def test_the_error_of_kept_shapes_is_that_of_ritz_s_method_by_hand(two_links, mass):
    # of the second link: a line of 0.2 kg/m and 0.5 m, the payload's mass and inertia at its tip
    line, inertia = 0.2 * 0.5, 0.0005 / (0.2 * 0.5**3)
    kept = rayleigh_ritz(exact_modes(0.1 / line, inertia, 2), mass / line, inertia)
    exact = [mode[0] ** 2 for mode in exact_modes(mass / line, inertia, 2)]
    changes = kept / exact - 1

    error = two_links.at({"payload.mass": mass}).shape_error
    assert error.line == "link2.y"
    assert error.mode == changes.argmax() + 1
    assert error.change == pytest.approx(changes.max(), rel=1e-5, abs=1e-11)
    assert error.change > 1e-7


@pytest.mark.slow_but("fixed")
@pytest.mark.parametrize("sliding", ["fixed", "roots", "exact"])
def test_the_error_of_a_sliding_link_is_that_at_the_length_of_its_load(sliding):
    arm = load_model("theodore-ghosal-rrp")  # link 3 takes the payload's mass at a length of 1 m
    line, mass = arm.links[2].mass_per_length, arm.payload.mass
    kept = rayleigh_ritz(exact_modes(mass / line, 0.0, 2), 3 * mass / line, 0.0)
    changes = kept / [mode[0] ** 2 for mode in exact_modes(3 * mass / line, 0.0, 2)] - 1

    basis = BasisChoice(kind="modes", order=2, sliding=sliding)
    plant = assemble_plant(arm, basis, interpreted=True, parameters=("payload.mass",))
    error = kept_shape_error(plant.at({"payload.mass": 3 * mass}))
    assert (error.line, error.mode) == ("link3.x", changes.argmax() + 1)
    assert error.change == pytest.approx(changes.max(), rel=1e-5)


def test_locked_frequencies_of_the_arm_change_as_little_as_those_of_its_lines(two_links):
    values = {"link2.mass_per_length": 0.4}
    kept, rebuilt = two_links.at(values), two_links.at(values, shapes="rebuilt")
    final = two_links.controller.reference.final
    locked = [
        linearise(one.truth, one.truth.straight(final)).frequencies(np.arange(6) >= 2)
        for one in (kept, rebuilt)
    ]
    change = np.abs(locked[0] / locked[1] - 1).max()

    assert kept.shape_error.line == "link2.y"
    assert change == pytest.approx(kept.shape_error.change, rel=0.3)
    assert change > 1e-3


def test_the_error_is_said_with_its_line_and_mode(two_links):
    loop = two_links.at({"payload.mass": 0.3})
    (sentence,) = [words for words in loop.assumptions if SAID in words]

    assert f"up to {100 * loop.shape_error.change:.2g} % (mode 1 of link2.y)" in sentence
    assert sentence in flexctl.evaluate(loop).assumptions


UNCHANGED = {
    "damping": {"link1.damping_ratio": 0.05},
    "stiffness": {"link2.EI.y": 20.0},
    "gains": {"gains.Gp": 50.0},
    "nothing": {},
    "the same payload": {"payload.mass": 0.1},
    "all masses alike": {
        "link2.mass_per_length": 0.26,
        "payload.mass": 0.13,
        "payload.inertia": [0.0, 0.0, 0.00065],
        "link2.hub.mass": 1.3,
        "link2.hub.inertia": [0.0, 0.0, 0.13],
        "link1.mass_per_length": 0.26,
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_nothing_is_said_where_shapes_stay_the_same(two_links, name):
    loop = two_links.at({"payload.mass": 0.2}).at({"payload.mass": 0.1}).at(UNCHANGED[name])

    assert loop.shape_error is None
    assert not any(SAID in sentence for sentence in loop.assumptions)


def test_nothing_is_said_of_gravity_and_of_elements():
    arm = load_model("vertical-2r")
    loop = close(arm, "vertical-2r-pd", kind="modes", order=2)
    gravity = {f"gravity[{k + 1}]": 0.4 * g for k, g in enumerate(arm.gravity) if g}
    assert gravity
    assert loop.at(gravity).shape_error is None
    elements = close(
        two_link_arm(),
        make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", **PD),
        kind="elements",
        order=1,
    )
    assert elements.at({"payload.mass": 0.3}).shape_error is None


@pytest.mark.parametrize("kind", ["pinned-modes", "free-modes"])
def test_modes_of_other_roots_have_an_error_too(kind):
    design = make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", **PD)
    loop = close(two_link_arm(), design, kind=kind, order=2)
    error = loop.at({"payload.mass": 0.3}).shape_error

    assert error.line == "link2.y"
    assert 1e-6 < abs(error.change) < 0.1
    assert loop.at({"payload.mass": 0.3}, shapes="rebuilt").shape_error is None


REBUILT = {
    "payload": {"payload.mass": 0.3},
    "payload of the true arm": {"truth.payload.mass": 0.3},
    "several": {"link2.mass_per_length": 0.4, "link1.EI.y": 20.0, "gains.Gp": [50.0, 30.0]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REBUILT)
def test_a_loop_with_rebuilt_shapes_is_the_loop_made_of_the_changed_arm(name):
    values, basis, arm = REBUILT[name], BasisChoice(order=1), two_link_arm()
    design = make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", duration=0.4, **PD)
    loop = flexctl.close_loop(flexctl.design_controller(arm, design, basis), arm, basis)
    found = loop.at(values, shapes="rebuilt")

    own = {key.removeprefix("truth."): x for key, x in values.items() if "gains" not in key}
    changed = change_numbers(Numbers.of(arm, {}), nonzero_numbers(arm), own).arm
    believed = arm if "truth" in str(values) else changed
    gains = {"Gp": values.get("gains.Gp", PD["gains"]["Gp"]), "Gv": PD["gains"]["Gv"]}
    design = make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", duration=0.4, gains=gains)
    expected = flexctl.close_loop(
        flexctl.design_controller(believed, design, basis), changed, basis
    )
    ours, theirs = flexctl.evaluate(found), flexctl.evaluate(expected)

    assert (found.law_key, found.truth.content) == (expected.law_key, expected.truth.content)
    np.testing.assert_array_equal(ours.trajectory.q, theirs.trajectory.q)
    np.testing.assert_array_equal(ours.stability.poles, theirs.stability.poles)
    assert ours.assumptions == theirs.assumptions
    kept = flexctl.linearise(loop.at(values)).poles
    assert not np.array_equal(kept, flexctl.linearise(found).poles)


def test_values_of_before_are_rebuilt_too(two_links):
    once = two_links.at({"payload.mass": 0.3}, shapes="rebuilt")
    later = two_links.at({"payload.mass": 0.3}).at({}, shapes="rebuilt")

    assert later.truth.content == once.truth.content
    assert later.controller.plant.content == once.controller.plant.content
    assert two_links.at({"gains.Gp": 50.0}, shapes="rebuilt").truth is two_links.truth


def test_shapes_are_kept_or_rebuilt(two_links):
    with pytest.raises(InputError, match="shapes: expected 'kept' or 'rebuilt', got 'new'"):
        two_links.at({}, shapes="new")


def test_the_loads_are_derived_once_for_all_values(two_links, monkeypatch):
    assert two_links.at({"payload.mass": 0.2}).shape_error
    monkeypatch.setattr(kept_shapes, "inertia_expression", None)

    assert two_links.at({"payload.mass": 0.25}).shape_error


def test_a_softer_line_would_keep_more_modes():
    # clamped at both ends the second link has 1096 and 3021 rad/s, with EI of 3 N m^2 346 and 955
    arm, design = two_link_arm(), make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", **PD)
    truth = BasisChoice(kind="elements", order=4, drop_above=1500.0)
    controller = flexctl.design_controller(arm, design, FINE, interpreted=True)
    loop = flexctl.close_loop(controller, arm, truth)
    softer = loop.at({"link2.EI.y": 3.0})
    rebuilt = softer.at({}, shapes="rebuilt")

    assert len(rebuilt.truth.coordinates) == len(loop.truth.coordinates) + 1
    assert softer.shape_error.line == "link2.y"
    assert any("link2.y would have more or fewer of them" in words for words in softer.assumptions)
    assert rebuilt.shape_error is None
    assert loop.at({"link2.EI.y": 30.5}).shape_error is None
