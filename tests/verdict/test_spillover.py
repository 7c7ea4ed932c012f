"""Catalogue designs that are stable on their own model and not on the arm."""

import numpy as np
import pytest

import flexctl
from flexctl.control.controller import design_controller
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import list_designs, load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.verdict.comparison import compare
from tests.arms import make_arm

SPILLING = [e.name for e in list_designs() if e.name.endswith("-spillover")]
METHODS = {load_design(name).method for name in SPILLING}


def rate_on(controller, plant):
    """Spectral abscissa at the final pose, the law closed around a plant."""
    joints, weight = controller.reference.final, controller.final_second_loop_weight
    return linearise_loop(close_around(controller, plant), joints, weight).poles.real.max()


def test_every_kind_of_controller_has_one():
    assert {"decoupling", "composite", "lqg", "computed-torque"} <= METHODS


@pytest.mark.parametrize("name", SPILLING)
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.slow_but("hub-*")
def test_it_is_stable_on_its_own_model_and_not_on_the_truth_of_its_arm(name):
    design = load_design(name)
    arm = load_model(design.model)
    controller = design_controller(arm, design, interpreted=True)

    own = rate_on(controller, controller.plant)
    there = rate_on(controller, close_loop(controller, arm).truth)

    assert own < 0 < there
    assert there == pytest.approx(design.expect["stability.spectral_abscissa"].value[0], rel=1e-4)


def test_computed_torque_is_stable_where_its_arm_is_rigid():
    # a double integrator sampled at T bears Gv up to 2/T: roots of z^2 + (a + b - 2) z + 1 - a + b
    # with a = Gv T, b = Gp T^2/2
    design = load_design("hub-computed-torque-spillover")
    arm = load_model(design.model)
    link = {"joint": "revolute", "length": 1.0, "dh": {"a": 1.0}, "mass_per_length": 0.54}
    rigid = make_arm([link | {"hub": {"inertia": [0.0, 0.0, 0.1]}}], payload={"mass": 0.25})
    controller = design_controller(rigid, design)
    T, Gp, Gv = design.loop.sample_time, design.gains.Gp[0], design.gains.Gv[0]
    a, b = Gv * T, Gp * T**2 / 2

    own = rate_on(controller, controller.plant)

    assert not any(link.flexible for link in rigid.links)
    assert any(link.flexible for link in arm.links)
    assert own == pytest.approx(np.log(np.abs(np.roots([1, a + b - 2, 1 - a + b])).max()) / T)
    assert own < 0


def test_compare_does_not_rank_it_and_says_why():
    name = "hub-lqg-spillover"
    arm = load_model("single-link-hub")
    comparison = compare(
        arm, [load_design(name)], truth_basis=BasisChoice(kind="elements", order=2)
    )

    words, said = flexctl.explain(comparison), flexctl.to_json(comparison)

    assert name not in comparison.ranking
    assert f"{name} is unstable at the final pose" in words
    assert "On its own model, of 1 mode per link and plane, it is stable" in words
    assert "(spillover)" in words
    judged = next(e for e in said["evaluations"] if e["design"] == name)["stability"]
    assert judged["design_abscissa"] < 0 < judged["spectral_abscissa"]
    baseline = next(e for e in said["evaluations"] if e["design"] != name)["stability"]
    assert baseline["design_abscissa"] is None
