"""Torques without feedback: what a run shows, and what a verdict can and cannot say of it."""

import json

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.eigenvalues import judge_poles
from flexctl.loop.linear import linearise_loop
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import evaluate
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json

TRUTH = BasisChoice(order=2)


@pytest.fixture(scope="module")
def canadarm():
    return load_model("mohan-saha-canadarm")


@pytest.fixture(scope="module")
def forced():
    return load_design("mohan-saha-forced")


def variant(design, **tables):
    """A design with some tables replaced and no expected figures."""
    table = {key: entry for key, entry in design.table().items() if key != "expect"}
    return Design.model_validate(table | {"name": "variant"} | tables)


@pytest.fixture(scope="module")
def cut_short(canadarm, forced):
    """The comparison of the design whose run ends before its reference does."""
    return compare(canadarm, [forced], truth_basis=TRUTH)


def test_a_rigid_arm_follows_its_own_torques(make):
    arm = make["rigid"]()
    design = make["design"]([-1.2, 0.3], [-0.5, 0.9], "feedforward", duration=[1.0, 0.6])
    run = simulate(make["close"](arm, design))

    assert np.abs(run.joint_error).max() < 1e-7


def test_a_flexible_arm_leaves_its_reference(canadarm, forced):
    run = simulate(close_loop(design_controller(canadarm, forced), canadarm, TRUTH))

    assert 0.01 < np.abs(run.joint_error).max() < 0.05
    assert np.abs(run.deflection["link1.y"]).max() > 0.1
    assert not any("measures" in words for words in run.assumptions)


def test_joint_1_of_the_canadarm_still_moves_when_its_run_ends(canadarm, forced):
    controller = design_controller(canadarm, forced)
    _, rate, _ = controller.reference.sample(np.array([controller.duration]))

    np.testing.assert_allclose(rate[:, 0], [0.15, 0, 0], atol=1e-12)


@pytest.mark.parametrize("sample_time", [0.0, 0.01])
def test_an_arm_that_nothing_holds_is_marginally_stable(canadarm, forced, sample_time):
    design = variant(forced, loop={"duration": 10.0, "sample_time": sample_time})
    loop = close_loop(design_controller(canadarm, design), canadarm, TRUTH)
    poles = linearise_loop(loop, np.array([0.1, 0.2, 0.3]), 0.0).poles

    assert judge_poles(poles) == "marginal"
    assert np.sum(np.abs(poles) < 1e-6) == 6


def test_an_upright_arm_that_nothing_holds_falls(make):
    arm = make["two-link"]((0.0, -9.81, 0.0), EI=40.0)
    design = make["design"]([1.5, 0.1], [1.6, 0.0], "feedforward", loop={"duration": 0.6})
    verdict = evaluate(make["close"](arm, design, order=1))

    assert verdict.stability.stable is False
    assert not verdict.ranks


def test_a_run_that_ends_in_motion_has_no_rest_and_says_so(cut_short):
    answer = json.loads(json.dumps(to_json(cut_short), allow_nan=False))
    evaluation = answer["evaluations"][0]

    assert evaluation["residual"] is None
    assert evaluation["margins"] is None
    assert evaluation["failed"] is None
    assert (
        evaluation["no_rest"] == "the run of 10 s does not last longer than its reference of 20 s"
    )
    assert evaluation["stability"]["stable"] == "marginal"
    assert set(evaluation["spillover"]["spectral_abscissa"]) == {0.0}


def test_the_verdict_without_a_rest_goes_by_tracking(cut_short):
    assert cut_short.ranking == ("mohan-saha-forced",)
    assert explain(cut_short).startswith("Residual errors were not judged: the run of")
    assert "with a tip error of 5.84 mm rms" in explain(cut_short)
    assert "it is an open loop" in explain(cut_short)


def test_open_loops_have_no_bandwidth_for_a_baseline(cut_short):
    assert [e.name for e in cut_short.evaluations] == ["mohan-saha-forced"]


def test_a_motion_within_the_run_is_judged_at_rest(canadarm, forced):
    table = forced.reference.table() | {"duration": [9.0, 9.0, 9.0]}
    result = compare(canadarm, [variant(forced, reference=table)], truth_basis=TRUTH)
    evaluation = result.evaluations[0]

    assert evaluation.no_rest is None
    assert evaluation.residual.tip_error_max > 1e-3
    assert explain(result).startswith("No stable design settles in its run. The best is variant")


@pytest.mark.slow
def test_open_and_closed_loops_stand_side_by_side(make):
    # the open loop's run ends with its motion; the closed one's goes on, and is ranked before it
    build, arm = make["design"], make["single"]()
    opened = build([0.0], [1.0], "feedforward", loop={"duration": 0.5})
    closed = variant(build([0.0], [1.0]), name="closed")
    result = compare(arm, [opened, closed], truth_basis=BasisChoice(order=1))

    assert [e.method for e in result.evaluations] == ["feedforward", "decoupling", "joint-pd"]
    assert result.ranking[-1] == "trial"
    assert "error of trial was not judged: the run of 0.5 s does not last" in explain(result)


def test_a_reference_that_never_rests_is_judged_on_the_way(make):
    design = make["design"]([0.0], [2.0], kind="spin-up", duration=1.0, loop={"duration": 1.5})
    verdict = evaluate(make["close"](make["single"](), design, order=1))

    assert verdict.no_rest == "the reference never comes to rest"
    assert verdict.residual is None
    late = verdict.trajectory.tip_error[verdict.trajectory.t > 1.0].max()
    assert verdict.tracking.tip_error_max >= late > 0
