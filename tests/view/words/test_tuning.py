"""Sentences of tuning: what it cost, and of which loop something is proven."""

from dataclasses import replace

import numpy as np
import pytest

import flexctl
from flexctl.loop import FinalEquilibrium
from flexctl.model import load_design
from flexctl.search.tuning.free_numbers import FreeNumber, read_free
from flexctl.search.tuning.local_search import Found
from flexctl.search.tuning.record import Constraint, Relief, Tuning, Unseen
from flexctl.search.tuning.requirements import read_objective, read_requirement
from flexctl.verdict import NoiseLevels
from flexctl.view.figures.tuning import plot_tuning
from flexctl.view.tuned_file import history
from flexctl.view.words.metrics import metric_value
from flexctl.view.words.tuning import limit_text
from tests.verdict_record import evaluation
from tests.view.words.test_friction import sticks

FIGURES = {
    "residual.settling_time": 0.5,
    "residual.tip_error_max": 2e-3,
    "stability.min_damping_ratio": 0.1,
    "stability.spectral_abscissa": -1.0,
    "margins.gain_db": 8.0,
    "margins.phase_deg": 45.0,
    "margins.disk": 0.8,
    "margins.common_delay_seconds": 5e-3,
    "margins.min_sampling_rate": 50.0,
    "margins.sensors.disk": np.nan,
    "stiffness.exact.path_alpha_upper": 0.3,
    "noise.tip_rms": np.nan,
    "noise.torque_rms": np.nan,
    "effort.peak": 2.0,
    "effort.energy": 3.0,
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
        counted_before=(FIGURES,),
        counted_after=(FIGURES,),
        eigenvalues=np.zeros((0, 2), dtype=complex),
        certificate=flexctl.certify([[0.0, 1.0], [-1.0, -0.2]]),
    )


def with_figures(tuned, key, was, now):
    """The same tuning with other values of one figure, and no worse ones otherwise."""
    return replace(tuned, worst_before=FIGURES | {key: was}, worst_after=FIGURES | {key: now})


def kept(text, before, value, **more):
    """A limit that is met, with its metric before and after."""
    known = {"requirement": read_requirement(text), "before": before, "value": value}
    return Constraint(**known, met=True, violation=0.0, **more)


def test_the_proof_is_said_to_be_of_the_linear_loop(tuned):
    said = flexctl.explain(tuned)
    assert "Of the linear loop, at rest at the end of the motion: proven in interval" in said
    assert "dry friction" not in said


def test_with_dry_friction_the_proof_leaves_it_out_and_the_ringing_is_said(tuned):
    after = sticks()
    ringing = replace(after.friction, rings=-0.104 + 86.8j)
    said = flexctl.explain(replace(tuned, after=replace(after, friction=ringing)))
    assert "Of the linear loop without dry friction, at rest at the end" in said
    assert "Dry friction may hold the joints there; then the arm goes on vibrating at 86.8 " in said
    assert "with a damping ratio of 0.12 %" in said


def test_ringing_that_only_round_off_damps_is_undamped(tuned):
    after = sticks()
    for rate in (5e-14, -5e-14):
        ringing = replace(after.friction, rings=rate + 86.8j)
        said = flexctl.explain(replace(tuned, after=replace(after, friction=ringing)))
        assert "goes on vibrating at 86.8 rad/s, undamped" in said


def test_well_damped_ringing_is_not_worth_a_word(tuned):
    after = sticks()
    damped = replace(after.friction, rings=-20.0 + 86.8j)
    said = flexctl.explain(replace(tuned, after=replace(after, friction=damped)))
    assert "on vibrating" not in said


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
        ("margins.common_delay_seconds", 8e-3, 2e-3, "2 ms (was 8 ms)"),
        ("margins.sensors.disk", 0.208, 0.0083, "0.0083 (was 0.208)"),
        ("margins.gain_db", np.inf, 7.0, "gain margin 7 dB (was no limit)"),
        ("noise.tip_rms", 1e-4, 3e-4, "rms tip motion by noise 0.3 mm (was 0.1 mm)"),
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
        ("margins.gain_db", np.inf, 14.0),  # ample, whatever it was
        ("residual.settling_time", np.inf, 0.9),
        ("residual.settling_time", np.inf, np.inf),
        ("residual.settling_time", np.nan, np.nan),
        ("stability.spectral_abscissa", -2.0, -0.5),  # the objective has its own sentence
    ],
)
def test_what_is_better_or_about_the_same_is_not(tuned, key, was, now):
    assert "Worse than before" not in flexctl.explain(with_figures(tuned, key, was, now))


