"""Errors pulled out of a loop, against controllers and arms that are rebuilt with them."""

import itertools
from functools import cache

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.loop.equilibrium import set_integrals
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import with_options
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.arm_errors import payload_error
from flexctl.robustness.stiffness.assumed_stiffness import judge_assumed
from flexctl.robustness.stiffness.model_errors import (
    RestingLaw,
    all_together,
    by_link,
    by_mode,
    pull_out,
)
from flexctl.robustness.stiffness.pose_loop import loop_at
from flexctl.robustness.stiffness.structured_errors import bound_errors, structured_loop
from tests.random_arms import random_arm, random_pose
from tests.robustness.stiffness.margin_witness import (
    final,
    growth,
    matrix,
    rebuilt_loop,
    unknown_loop,
)

WEIGHTS = {"joint_error": 300.0, "joint_rate": 3.0, "strain_energy": 1.0}
WEIGHTS |= {"kinetic_energy": 1.0, "effort": 1e-2}
SAMPLED = {"sample_time": 2e-3, "delay": 3e-3}
OBSERVER = {"measures": ["encoder", "tachometer", "strain_gauge"]}
FAST = {"weights": {"strain_energy": 1.0, "effort": 1.0}}
LAWS = {
    "gains": {},
    "integral": {"gains": {"Gp": [90.0], "Gv": [20.0], "Gi": [50.0]}},
    "second loop": {"second_loop": {"weights": WEIGHTS}},
    "observer": {"loop": OBSERVER, "second_loop": {"weights": WEIGHTS}},
    "sampled": {"loop": SAMPLED},
    "composite": {"method": "composite", "fast_loop": FAST},
    "composite observer": {"method": "composite", "fast_loop": FAST, "loop": OBSERVER},
    "joint-pd": {"method": "joint-pd"},
}
KINDS = ["planar", "sliding", "rotors"]
EARTH = (1.0, 2.0, -9.81)
GROUPS = {"by mode": by_mode, "by link": by_link, "all": all_together}


@pytest.fixture(scope="module")
def given(make):
    """given(kind, law): arm, design, its basis and the truth plant."""

    @cache
    def build(kind, law, gravity=EARTH, damping=0.02):
        arm = random_arm(kind, 1)
        arm = with_options(arm, foreshortening=None, damping=damping)
        arm = arm.model_copy(update={"gravity": gravity})
        pose, tables = random_pose(arm, 1), dict(LAWS[law])
        method = tables.pop("method", "decoupling")
        design = make["design"](0.9 * pose, pose, method, **tables)
        truth = assemble_plant(arm, BasisChoice(kind="elements", order=2), interpreted=True)
        return arm, design, BasisChoice(order=1), truth

    return build


def mapped(step):
    """Image of a matrix of one sample under s = (z - 1)/(z + 1)."""
    one = np.eye(len(step))
    return np.linalg.solve(step + one, step - one)


QUICK = [("planar", law, "by mode") for law in LAWS]
QUICK += [("sliding", "sampled", "by link"), ("rotors", "integral", "all")]
QUICK += [("rotors", "composite", groups) for groups in GROUPS]
CASES = [
    pytest.param(*case, marks=[pytest.mark.slow] * (case not in QUICK))
    for case in itertools.product(KINDS, LAWS, GROUPS)
]
ARMS = [("rotors", "gains"), ("planar", "observer")]
ARMS += [pytest.param("sliding", law, marks=pytest.mark.slow) for law in ("gains", "observer")]
ARMS += [pytest.param("planar", "gains", marks=pytest.mark.slow)]


def resting_law(loop, joints, share):
    return RestingLaw(loop, joints, share, linearise_loop(loop, joints, share))


def compare_form(given, groups):
    """Form of a loop under errors of these groups beside the rebuilt loop's matrix, and its A."""
    arm, design, basis, truth = given
    loop = unknown_loop(arm, design, basis, truth)
    plant = loop.controller.plant
    chosen = GROUPS[groups](plant)
    form = pull_out(loop, *final(loop), chosen)
    delta = np.random.default_rng(7).uniform(-0.6, 1.5, len(chosen))
    errors = np.zeros(len(plant.stiffness_parts))
    for group, value in zip(chosen, delta, strict=True):
        errors[list(group.parts)] = value
    joints, share = final(loop)
    wrong, rest = loop.at({"stiffness_error": errors}), linearise_loop(loop, joints, share).rest
    rest = set_integrals(wrong, rest, share)  # under gravity K_hat moves the arm
    expected = matrix(rebuilt_loop(arm, design, basis, truth, errors), rest=rest)
    return form, form.matrix(delta), mapped(expected) if form.sample_time else expected


