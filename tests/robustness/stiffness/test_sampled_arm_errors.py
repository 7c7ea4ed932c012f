"""Errors of payload and damping of sampled loops, against loops closed around the changed arm."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.plant import STIFFNESS_ERROR, linearise
from flexctl.robustness.stiffness.arm_errors import damping_errors
from flexctl.robustness.stiffness.structured_errors import bound_errors, structured_loop
from tests.arms import plant_of

T = 2e-3
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
ENCODER = {"kind": "encoder", "noise": 1e-5}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
MODES = BasisChoice(kind="modes", order=1)
END = np.array([0.5])


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def closed(make, delay=0.0, joint=None, order=2, period=T, **tables):
    arm = make["single"](**({"flexible_joint": ROTOR} if joint else {}))
    own = {"instruments": [ENCODER | {"delay": period}, GAUGE], "observer": {}}
    tables = {"gains": {"Gp": [60.0], "Gv": [12.0]}, **own} | tables
    method = tables.pop("method", "joint-pd")
    loop = {"sample_time": period, "delay": delay}
    design = make["design"]([0.0], [0.5], method, loop=loop, **tables)
    controller = design_controller(arm, design, MODES, parameters=(STIFFNESS_ERROR,))
    return close_loop(controller, arm, modes=order)


def multipliers(loop, payload=0.0, damping=0.0, stiffness=0.0):
    """Of the loop around the arm with these relative errors; the law's model is as it was."""
    wrong = loop.under_errors(stiffness)
    truth = loop.truth.loaded(1 + payload) if payload else loop.truth
    linear = linearise_loop(replace(wrong, truth=truth), END, 0.0)
    errors = damping_errors(loop.truth, linear.plant)
    D = linear.plant.D + sum(damping * one.D for one in errors)
    linear = linear.with_plant(replace(linear.plant, D=D))
    z = np.linalg.eigvals(sampled_loop(linear, linear.sample_time, linear.delay))
    return z[np.abs(z) > 1e-3]


CASES = {
    "observer": {},
    "late": {"delay": 1.4 * T},
    "whole": {"delay": T},
    "joint": {"joint": "flexible", "delay": 0.3 * T},
    "measured": {"instruments": (), "observer": None, "delay": 0.5 * T},
    "filtered": {
        "instruments": [ENCODER, {"kind": "difference", "time_constant": 4e-3}],
        "observer": None,
        "filters": [{"kind": "low-pass", "frequency": 400.0}],
    },
    "model": {"method": "decoupling", "delay": 0.25 * T},
}


@pytest.mark.slow_but("measured", "filtered", "whole")
@pytest.mark.parametrize("case", CASES)
def test_the_form_is_the_loop_around_the_changed_arm(make, case):
    loop = closed(make, **CASES[case])
    errors = {"payload": 0.5, "damping": 2.0}
    if case == "model":
        errors["links"] = 0.5
    form = structured_loop(loop, END, 0.0, errors)
    names = [one.name for one in form.parameters]
    for payload, damping, error in [(0.5, 0.0, 0.0), (-0.4, 1.5, 0.3), (0.9, 3.0, -0.2)]:
        stiffness = error if "link1" in names else 0.0
        own = {"payload": payload / 0.5, "link1": stiffness / 0.5}
        delta = np.array([own.get(name, damping / 2.0) for name in names])
        s = form.poles(delta)
        found = (1 + s) / (1 - s)
        expected = multipliers(loop, payload, damping, stiffness)
        assert np.abs(expected[:, None] - found).min(axis=1).max() < 1e-7


@pytest.mark.parametrize(
    ("case", "kind", "gains"),
    [
        ("model", "payload", (300.0, 12.0)),
        ("model", "payload", (30.0, 1.5)),
        ("model", "damping", (300.0, 12.0)),
        ("late", "payload", (60.0, 12.0)),
    ],
)
def test_a_single_error_is_lost_where_a_multiplier_leaves_the_circle(make, case, kind, gains):
    own = {"gains": {"Gp": [gains[0]], "Gv": [gains[1]]}}
    loop = closed(make, **CASES[case] | own)
    assert np.abs(multipliers(loop)).max() < 1
    bounds = bound_errors(loop, END, 0.0, {kind: 1.0}, t=0.0, where="here").bounds
    assert bounds.proven
    if case == "late":  # a collocated loop loses nothing, down to none left
        assert bounds.worst_case is None
        for error in (-0.999, 5.0, 50.0):
            assert np.abs(multipliers(loop, **{kind: error})).max() < 1
        return
    lost = bounds.worst_case.delta.item()
    assert bounds.guaranteed_fraction == pytest.approx(abs(lost), rel=1e-6)
    assert np.abs(multipliers(loop, **{kind: 0.999 * lost})).max() < 1
    assert np.abs(multipliers(loop, **{kind: 1.001 * lost})).max() > 1


