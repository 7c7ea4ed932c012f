"""Loops with other numbers of arm and design, against loops assembled with these numbers."""

import numpy as np
import pytest

import flexctl
from flexctl.errors import InputError
from flexctl.loop import close_around, linearise_loop
from flexctl.model import (
    DESIGN_TABLES,
    BasisChoice,
    apply_settings,
    load_design,
    load_model,
    with_value,
)
from flexctl.plant import assemble_plant, find_compiler, library_cache, nonzero_numbers
from flexctl.plant.parameters import Numbers, change_numbers, known_numbers, number_at
from flexctl.simulation import simulate
from tests.arms import wrong_plant
from tests.designs import designs_with_a_loop, make_design
from tests.loops import multipliers, pole_distance

FINE, COARSE = (BasisChoice(kind="elements", order=order) for order in (2, 1))
SLANTED = ("gravity=[0.3, -1.2, -2.0]",)


def close(arm, design, free):
    """Loop of a design on finer elements, with numbers free or folded in."""
    parameters = nonzero_numbers(arm) if free else ()
    plants = [
        assemble_plant(arm, basis, interpreted=True, parameters=parameters)
        for basis in (COARSE, FINE)
    ]
    return close_around(flexctl.control.design_on(plants[0], design), plants[1])


QUICK = (
    "hub-composite-spillover",
    "hub-lqg",
    "hub-position-feedback",
    "mohan-saha-pd",
    "rrp-composite",
    "rrp-pid",
    "rrp-shaped",
    "subudhi-morris-slow-only",
    "vertical-2r-cascade",
    "vertical-2r-computed-torque",
    "vertical-2r-integral",
    "wu-haug-4",
)
"""Designs with a sampled observer, whose laws take long to write out."""


def changed(arm, values):
    """The arm with other values of its numbers, by name."""
    return change_numbers(Numbers.of(arm, {}), nonzero_numbers(arm), values).arm


@pytest.mark.slow_but("vertical-2r-integral")
@pytest.mark.parametrize("name", list(designs_with_a_loop()))
def test_poles_at_random_numbers_are_those_of_the_arm_that_has_them(name):
    design, random = load_design(name), np.random.default_rng(len(name))
    arm = load_model(design.model)
    arm = arm if any(arm.gravity) else apply_settings(arm, SLANTED)
    names, known = nonzero_numbers(arm), known_numbers(arm)
    factors = 1 + 0.1 * random.uniform(-1, 1, len(names))
    values = {n: f * number_at(arm, known[n]) for n, f in zip(names, factors, strict=True)}
    found = close(arm, design, free=True).at(values)
    expected = close(changed(arm, values), design, free=False)
    final, start = found.controller.reference.final, found.controller.reference.start
    for joints, weight in ((final, found.controller.final_second_loop_weight), (start, 0.0)):
        ours, theirs = (linearise_loop(loop, joints, weight).poles for loop in (found, expected))
        ours, theirs = (multipliers(own, design.loop.sample_time) for own in (ours, theirs))
        assert pole_distance(theirs, ours) < 1e-9


OTHERS = {
    "gains.Gp": [40.0, 30.0],
    "gains.Gv": [9.0, 7.0],
    "reference.duration": 0.7,
    "reference.to": [0.7, 0.2],
    "payload.mass": 0.13,
    "link1.EI.y": 1.3,
    "link2.mass_per_length": 0.8,
    "link1.damping_ratio": [1.5],
}
"""Numbers of the design, and factors of numbers of the arm other than the payload."""


@pytest.fixture(scope="module")
def two_links():
    """Arm, design and loop of a two-link arm under joint PD, compiled where possible."""
    gains = {"Gp": [60.0, 20.0], "Gv": [12.0, 5.0]}
    design = make_design([0.0, 0.0], [0.5, 0.4], "joint-pd", gains=gains)
    damped = ["payload.mass=0.1", "links.damping_ratio=0.02", "links.EI=*30"]
    arm = apply_settings(load_model("planar-two-link"), damped)
    controller = flexctl.design_controller(arm, design, COARSE)
    return arm, design, flexctl.close_loop(controller, arm, FINE)


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHERS)
def test_a_run_with_another_number_is_that_of_a_loop_made_with_it(two_links, key):
    arm, design, loop = two_links
    value = OTHERS[key]
    if key.startswith("link"):
        own = [number_at(arm, path) for name, path in known_numbers(arm).items() if key in name]
        value = float(own[0] * np.ravel(value)[0])
    of_design = key.split(".")[0] in DESIGN_TABLES
    other = arm if of_design else changed(arm, {key: value})
    own = with_value(design, key, value) if of_design else design
    times = np.linspace(0, 0.4, 9)
    found, expected = (
        simulate(one, times=times) for one in (loop.at({key: value}), close(other, own, False))
    )
    np.testing.assert_allclose(found.q, expected.q, rtol=1e-6, atol=1e-9)
    assert np.abs(found.q - simulate(loop, times=times).q).max() > 1e-7