@pytest.mark.parametrize(
    ("key", "values", "nearby", "said"),
    [
        ("residual.settling_time", (1.0, 0.4), (0.45, 0.8), "settling time is 0.8 s"),
        ("residual.settling_time", (1.0, 0.4), (0.45, 0.6), ""),  # less than half of the gain
        ("residual.settling_time", (1.0, 0.4), (0.45, np.inf), "the tip does not settle"),
        ("residual.settling_time", (np.inf, 0.4), (0.45, 0.7), "settling time is 0.7 s"),
        ("residual.settling_time", (np.inf, 0.4), (0.45, 0.5), ""),
        ("residual.settling_time", (np.inf, 0.0), (0.0, 1e-3), ""),
        ("effort.energy", (3.0, 2.0), (2.0, np.inf), "there is no run to judge it by"),
        ("stability.min_damping_ratio", (-0.1, -0.7), (-0.6, -0.2), "damping ratio is 20 %"),
    ],
)
def test_a_number_slightly_off_that_loses_what_was_gained_is_named(
    tuned, key, values, nearby, said
):
    before, after = values
    changed = replace(
        tuned,
        objective=read_objective(key),
        objective_before=before,
        objective_after=after,
        nearby=dict(zip(("gains.Gp", "gains.Gv"), nearby, strict=True)),
    )
    words = flexctl.explain(changed)
    assert ("It is sensitive: with gains.Gv 1 % off, " in words) == bool(said)
    assert said in words


def test_where_nothing_better_was_found_the_start_is_warned_of(tuned):
    after = replace(tuned.after, margins=replace(tuned.after.margins, disk=0.1))
    rest = FinalEquilibrium(
        exists=True,
        joint=np.zeros(1),
        offset=np.array([2e-3]),
        tip_offset=0.01,
        holding_torque=np.zeros(1),
        limit=np.array([np.inf]),
    )
    same = replace(
        tuned,
        tuned=tuned.design,
        after=replace(after, rest=rest),
        objective=read_objective("residual.settling_time"),
        objective_before=np.inf,
        objective_after=np.inf,
    )
    said = flexctl.explain(same)
    longer = "Take a longer run (loop.duration) or another metric, such as residual.tip_error_max."
    assert f"settling time never. {longer}" in said
    better = flexctl.explain(replace(same, tuned=tuned.tuned, objective_before=np.inf))
    assert f"{tuned.tuned.name} does not settle within its run (nor before)." in better
    assert longer in better
    assert "its margins are thin (disk 0.1)" in said
    assert "its tip comes to rest 10 mm from its reference" in said


def test_nothing_is_said_to_be_proven_of_a_loop_that_is_not_stable(tuned):
    unstable = replace(tuned.after.stability, stable=False)
    certificate = flexctl.certify([[2.0]])
    after = replace(tuned.after, stability=unstable)
    said = flexctl.explain(replace(tuned, after=after, certificate=certificate))
    assert "may still be stable" not in said
    assert "Of the linear loop" not in said


def test_what_speaks_against_the_tuned_design_is_said_as_compare_says_it(tuned):
    thin = replace(tuned.after.margins, disk=0.1)
    said = flexctl.explain(replace(tuned, after=replace(tuned.after, margins=thin)))
    assert "Warning: " in said
    assert "its margins are thin (disk 0.1)" in said


def test_poses_that_are_unstable_are_said_once(tuned):
    rates = np.array([-3.0, 2.0, -2.0])
    stability = replace(tuned.after.stability, path_abscissa=rates)
    said = flexctl.explain(replace(tuned, after=replace(tuned.after, stability=stability)))
    assert "unstable or without equilibrium at 1 of 3 poses" in said
    assert "Warning: " not in said


def test_verdicts_under_tuned_noise_are_not_compared(tuned):
    noise = NoiseLevels(tip_rms=1e-3, torque_rms=np.ones(1))
    free = read_free(load_design("hub-lqg"), ["observer.noise.tip"], joints=1).numbers
    worse = with_figures(tuned, "noise.tip_rms", 1e-4, 1e-3)
    values = {one.name: (one.start, 2 * one.start) for one in free}
    after = replace(tuned.after, noise=noise)
    said = flexctl.explain(replace(worse, free=free, values=values, after=after))
    assert "observer.noise was tuned" in said
    assert "Worse than before" not in said