@pytest.mark.slow
def test_several_errors_at_once_lie_between_their_bounds(make):
    own = {"gains": {"Gp": [300.0], "Gv": [12.0]}}
    loop = closed(make, **CASES["model"] | own)
    errors = {"links": 0.5, "payload": 1.0, "damping": 1.0}
    bounds = bound_errors(loop, END, 0.0, errors, t=0.0, where="here").bounds
    assert bounds.proven
    least, worst = bounds.guaranteed_fraction, bounds.worst_case
    assert least <= worst.gamma < 1.1 * least
    for stiffness, payload, damping in np.random.default_rng(0).choice([-1.0, 1.0], (6, 3)):
        z = multipliers(loop, least * payload, least * damping, least * 0.5 * stiffness)
        assert np.abs(z).max() < 1
    stiffness, payload, damping = 1.001 * worst.delta
    assert np.abs(multipliers(loop, payload, damping, 0.5 * stiffness)).max() > 1


def test_modes_that_turn_far_in_a_sample_are_followed(make):
    # the arm's fourth mode turns 24 rad in a sample of 20 ms
    own = {"gains": {"Gp": [20.0], "Gv": [4.0]}, "instruments": (), "observer": None}
    loop = closed(make, period=0.02, order=4, method="decoupling", **own)
    assert np.abs(multipliers(loop)).max() < 1
    assert structured_loop(loop, END, 0.0, {"payload": 1.0}).approximate
    bounds = bound_errors(loop, END, 0.0, {"payload": 1.0}, t=0.0, where="here").bounds
    assert not bounds.proven
    assert "turn too far in a sample" in bounds.notes[-1]
    lost = bounds.worst_case.delta.item()
    assert (
        np.abs(multipliers(loop, 0.999 * lost)).max()
        < 1
        < np.abs(multipliers(loop, 1.001 * lost)).max()
    )


SLOW = {"method": "decoupling", "instruments": [ENCODER | {"sample_time": 3 * T}, GAUGE]}


@pytest.mark.parametrize(("kind", "gains"), [("payload", (30.0, 1.5)), ("damping", (300.0, 12.0))])
def test_a_single_error_beside_a_law_that_repeats_is_followed(make, kind, gains):
    own = {"gains": {"Gp": [gains[0]], "Gv": [gains[1]]}}
    loop = closed(make, **SLOW | own)
    assert loop.controller.cycle == 3
    assert np.abs(multipliers(loop)).max() < 1
    bounds = bound_errors(loop, END, 0.0, {kind: 1.0}, t=0.0, where="here").bounds
    assert not bounds.proven
    assert "in the 3 samples after which it repeats" in bounds.notes[-1]
    lost = bounds.worst_case.delta.item()
    assert abs(lost) == pytest.approx(bounds.guaranteed_fraction)
    ends = (multipliers(loop, **{kind: part * lost}) for part in (0.999, 1.001))
    inside, outside = (np.abs(z).max() for z in ends)
    assert inside < 1 < outside


def test_several_errors_beside_a_law_that_repeats(make):
    own = {"gains": {"Gp": [300.0], "Gv": [12.0]}}
    loop = closed(make, **SLOW | own)
    errors = {"links": 0.5, "payload": 1.0, "damping": 1.0}
    bounds = bound_errors(loop, END, 0.0, errors, t=0.0, where="here").bounds
    assert not bounds.proven
    least, worst = bounds.guaranteed_fraction, bounds.worst_case
    for stiffness, payload, damping in np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3)):
        z = multipliers(loop, least * payload, least * damping, least * 0.5 * stiffness)
        assert np.abs(z).max() < 1
    stiffness, payload, damping = 1.001 * worst.delta
    assert np.abs(multipliers(loop, payload, damping, 0.5 * stiffness)).max() > 1


def test_errors_of_damping_are_not_those_of_friction_and_motors(make):
    friction = {"viscous": 0.3, "side": "motor"}
    errors = []
    for more in ({}, {"friction": friction}):
        truth = make["single"](flexible_joint=ROTOR, **more)
        plant = plant_of(truth)
        linear = linearise(plant, plant.straight(np.array([0.2])))
        errors.append(damping_errors(plant, linear))
        assert linear.D[:2, :2].any()

    assert [one.name for one in errors[1]] == ["damping of rotor1", "damping of link1"]
    for one, other in zip(*errors, strict=True):
        np.testing.assert_allclose(other.D, one.D, atol=1e-15)