@pytest.mark.slow_but("planar-integral-by mode")
@pytest.mark.parametrize(("kind", "law", "groups"), CASES)
def test_the_form_is_the_loop_of_a_controller_with_these_errors(given, kind, law, groups):
    form, found, expected = compare_form(given(kind, law), groups)

    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
    # joint PD computes with no stiffness, all others do
    assert (np.abs(form.A - expected).max() > 1e-9 * np.abs(expected).max()) == (law != "joint-pd")


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", ["composite", pytest.param("composite observer", marks=pytest.mark.slow)]
)
def test_composite_control_of_flexible_joints_without_gravity(given, law):
    _form, found, expected = compare_form(given("rotors", law, (0.0, 0.0, 0.0)), "by mode")

    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


def test_products_of_compliances_are_not_small(given):
    # rotors run ahead by c/k, and z_qs is another 1/k of the torque that follows: of its own
    # spring where all errors are equal, and of all other springs and modes where they are not
    arm, design, basis, truth = given("rotors", "composite")
    loop = unknown_loop(arm, design, basis, truth)
    at, parts = final(loop), loop.controller.plant.stiffness_parts
    law = RestingLaw(loop, *at, linearise_loop(loop, *at))
    alone = [law(-0.5 * e) - law(0 * e) for e in np.eye(len(parts))]
    both = law(np.full(len(parts), -0.5)) - law(np.zeros(len(parts)))

    assert np.abs(both - sum(alone)).max() > 1e-3 * np.abs(both).max()


@pytest.mark.slow_but("0.1")
@pytest.mark.parametrize("error", [1e-4, 0.1])
def test_a_given_error_is_followed_to_where_it_leaves_no_stiffness(given, error):
    # at the equilibrium without error the loop would be lost at 9.98 times 10 %; it rests elsewhere
    # with it, and is stable there, as rebuilt loops are
    made = given("rotors", "composite")
    loop = unknown_loop(*made)
    here = loop_at(loop, *final(loop))
    found = judge_assumed(here, (), {"rotor1": 1 - error}).at[0].interval
    nearly_all = np.zeros(len(loop.controller.plant.stiffness_parts))
    nearly_all[0] = -0.9985

    assert found.upper is None
    assert not found.proven
    assert growth(rebuilt_loop(*made, nearly_all)) < 0


# What the arm has beside what its controller knows


def test_a_payload_is_the_same_error_alone_and_beside_others(make):
    # beside others its few channels of mass and the many of its weight along the links stand apart
    link = {"dh": {"a": 0.6}, "length": 0.6, "mass_per_length": 0.8, "EI": {"y": 60.0}}
    links = [{"joint": "revolute", "joint_inertia": 0.05, "damping_ratio": 0.02, **link}]
    arm = make["arm"](links, (0.0, -9.81, 0.0), {"mass": 0.4, "inertia": [0.0, 0.0, 1e-3]})
    design = make["design"]([0.0], [0.5], "joint-pd", gains={"Gp": [40.0], "Gv": [10.0]})
    truth = assemble_plant(arm, BasisChoice(kind="elements", order=2), interpreted=True)
    loop = unknown_loop(arm, design, BasisChoice(order=1), truth)
    at = final(loop)
    alone = structured_loop(loop, *at, {"payload": 0.5})
    beside = structured_loop(loop, *at, {"payload": 0.5, "damping": 1.0})
    payload = next(p for p in beside.parameters if p.name == "payload")

    assert 0 < payload.separable < payload.size
    assert alone.parameters[0].size < payload.size
    for error in (-1.0, 0.4):
        found = beside.matrix(np.array([error * (p is payload) for p in beside.parameters]))
        expected = alone.matrix(np.array([error]))
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.fixture(scope="module")
def tip_loaded():
    """The arm of [TG95] at a pose, whose modes know the payload: truth plant and linear model."""
    arm = load_model("theodore-ghosal-rrp")

    @cache
    def build(kind):
        truth = assemble_plant(arm, BasisChoice(kind=kind, order=2), interpreted=True)
        return truth, linearise(truth, truth.straight(np.array([0.3, 0.4, 0.8])))

    return build