def search(objective, status="stationary", violation=0.0):
    return Found(
        u=np.zeros(1),
        objective=objective,
        violation=violation,
        stationarity=0.5,
        status=status,
        evaluations=3,
    )


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        (
            (search(-2.0, "limit"),),
            "before it reached a minimum; more (--evaluations) may",
        ),
        (
            (search(-2.0, "stalled"),),
            "stalled before it reached a minimum; more starts",
        ),
        (
            (search(-2.0), search(-1.5)),
            "2 of its searches ended between -2 1/s and -1.5 1/s; more starts (--starts) may",
        ),
    ],
)
def test_a_search_that_may_not_have_reached_the_best_says_so(tuned, starts, words):
    assert words in flexctl.explain(replace(tuned, starts=starts))


def test_searches_that_agree_and_those_that_break_limits_are_not_told(tuned):
    starts = (search(-2.0), search(-1.99), search(-9.0, "stalled", violation=0.1))
    said = flexctl.explain(replace(tuned, starts=starts))
    assert "searches ended" not in said
    assert "minimum" not in said


def test_searches_of_earlier_rounds_are_not_compared(tuned):
    # these watched fewer arms: their objective is that of another problem
    starts = (replace(search(-2.0), round=1), search(-9.0))
    assert "searches ended" not in flexctl.explain(replace(tuned, starts=starts))


def test_torque_limits_that_are_kept_now_are_told(tuned):
    for was, said in ((False, True), (True, False)):
        limit = kept("effort.peak<=limits", 12.0, 11.9, was_met=was)
        told = flexctl.explain(replace(tuned, constraints=(limit,)))
        assert ("Kept now, and not before: peak command" in told) == said


@pytest.mark.parametrize(
    ("text", "unit", "words"),
    [
        ("effort.peak>=5", "N", "at least 5 N"),
        ("effort.peak>5", "N", "more than 5 N"),
        ("effort.peak<=5", "A", "at most 5 A"),
        ("effort.peak<5", "A", "less than 5 A"),
        ("effort.peak<=limits", "N m", "within the torque limits"),
        ("effort.peak<=limits", "N", "within the force limits"),
        ("effort.peak<=limits", "A", "within the current limits"),
        ("nominal.effort.peak<=limits", "V", "within the voltage or current limits on the nominal"),
        ("effort.peak<=limits", "N m or V", "within the limits of the actuators"),
    ],
)
def test_limits_are_told_by_their_sign_and_the_unit_of_the_commands(text, unit, words):
    assert limit_text(read_requirement(text), {"effort.peak": unit}).startswith(words)


def test_limits_that_an_unstable_start_kept_are_not_told_as_new(tuned):
    limit = kept("margins.gain_db>=6", 9.0, 8.0, was_met=False)
    unstable = evaluation("hub-pd", stability=replace(tuned.before.stability, stable=False))
    told = flexctl.explain(replace(tuned, before=unstable, constraints=(limit,)))
    assert "Kept now, by a loop that is stable: gain margin at least 6 dB" in told
    assert "not before" not in told


def test_a_torque_limit_that_is_kept_is_no_reason_of_an_unstable_loop(tuned):
    limits = [("effort.peak<=limits", 0.0, 3.8), ("margins.gain_db>=6", 0.5, 3.0)]
    known = tuple(
        Constraint(
            requirement=read_requirement(text), before=4.0, value=x, met=False, violation=beyond
        )
        for text, beyond, x in limits
    )
    told = flexctl.explain(replace(tuned, constraints=known, feasible=False))
    assert "Not kept: gain margin 3 dB, to be at least 6 dB." in told


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((0.5, -1.0), "It is unstable on another model of the arm, of 6 elements per link (spill"),
        ((0.5, 0.2), "It is unstable on other models of the arm, of 6 and 8 elements per link"),
        ((np.nan, -1.0), "It has no equilibrium at its reference on another model of the arm"),
    ],
)
def test_models_without_an_equilibrium_are_not_unstable(tuned, rates, words):
    stability = evaluation("hub-pd-tuned").stability
    worse = replace(stability, abscissae=(*stability.abscissae[:-2], *rates))
    lost = replace(tuned, after=evaluation("hub-pd-tuned", stability=worse), feasible=False)
    told = flexctl.explain(lost)
    assert words in told
    assert told.count("per link") == 1
    assert ("unstable" in told) == np.isfinite(rates[0])
    assert f"Warning: {words[0].lower()}{words[1:]}" in " ".join(history(lost, ""))