def test_gains_of_a_riccati_equation_follow_their_weights():
    design = load_design("two-link-decoupling")
    arm = load_model(design.model)
    key, effort = "second_loop.weights.effort", 3e-4
    found = close(arm, design, free=True).at({key: effort})
    expected = close(arm, with_value(design, key, effort), free=False)
    final = design.reference.to
    ours, theirs = (linearise_loop(loop, final, 1.0).poles for loop in (found, expected))

    assert pole_distance(theirs, ours) < 1e-9
    assert pole_distance(theirs, linearise_loop(close(arm, design, True), final, 1.0).poles) > 1e-6


@pytest.mark.slow_but("subudhi-morris-decoupling")
@pytest.mark.parametrize("name", ["rrp-stiff-decoupling", "subudhi-morris-decoupling"])
def test_errors_of_the_stiffness_are_those_of_the_law_alone(name):
    design = load_design(name)
    arm, free = load_model(design.model), ("stiffness_error",)
    right = flexctl.design_controller(arm, design, COARSE, interpreted=True, parameters=free)
    loop = close_around(right, assemble_plant(arm, BasisChoice(order=2), interpreted=True))
    part = right.plant.stiffness_parts[0]
    found = loop.at({"stiffness_error": 0.2, f"stiffness_error[{part}]": -0.1})
    errors = dict.fromkeys(right.plant.stiffness_parts, 0.2) | {part: -0.1}
    wrong = flexctl.control.design_on(wrong_plant(arm, COARSE, errors), design)
    expected = close_around(wrong, loop.truth)
    final = design.reference.to
    ours, theirs = (linearise_loop(one, final, 1.0).poles for one in (found, expected))

    assert pole_distance(theirs, ours) < 1e-9
    assert pole_distance(theirs, linearise_loop(loop, final, 1.0).poles) > 1e-6
    assert found.truth is loop.truth
    assert found.controller.feedback is right.feedback
    assert found.shape_error is None


def test_errors_that_are_not_free_are_refused_in_one_line(two_links):
    with pytest.raises(InputError, match=r"that are free .* got 'stiffness_error'") as error:
        two_links[2].at({"stiffness_error": 0.1})
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
def test_nothing_is_compiled_for_the_second_value(two_links, monkeypatch):
    _, _, loop = two_links
    flexctl.evaluate(loop)
    built = []
    monkeypatch.setattr(library_cache, "_build", lambda *_: built.append(1))
    changed = {"payload.mass": 0.12, "gains.Gp": 50.0}
    verdict = flexctl.evaluate(loop, changed)

    assert not built
    assert verdict.stability.stable is not None
    first, second = flexctl.evaluate_many(loop, [changed, {}])
    assert first.stability.poles == pytest.approx(verdict.stability.poles)
    assert second.stability.poles != pytest.approx(verdict.stability.poles)


@pytest.mark.slow
def test_many_verdicts_are_those_of_one_after_the_other(two_links):
    _, _, loop = two_links
    sets = [{"payload.mass": mass} for mass in (0.08, 0.1, 0.12, 0.14, 0.16)]
    sets.append({"reference.duration": 0.8})
    for given, many in zip(sets, flexctl.evaluate_many(loop, sets), strict=True):
        one = flexctl.evaluate(loop, given)
        assert many.stability.poles == pytest.approx(one.stability.poles)
        assert many.tracking.tip_error_rms == pytest.approx(one.tracking.tip_error_rms, rel=1e-6)
        assert many.effort.energy == pytest.approx(one.effort.energy, rel=1e-6)


def test_a_number_of_the_true_arm_leaves_the_law_as_it_is(two_links):
    _, _, loop = two_links
    changed = loop.at({"truth.payload.mass": 0.2})

    assert changed.controller is loop.controller
    assert changed.truth.arm.payload.mass == 0.2
    assert loop.truth.arm.payload.mass == 0.1


def test_modes_that_keep_the_shapes_of_another_load_are_said_to():
    arm = load_model("theodore-ghosal-rrp")
    controller = flexctl.design_controller(arm, "rrp-gentle", interpreted=True)
    loop = close_around(controller, controller.plant)
    heavier = loop.at({"payload.mass": 2 * arm.payload.mass})

    assert any("shapes of the arm before" in sentence for sentence in heavier.assumptions)
    for other in (loop, loop.at({"gains.Gp": 90.0})):
        assert not any("shapes of the arm before" in sentence for sentence in other.assumptions)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"payload.weight": 1.0}, "payload.weight"),
        ({"link1.length": 1.0}, "link1.length"),
        ({"payload.mass": float("nan")}, "payload.mass"),
        ({"gravity": [0.0, 0.0, -1.0]}, "gravity"),
        ({"link1.EI.y": 0.0}, "link1.EI.y: expected a number above 0"),
        ({"link1.damping_ratio": 1.5}, "below 1"),
        ({"payload.mass": -0.1}, "payload.mass"),
        ({"gains.Gx": 1.0}, "Gx"),
        ("payload.mass", "values"),
    ],
)
def test_values_that_are_no_numbers_of_these_are_refused(two_links, values, words):
    with pytest.raises(InputError, match=words):
        two_links[2].at(values)