@pytest.mark.parametrize("error", [1.0, 0.4, -0.9])
@pytest.mark.parametrize("kind", ["elements", "modes"])
def test_an_error_of_the_payload_is_the_mass_of_the_tip(tip_loaded, kind, error):
    truth, linear = tip_loaded(kind)
    (found,) = payload_error(truth, linear)
    J = truth.tip_jacobian(linear.q0)[:3]
    expected = error * truth.arm.payload.mass * J.T @ J

    size = np.sqrt(np.diag(linear.M))
    assert np.abs((error * found.M - expected) / np.outer(size, size)).max() < 1e-12
    assert not found.K.any()


def test_an_arm_without_a_payload_has_no_error_of_it():
    # the free numbers of a payload change the order of additions, and so the last digits of M
    truth = assemble_plant(
        load_model("mohan-saha-canadarm"), BasisChoice(order=2), interpreted=True
    )
    linear = linearise(truth, truth.straight(np.array([0.2, 0.4, 0.6])))

    assert (truth.loaded(2.0).mass_matrix(linear.q0) != truth.mass_matrix(linear.q0)).any()
    assert payload_error(truth, linear) == ()


@pytest.mark.slow_but("rotors-gains-0.7")
@pytest.mark.parametrize("error", [0.7, pytest.param(-0.6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "law"), ARMS)
def test_errors_of_the_arm_are_those_of_another_arm(given, kind, law, error):
    arm, design, basis, truth = given(kind, law, (0.0, 0.0, 0.0))
    loop = unknown_loop(arm, design, basis, truth)
    errors = {"payload": 0.5, "damping": 2.0}
    form = structured_loop(loop, *final(loop), errors)
    delta = [error if p.name == "payload" else -error / 2 for p in form.parameters]
    load = arm.payload
    heavier = {"mass": load.mass * (1 + 0.5 * error)}
    heavier["inertia"] = tuple((1 + 0.5 * error) * J for J in load.inertia)
    other = with_options(arm, foreshortening=None, damping=0.02 * (1 - error))
    other = other.model_copy(update={"payload": load.model_copy(update=heavier)})
    built = assemble_plant(other, truth.basis, interpreted=True)
    expected = matrix(rebuilt_loop(arm, design, basis, built, 0.0))

    assert {p.name for p in form.parameters} >= {"payload", "damping of link1", "damping of link2"}
    assert np.abs(form.matrix(delta) - expected).max() < 1e-10 * np.abs(expected).max()
    assert np.abs(form.A - expected).max() > 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ({}, "got none"),
        ({"mass": 1.0}, "got mass"),
        ({"modes": 1.0, "links": 1.0}, "modes or links"),
        ({"links": 0.0}, "expected a size above 0, got 0"),
    ],
)
def test_errors_that_make_no_sense_are_refused(given, errors, words):
    loop = unknown_loop(*given("planar", "gains"))

    with pytest.raises(InputError, match=words):
        structured_loop(loop, *final(loop), errors)


def test_a_controller_of_known_stiffness_has_no_errors_to_pull_out(given):
    arm, design, basis, truth = given("planar", "gains")
    known = rebuilt_loop(arm, design, basis, truth, 0.0)

    with pytest.raises(InputError, match="numbers of arm that are free"):
        pull_out(known, *final(known), all_together(known.controller.plant))


def test_errors_of_a_damping_that_is_not_there_are_refused(given):
    loop = unknown_loop(*given("planar", "gains", EARTH, 0.0))

    said = f"{loop.truth.arm.label}: errors.damping: expected an arm with damping, got one without"
    with pytest.raises(InputError, match=said):
        structured_loop(loop, *final(loop), {"damping": 1.0})


@pytest.mark.slow  # takes long
def test_what_is_guaranteed_and_what_destabilises_is_in_the_quantities_themselves(given):
    loop = unknown_loop(*given("planar", "composite", (0.0, 0.0, 0.0)))  # the rest stays
    at = bound_errors(loop, *final(loop), {"links": 0.2, "payload": 30.0}, t=0, where="")
    links, payload = at.guaranteed
    sizes = {"link1": 0.2, "link2": 0.2, "payload": 30.0}
    worst = at.bounds.worst_case
    expected = {name: sizes[name] * x for name, x in zip(worst.names, worst.delta, strict=True)}

    assert links.upper == -links.lower == pytest.approx(0.2 * at.bounds.guaranteed_fraction)
    assert payload.any_below
    assert payload.upper == pytest.approx(30 * at.bounds.guaranteed_fraction)
    assert at.worst_errors == pytest.approx(expected)
    assert min(at.worst_errors[name] for name in ("link1", "link2")) > -1
    assert at.worst_errors["payload"] >= -1