@pytest.mark.parametrize(
    ("goal", "value", "words"),
    [
        ("margins.gain_db", -6.0, "; on 90 % of them gain margin is at least 6 dB; the worst"),
        ("margins.gain_db", -np.inf, "; on 90 % of them gain margin has no limit; the worst"),
        ("effort.energy", 2.0, "; on 90 % of them energy is at most 2 J; the worst"),
        ("effort.energy", np.inf, "; energy has a finite value on less than 90 % of them; the"),
        ("residual.settling_time", np.inf, "; the tip settles on less than 90 % of them; the"),
        ("nominal.effort.energy", -np.inf, "limits are kept on 19; the worst is"),
    ],
)
def test_a_share_of_unseen_arms_has_the_objective_or_better(tuned, goal, value, words):
    arm = {"truth.payload.mass": 2.0}
    unseen = Unseen(n=20, met=19, worst=arm, violation=0.1, lost=None, objective=value)
    gain = kept("margins.gain_db>=6", 8.0, 7.0)
    parts = {"objective": read_objective(goal), "quantile": 0.9, "unseen": unseen}
    assert words in flexctl.explain(replace(tuned, constraints=(gain,), **parts))
    without = flexctl.explain(replace(tuned, constraints=(), **parts))
    assert "had not seen, the loop is stable and its run succeeds on 19; " in without


@pytest.mark.parametrize(
    ("goal", "value", "words"),
    [
        ("stiffness.exact.alpha_upper", -np.inf, "with stiffness overestimate"),
        ("residual.settling_time", np.inf, "but does not settle within its run"),
        ("effort.energy", np.inf, "with no value of the objective"),
        ("effort.energy", 2.0, "with energy 2 J"),
    ],
)
def test_what_giving_way_buys_is_of_a_short_search(tuned, goal, value, words):
    limit = read_requirement("margins.gain_db>=6")
    way = Relief(requirement=limit, violation=0.0, worst=None, objective=value, evaluations=40)
    lost = replace(tuned, objective=read_objective(goal), feasible=False, conflict=(way,))
    told = flexctl.explain(lost)
    assert "Without gain margin at least 6 dB: a short search, not verified, keeps" in told
    assert words in told
    assert ("no limit" in told) == (value == -np.inf)


def test_a_limit_has_its_own_sentence(tuned):
    limit = kept("margins.disk>=0.3", 1.26, 0.6)
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
    assert "Nothing clearly better" not in said


@pytest.mark.parametrize(
    ("widest", "words"),
    [((), "Wider bounds may give more"), (("upper",), "The design allows no wider bounds")],
)
def test_a_number_at_its_bound_says_whether_there_is_more(tuned, widest, words):
    one = FreeNumber(
        key="gains.Gv", entries=(), lower=1.0, upper=9.0, start=6.0, widest=frozenset(widest)
    )
    said = flexctl.explain(replace(tuned, free=(one,), values={one.name: (6.0, 9.0)}))
    assert f"{words}: {one.name} at its upper bound" in said


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("margins.gain_db", np.inf, "no limit"),
        ("stiffness.exact.alpha_lower", -np.inf, "no limit"),
        ("effort.energy", np.inf, "not known"),
        ("noise.torque_rms", np.inf, "infinite"),
        ("friction.sticking_offset", np.inf, "infinite"),
        ("friction.amplitude", np.inf, "infinite"),
        ("friction.amplitude", np.nan, "none"),
        ("friction.held_damping_ratio", np.inf, "nothing rings"),
        ("residual.settling_time", np.inf, "never"),
        ("effort.energy", np.nan, "none"),
    ],
)
def test_what_has_no_value_is_no_limit_of_margins_alone(key, value, words):
    assert metric_value(key, value) == words


def test_a_figure_without_eigenvalues_says_so(tuned):
    # neither start nor end has an equilibrium
    figure = plot_tuning(replace(tuned, eigenvalues=np.zeros((1, 0), dtype=complex)))

    assert "The loop has no eigenvalues here." in {
        text.get_text() for axes in figure.axes for text in axes.texts
    }
