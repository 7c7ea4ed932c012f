"""Sentences of tuning: what it cost, and of which loop something is proven."""

from dataclasses import replace

import numpy as np
import pytest

import flexctl
from flexctl.model import load_design
from flexctl.search.tuning.record import Constraint, Tuning
from flexctl.search.tuning.requirements import read_objective, read_requirement
from tests.verdict_record import evaluation
from tests.view.words.test_friction import sticks

FIGURES = {
    "residual.settling_time": 0.5,
    "residual.tip_error_max": 2e-3,
    "stability.min_damping_ratio": 0.1,
    "stability.spectral_abscissa": -1.0,
    "margins.disk": 0.8,
    "stiffness.exact.path_alpha_upper": 0.3,
    "friction.sticking_offset": np.nan,
}


@pytest.fixture
def tuned():
    """A tuning that found other gains, in all figures as good as the first."""
    design = load_design("hub-pd")
    return Tuning(
        model="arm",
        design=design,
        tuned=design.model_copy(update={"name": "hub-pd-tuned"}),
        before=evaluation("hub-pd"),
        after=evaluation("hub-pd-tuned"),
        values={},
        free=(),
        untied=False,
        over={},
        quantile=None,
        scaled=frozenset(),
        objective=read_objective("stability.spectral_abscissa"),
        objective_before=-1.0,
        objective_after=-2.0,
        constraints=(),
        feasible=True,
        conflict=(),
        starts=(),
        arms=({},),
        unseen=None,
        evaluations=3,
        seconds=1.0,
        judged_on=({},),
        worst_before=FIGURES,
        worst_after=FIGURES,
        eigenvalues=np.zeros((0, 2), dtype=complex),
        certificate=flexctl.certify([[0.0, 1.0], [-1.0, -0.2]]),
    )


def with_figures(tuned, key, was, now):
    """The same tuning with other values of one figure, and no worse ones otherwise."""
    return replace(tuned, worst_before=FIGURES | {key: was}, worst_after=FIGURES | {key: now})


def test_the_proof_is_said_to_be_of_the_linear_loop(tuned):
    said = flexctl.explain(tuned)
    assert "Of the linear loop, at rest at the end of the motion: proven in interval" in said
    assert "dry friction" not in said


def test_with_dry_friction_the_proof_leaves_it_out_and_the_ringing_is_said(tuned):
    after = sticks()
    ringing = replace(after.friction, rings=-0.104 + 86.8j)
    said = flexctl.explain(replace(tuned, after=replace(after, friction=ringing)))
    assert "Of the linear loop without dry friction, at rest at the end" in said
    assert "Dry friction may hold the joints there; then the links go on vibrating at 86.8 " in said
    assert "with a damping ratio of 0.12 %" in said


def test_well_damped_ringing_is_not_worth_a_word(tuned):
    after = sticks()
    damped = replace(after.friction, rings=-20.0 + 86.8j)
    said = flexctl.explain(replace(tuned, after=replace(after, friction=damped)))
    assert "go on vibrating" not in said


@pytest.mark.parametrize(
    ("key", "was", "now", "words"),
    [
        (
            "residual.settling_time",
            0.991,
            np.inf,
            "settling time beyond the end of this run (was 0.991 s)",
        ),
        ("margins.disk", 1.26, 0.6, "disk margin 0.6 (was 1.26)"),
        ("stability.min_damping_ratio", 0.5, 0.02, "smallest damping ratio 2 % (was 50 %)"),
        ("stiffness.exact.path_alpha_upper", np.inf, 0.2, "20 % (was no limit)"),
        ("residual.tip_error_max", 1e-3, np.nan, "motion none (was 1 mm)"),
    ],
)
def test_what_got_clearly_worse_is_said(tuned, key, was, now, words):
    said = flexctl.explain(with_figures(tuned, key, was, now))
    assert "Worse than before: " in said
    assert words in said


@pytest.mark.parametrize(
    ("key", "was", "now"),
    [
        ("margins.disk", 0.6, 1.26),
        ("margins.disk", 1.0, 0.95),  # less than a tenth
        ("friction.sticking_offset", 0.0, 1e-15),  # rounding
        ("residual.settling_time", np.inf, 0.9),
        ("residual.settling_time", np.inf, np.inf),
        ("residual.settling_time", np.nan, np.nan),
        ("stability.spectral_abscissa", -2.0, -0.5),  # the objective has its own sentence
    ],
)
def test_what_is_better_or_about_the_same_is_not(tuned, key, was, now):
    assert "Worse than before" not in flexctl.explain(with_figures(tuned, key, was, now))


def test_a_limit_has_its_own_sentence(tuned):
    limit = Constraint(
        requirement=read_requirement("margins.disk>=0.3"),
        before=1.26,
        value=0.6,
        met=True,
        violation=0.0,
    )
    found = with_figures(tuned, "margins.disk", 1.26, 0.6)
    assert "Worse than before" not in flexctl.explain(replace(found, constraints=(limit,)))


def test_a_design_that_has_settled_when_the_motion_ends_cannot_settle_sooner(tuned):
    same = replace(
        tuned,
        tuned=tuned.design,
        objective=read_objective("residual.settling_time"),
        objective_before=0.0,
        objective_after=0.0,
    )
    said = flexctl.explain(same)
    assert "no design settles sooner. Minimise another metric" in said
    assert "Nothing better" not in said
