"""Catalogue designs that are stable on their own model and not on the arm."""

import numpy as np
import pytest

import flexctl
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linear_poses, linearise_loop
from flexctl.model.lookup import list_designs, load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant import assemble_plant
from flexctl.verdict.comparison import compare
from flexctl.verdict.reasons import find_reasons, unstable_orders
from flexctl.verdict.stability import judge_stability
from tests.arms import make_arm

SPILLING = [e.name for e in list_designs() if e.name.endswith("-spillover")]
METHODS = {load_design(name).method for name in SPILLING}


def rate_on(controller, plant):
    """Spectral abscissa at the final pose, the law closed around a plant."""
    joints, weight = controller.reference.final, controller.final_second_loop_weight
    return linearise_loop(close_around(controller, plant), joints, weight).poles.real.max()


def test_every_kind_of_controller_has_one():
    loops = {"decoupling", "composite", "lqg", "computed-torque", "joint-pd", "pid", "cascade"}
    assert loops | {"positive-position-feedback", "state-space"} == METHODS
    assert any(load_design(name).filters for name in SPILLING)


@pytest.mark.slow
def test_compare_ranks_none_of_them_on_the_single_link():
    names = [name for name in SPILLING if name.startswith("hub-")]

    comparison = compare(load_model("single-link-hub"), names, baseline=False)

    assert comparison.ranking == ()
    assert all(e.stability.design_abscissa < 0 for e in comparison.evaluations)
    words = flexctl.explain(comparison)
    assert all(f"{name} is unstable at the final pose" in words for name in names)
    assert words.count("(spillover)") == len(names)


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
    expected = (design.expect[f"stability.{one}_abscissa"] for one in ("design", "spectral"))
    assert (own, there) == pytest.approx([one.value[0] for one in expected], rel=1e-4)


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


def joint_pd(_w, _factor):
    return {"method": "joint-pd", "gains": {"Gp": [1e-4], "Gv": [1e-5]}}


def pid(w, factor, N=50.0):
    gains = {"Gp": [1e-4], "Gv": [1e-5], "Gi": [factor * 1e-5 * w**2 / (1 + (w / N) ** 2)]}
    return {"method": "pid", "gains": gains | {"derivative_filter": [N]}}


def cascade(w, factor):
    loops = {"position_gain": 9.0, "velocity_gain": 1e-5, "integral_time": 9.0 / (factor * w**2)}
    return {"method": "cascade", "gains": None, "cascade": loops}


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("law", [joint_pd, pid, cascade])
@pytest.mark.usefixtures("no_compiler")
def test_a_continuous_joint_loop_damps_what_is_fast_beside_its_integral(make, law, factor):
    # of a torque C(s) (theta_d - theta) with small gains: where Im C(jw) > 0, w being the mode's
    arm = make["single"](damping=0.0)
    w = flexctl.linearise(flexctl.assemble_plant(arm, modes=2)).frequencies()[1]
    loop = make["close"](arm, make["design"]([0.0], [1.0], **law(w, factor)))

    poles = linearise_loop(loop, np.ones(1), 0.0).poles
    mode = poles[np.abs(poles - 1j * w).argmin()]

    assert abs(mode - 1j * w) < 1e-3
    assert (mode.real < 0) == (law is joint_pd or factor < 1)


@pytest.mark.parametrize("order", [1, 3, 8])
@pytest.mark.usefixtures("no_compiler")
def test_continuous_joint_pd_is_stable_on_every_model_of_the_arm(order):
    # torque and rate of the joint are a passive pair, and Gp + Gv s takes energy from it
    arm, design = load_model("single-link-hub"), load_design("hub-pd-spillover")
    free = design.model_copy(update={"loop": load_design("hub-pd").loop})
    controller = design_controller(arm, free, interpreted=True)
    basis = BasisChoice(kind="elements", order=order)

    assert rate_on(controller, close_loop(controller, arm, basis).truth) < 0


@pytest.mark.slow
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


@pytest.mark.parametrize(("damping", "same"), [(None, True), (0.0, False)])
@pytest.mark.usefixtures("no_compiler")
def test_only_the_same_arm_spills_over(damping, same):
    arm, design = load_model("single-link-hub"), load_design("hub-lqg-spillover")
    true_arm = arm if same else apply_settings(arm, [f"links.damping_ratio={damping}"])
    controller = design_controller(arm, design, interpreted=True)
    loop = close_loop(controller, true_arm, BasisChoice(kind="elements", order=2))

    judged = judge_stability(loop, linear_poses(loop), ())

    assert judged.stable_by_design
    assert judged.spills_over == same


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.slow
def test_poses_of_the_motion_are_judged_on_finer_truths_too():
    arm, design = load_model("planar-two-link"), load_design("two-link-decoupling")
    controller = design_controller(arm, design, interpreted=True)
    loop, finer = (
        close_around(controller, assemble_plant(arm, elements=n, interpreted=True)) for n in (4, 8)
    )
    judged = judge_stability(loop, linear_poses(loop), [finer])
    own = np.max([pose.poles.real.max() for pose in linear_poses(finer).path[::4]])

    assert judged.orders == (4, 8)
    assert judged.abscissae[1] < 0  # at rest at the end, under the second loop
    [(order, t, rate)] = judged.spilling
    assert (order, rate) == (8, pytest.approx(own, rel=1e-6))
    there = loop.controller.reference.sample(np.array([t]))[0][:, 0]
    assert linearise_loop(finer, there, 0.0).poles.real.max() == pytest.approx(own, rel=1e-6)


@pytest.mark.slow
def test_what_spills_over_along_the_motion_is_first_but_not_recommended():
    found = compare("planar-two-link", "two-link-decoupling", baseline=False)
    [one] = found.evaluations
    facts = {reason.code: reason.facts for reason in find_reasons(one)}
    orders = {code: own["orders"] for code, own in facts.items() if "orders" in own}

    assert orders == {"spillover": [9], "spillover-at-pose": [7, 8]}
    assert unstable_orders(one) == [7, 8, 9]
    assert found.winner is None
    said = flexctl.explain(found)
    assert "First of the ranking, but not recommended" in said
    assert "models of 7 and 8 elements per link (spillover), worst on 8, where at t = 6 s" in said
    assert "a disturbance grows at 398 1/s" in said
