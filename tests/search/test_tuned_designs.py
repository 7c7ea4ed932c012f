"""Tuned designs of the catalogue: best of their arms in what they were tuned for, limits kept."""

from functools import cache

import pytest

from flexctl import compare
from flexctl.model import BasisChoice, apply_settings, load_design
from flexctl.model.lookup import find, list_designs
from flexctl.search.tuning.requirements import read_objective, read_requirement, worst
from flexctl.verdict import metrics, unstable_orders

DESIGNS = {e.name: load_design(e.name) for e in list_designs()}
TUNED = [name for name, design in DESIGNS.items() if design.tune]
RRP = "rrp-composite-decay-tuned"


@cache
def verdicts(model):
    """Evaluations by name of the designs of an arm, on the truth that its file names."""
    own = [d for d in DESIGNS.values() if d.model == model and not d.reference.torque]
    found = compare(model, own, baseline=False)
    return {e.name: e for e in found.evaluations}


def objective(name, evaluation):
    return read_objective(DESIGNS[name].tune.minimise).value(metrics(evaluation))


@pytest.mark.slow
@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_design_is_better_in_its_objective_than_all_hand_made_ones(name):
    found = verdicts(DESIGNS[name].model)
    others = []
    if name == "vertical-2r-composite-tuned":  # a slower motion than that of the shaped design
        others = [key for key in found if DESIGNS[key].reference.shaper]
    hand_made = [objective(name, e) for key, e in found.items() if key not in (*TUNED, *others)]

    assert hand_made
    assert objective(name, found[name]) < min(hand_made)


@pytest.mark.slow
@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_design_keeps_the_limits_of_its_file(name):
    known = metrics(verdicts(DESIGNS[name].model)[name])
    limits = [read_requirement(text) for text in DESIGNS[name].tune.subject_to]

    assert len(limits) > 1
    assert {str(one): one.violation(known) for one in limits} == {str(one): 0.0 for one in limits}


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_design_says_how_it_was_made_and_from_what(name):
    made, begun = find("designs", name).read_text(encoding="utf-8").splitlines()[:2]
    start = begun.removeprefix("# From ").split(",")[0]

    assert made.startswith(f"# Made by: flexctl tune {DESIGNS[name].model} {start} ")
    assert DESIGNS[start].tune is None
    assert name == f"{start}-tuned"


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.8, 0.9, 1.1, 1.2])
def test_the_tuned_rrp_design_bears_other_stiffness_of_the_arm(factor, rrp_arm):
    true_arm = apply_settings(rrp_arm, [f"link{k}.EI=*{factor}" for k in (2, 3)])
    (one,) = compare(rrp_arm, [RRP], true_arm=true_arm, baseline=False).evaluations
    known = metrics(one)

    assert one.failed is None
    assert known["stability.stable"] is True
    assert known["stability.path_spectral_abscissa"] < 0
    assert known["residual.settling_time"] < 0.196
    assert worst("margins.gain_db", known) >= 3
    assert worst("margins.phase_deg", known) >= 20
    assert unstable_orders(one) == []


@pytest.mark.slow
@pytest.mark.parametrize("order", [5, 6, 7, 8, 10])  # 48 gauges: 5, 7 and 10 do not divide them
def test_the_tuned_rrp_design_settles_on_finer_truth_as_on_that_of_its_tuning(order, rrp_arm):
    finer = BasisChoice(kind="elements", order=order)
    (one,) = compare(rrp_arm, [RRP], truth_basis=finer, baseline=False).evaluations
    tuned_on = verdicts("theodore-ghosal-rrp")[RRP]

    assert one.failed is None
    assert one.residual.settling_time == pytest.approx(tuned_on.residual.settling_time, rel=1e-3)
    assert one.stability.stable is True
    assert unstable_orders(one) == []
