"""Sentences of a verdict checked against the record they came from, whatever their words are."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from flexctl.view.words.verdict import evaluation_words
from tests.verdict_record import (
    SETTLED,
    THIN,
    changed,
    evaluation,
    of,
    read,
    resting,
    stiffness,
    verdict,
)


def test_the_best_is_named_first_with_its_own_figures_and_the_next_with_its():
    alpha, beta, gamma = (evaluation(n, k) for n, k in (("alpha", 1), ("beta", 1.37), ("gamma", 2)))
    words, places = read([alpha, beta, gamma])

    assert words.startswith("Recommended: alpha. After the motion its tip error is at most 6.73 mm")
    assert words.index("alpha") < words.index("beta")
    assert "but" not in words
    assert of(places, "alpha") == SETTLED
    assert of(places, "beta") == {"residual.tip_error_max"}
    assert not of(places, "gamma")


def test_a_design_alone_has_no_next():
    _, places = read([evaluation("alpha")])

    assert of(places, "alpha") == SETTLED


def test_a_design_that_is_settled_at_once_says_no_time():
    alpha = evaluation("alpha")
    alpha = replace(alpha, residual=replace(alpha.residual, settling_time=0.0))
    words, places = read([alpha])

    assert of(places, "alpha") == {"residual.tip_error_max"}
    assert "settled" in words


def unsettled(e):
    return replace(e, residual=replace(e.residual, settling_time=None))


def test_of_designs_that_do_not_settle_the_error_that_is_left_is_said():
    alpha, beta = unsettled(evaluation("alpha")), unsettled(evaluation("beta", 1.37))
    words, places = read([alpha, beta])

    slow = {"residual.tip_error_max", "residual.tip_error_end", "stability.spectral_abscissa"}
    assert of(places, "alpha") == slow
    assert of(places, "beta") == {"residual.tip_error_max"}
    assert words.index("alpha") < words.index("beta")
    assert "not settled" not in words


def test_the_words_of_one_loop_speak_of_no_others():
    alpha = evaluation("alpha")
    without = replace(alpha, residual=None, no_rest="the reference never comes to rest")

    assert explain(alpha).startswith("alpha: After the motion its tip error is at most 6.73 mm")
    assert explain(unsettled(alpha)).startswith(
        "alpha does not settle in its run: after the motion"
    )
    assert explain(without).startswith("alpha: residual errors were not judged: the reference")
    for e in (alpha, unsettled(alpha), without):
        assert not {"design", "best", "recommended"} & set(explain(e).lower().split())


@pytest.mark.parametrize(
    ("share", "blamed"), [(0.5, True), (0.95, False), (1.05, False), (1.5, True)]
)
def test_an_error_that_is_where_the_tip_rests_is_not_blamed_on_a_slow_eigenvalue(share, blamed):
    alpha = unsettled(evaluation("alpha"))
    off = replace(resting(), tip_offset=share * alpha.residual.tip_error_end)
    words = verdict([alpha := replace(alpha, rest=off)], [alpha])

    assert ("slowest eigenvalue" in words) == blamed
    assert "its tip comes to rest" in words


def test_a_next_that_does_not_settle_where_the_best_does_is_said_to():
    alpha, beta = evaluation("alpha"), evaluation("beta", 1.37)
    late, never = [alpha, unsettled(beta)], [unsettled(alpha), beta]

    assert "not settled" in verdict(late, late)
    assert "not settled" not in verdict(never, never)


@pytest.mark.parametrize(("share", "said"), [(0.5, True), (0.89, True), (0.9, False), (2, False)])
def test_a_next_that_settles_well_before_the_best_is_said_to(share, said):
    alpha, beta = evaluation("alpha"), evaluation("beta", 1.37)
    beta = replace(beta, residual=replace(beta.residual, settling_time=0.439 * share))
    places = read([alpha, beta])[1]

    assert ("residual.settling_time" in of(places, "beta")) == said


@pytest.mark.parametrize("which", [0, 1])
def test_nothing_settles_sooner_than_what_never_does(which):
    pair = [evaluation("alpha"), evaluation("beta", 0.3)]
    pair[which] = unsettled(pair[which])

    assert "residual.settling_time" not in of(read(pair)[1], "beta")


def turning(e):
    return replace(e, residual=None, no_rest="the reference never comes to rest")


def test_without_a_rest_designs_are_compared_by_their_tracking():
    alpha, beta = turning(evaluation("alpha")), turning(evaluation("beta", 1.37))
    words, places = read([alpha, beta])

    assert "the reference never comes to rest" in words
    assert of(places, "alpha") == of(places, "beta") == {"tracking.tip_error_rms"}
    thin = replace(alpha, margins=replace(alpha.margins, **THIN))
    words, places = read([thin, beta])
    assert words.index("the reference never comes to rest") < words.index("alpha")
    assert places.index("alpha.tracking.tip_error_rms") < places.index("alpha.margins.disk")
    assert places.index("alpha.margins.disk") < places.index("beta.tracking.tip_error_rms")


def test_what_is_not_judged_at_rest_beside_one_that_is_says_why():
    alpha, beta = evaluation("alpha"), turning(evaluation("beta", 1.37))
    words, places = read([alpha, beta])
    assert "the reference never comes to rest" in words[words.index("beta") :]
    assert not of(places, "beta")

    words, _ = read([beta], [beta, alpha])  # the best has none either: said once already
    assert words.count("the reference never comes to rest") == 1


def test_a_failed_design_is_named_and_its_figures_are_not():
    alpha, beta = evaluation("alpha"), evaluation("beta", 1.37, failed="the run ends early")
    words, places = read([alpha], [alpha, beta])

    assert "beta" in words
    assert not of(places, "beta")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "what that model leaves out destabilises it (spillover)"),
        ({"same_arm": False}, "the true arm differs from that model"),
    ],
)
def test_an_unstable_design_says_what_differs_from_its_own_stable_model(changes, said):
    own = evaluation("beta")
    own = replace(own.stability, stable=False, design_abscissa=-1.3, **changes)

    words = evaluation_words(evaluation("beta", stability=own))

    assert f"On its own model, of 2 modes per link and plane, it is stable: {said}." in words


def test_an_unstable_design_says_that_it_is_so_on_its_own_model_too():
    own = replace(evaluation("beta").stability, stable=False, design_abscissa=166.0)

    words = evaluation_words(evaluation("beta", stability=own))

    assert "It is unstable on its own model, of 2 modes per link and plane, too." in words


def test_an_unstable_design_says_how_fast_it_grows():
    alpha = evaluation("alpha")
    beta = changed(evaluation("beta", 1.37), poles=np.array([-3.0, 0.713]), stable=False)
    words, places = read([alpha], [alpha, beta])

    assert "unstable" in words[words.index("beta") :]
    assert of(places, "beta") == {"stability.spectral_abscissa"}


def test_without_any_that_ranks_no_design_is_recommended():
    beta = changed(evaluation("beta", 1.37), poles=np.array([-3.0, 0.713]), stable=False)
    words = verdict([], [beta])

    assert words.startswith("No design can be recommended")
    assert "beta is unstable" in words


def test_one_that_is_not_known_to_fail_may_yet_hold_the_arm():
    unknown = evaluation("alpha", tracking=None, not_computed={"tracking": "out of steps"})
    failed = evaluation("beta", failed="it falls", not_computed={"stability": "no rest"})

    assert verdict([], [failed, unknown]).startswith("No design could be ranked.")
    assert verdict([], [failed]).startswith("No design can be recommended")


# ranking


def key_of(**figures):
    e = evaluation("x")
    residual = replace(e.residual, **{k: v for k, v in figures.items() if k in vars(e.residual)})
    saturated = np.array([0.0, figures.get("saturated", 0.0), 0.0])
    energy, rms = figures.get("energy", 92.0), figures.get("rms", 0.0117)
    e = replace(e, residual=residual, tracking=replace(e.tracking, tip_error_rms=rms))
    return replace(e, effort=replace(e.effort, energy=energy, saturated_seconds=saturated))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # what comes first decides, whatever all that follows says
        ({"tip_error_max": 9.0, "rms": 9.0, "energy": 900.0}, {"settling_time": None}),
        ({"tip_error_max": 9.0, "rms": 9.0, "energy": 900.0}, {"saturated": 0.01}),
        ({"saturated": 0.01, "tip_error_max": 9.0}, {"settling_time": None}),
        ({"rms": 9.0, "energy": 900.0}, {"tip_error_max": 0.00674}),
        ({"energy": 900.0}, {"rms": 0.0118}),
        ({}, {"energy": 92.1}),
        ({"settling_time": 0.9}, {"tip_error_max": 0.00674}),  # time itself is no key
    ],
)
def test_the_ranking_goes_by_its_keys_in_their_order(better, worse):
    assert key_of(**better).rank_key < key_of(**worse).rank_key


def test_without_a_rest_tracking_decides_after_all_that_have_one():
    resting = key_of(rms=9.0, energy=900.0)
    moving, slower = (replace(key_of(rms=r), residual=None) for r in (0.01, 0.02))

    assert resting.rank_key < moving.rank_key < slower.rank_key


def test_one_that_rests_unsettled_and_at_its_limits_is_before_one_without_a_rest():
    resting = key_of(settling_time=None, saturated=0.1)
    moving = replace(key_of(), residual=None)

    assert resting.rank_key < moving.rank_key


@pytest.mark.parametrize("missing", ["tracking", "effort"])
def test_what_did_not_run_has_no_key(missing):
    with pytest.raises(ComputationError, match="the arm falls"):
        _ = evaluation("x", failed="the arm falls", **{missing: None}).rank_key


@pytest.mark.parametrize(
    ("changes", "ranks"),
    [
        ({}, True),
        ({"failed": "the arm falls"}, False),
        ({"stability": None}, False),
        ({"tracking": None}, False),
    ],
)
def test_what_failed_or_is_not_judged_does_not_rank(changes, ranks):
    assert evaluation("x", **changes).ranks is ranks


@pytest.mark.parametrize(("stable", "ranks"), [(True, True), ("marginal", True), (False, False)])
def test_what_is_unstable_does_not_rank(stable, ranks):
    assert changed(evaluation("x"), stable=stable).ranks is ranks


def test_saturation_is_that_of_any_joint():
    assert not key_of().saturates
    assert key_of(saturated=1e-3).saturates
    assert not evaluation("x", effort=None).saturates


def test_the_json_holds_every_figure_under_its_own_key():
    e = evaluation("alpha")
    answer = to_json(e)

    for part in ("tracking", "residual", "effort"):
        for key, value in answer[part].items():
            assert value == np.asarray(getattr(getattr(e, part), key)).tolist()
    for key in ("gain_db", "gain_up_db", "gain_down_db", "phase_deg", "delay_seconds", "disk"):
        assert answer["margins"][key] == np.asarray(getattr(e.margins, key)).tolist()
    assert answer["margins"]["disk_frequency"] == e.margins.disk_frequency
    assert answer["margins"]["min_sampling_rate"] == 347.0
    assert answer["stability"]["spectral_abscissa"] == -2.17
    smallest = 2.17 / (2.17**2 + 31.9**2) ** 0.5
    assert answer["stability"]["min_damping_ratio"] == pytest.approx(smallest, rel=1e-12)
    assert answer["stability"]["path_spectral_abscissa"] == [-3.31, -1.83, -2.57]
    assert answer["stability"]["path_t"] == [0.0, 0.537, 1.079]
    assert answer["stability"]["poles"] == {"re": [-2.17, -2.17, -8.4], "im": [-31.9, 31.9, 0.0]}
    assert answer["stability"]["settles_at_order"] == 4
    assert answer["spillover"]["order"] == [1, 2, 4, 6, 8]
    assert answer["spillover"]["spectral_abscissa"] == [-2.37, -2.19, -2.13, -2.11, -2.09]
    exact = answer["stiffness"]["exact"]
    assert (exact["alpha_upper"], exact["alpha_lower"]) == (0.271, -0.613)
    assert (exact["path_alpha_upper"], exact["path_t"]) == (0.183, 0.811)
    assert (exact["path_alpha_lower"], exact["path_t_lower"]) == (-0.417, 0.233)
    assert (exact["mode"], exact["crossing_frequency"]) == ("link2.y.1", 58.9)
    lemma = answer["stiffness"]["lemma"]
    assert (lemma["lambda_max_H"], lemma["alpha_star"]) == (7.7, 0.0917)
    assert answer["cost"] == {"law_mul": 613, "law_add": 487, "law_other": 29}


def test_what_is_infinite_or_unknown_is_null_in_json():
    e = evaluation("alpha", stiffness=stiffness(np.inf, np.nan))
    e = replace(e, margins=replace(e.margins, gain_up_db=np.array([np.inf, 11.6, 16.9])))
    answer = to_json(e)

    assert answer["margins"]["gain_up_db"] == [None, 11.6, 16.9]
    assert answer["margins"]["gain_db"] == [9.7, 11.6, 12.8]
    exact = answer["stiffness"]["exact"]
    assert exact["alpha_upper"] is exact["path_alpha_upper"] is None


# what is said in the same breath, and what is not known


def test_a_design_that_rests_off_its_reference_says_so_in_the_same_sentence():
    turning = evaluation("alpha", rest=resting(sliding=frozenset()))
    joints = {f"rest.offset.{k}" for k in range(3)}
    assert of(read([turning])[1], "alpha") == SETTLED | joints | {"rest.tip_offset"}

    words = verdict([alpha := evaluation("alpha", rest=resting())], [alpha])
    assert "joint1 5.17 mrad, joint2 -0.171 rad and joint3 2.33 mm" in words
    assert "Recommended: alpha." in words
    assert ", but its tip comes to rest 32.9 mm from its reference" in words


@pytest.mark.parametrize(("off", "said"), [(2e-5, True), (0.9e-5, False)])
def test_an_offset_far_within_the_settling_band_is_not_dwelt_on(off, said):
    alpha = evaluation("alpha", rest=resting(tip_offset=off), settle_within=1e-4)
    assert ("from its reference" in verdict([alpha], [alpha])) == said


def at_limits(e, *seconds):
    return replace(e, effort=replace(e.effort, saturated_seconds=np.array(seconds)))


def test_a_design_at_its_torque_limits_says_how_long_in_the_same_sentence():
    alpha, beta = at_limits(evaluation("alpha"), 0.0, 0.283, 0.0), evaluation("beta", 1.37)
    words, places = read([alpha, at_limits(beta, 0.117, 0.0, 0.0)])

    assert of(places, "alpha") == SETTLED | {"effort.saturated_seconds.1"}
    assert of(places, "beta") == {"residual.tip_error_max", "effort.saturated_seconds.0"}
    assert "0.283 s at the torque limit of joint2, which eigenvalues and margins do not" in words
    assert "0.117 s at the torque limit of joint1" in words[words.index("Second: beta") :]
    assert words.index("0.283") < words.index("Second")


def test_limits_are_named_by_what_the_joints_are_driven_with():
    alpha = at_limits(evaluation("alpha"), 0.117, 0.283, 0.291)
    alpha = replace(alpha, effort=replace(alpha.effort, units=("N m", "N", "A")))
    words = verdict([alpha], [alpha])

    assert "at the torque limit of joint1" in words
    assert "at the force limit of joint2" in words
    assert "at the current limit of joint3" in words


def test_joints_that_nothing_drives_in_a_run_are_named():
    alpha, beta = evaluation("alpha"), evaluation("beta", 1.37)
    idle = replace(alpha, effort=replace(alpha.effort, peak=alpha.effort.peak * [0.0, 1.0, 1.0]))

    assert ", but in its run joint1 receives no torque" in read([idle])[0]
    assert "decays at" not in read([unsettled(idle)])[0]
    assert "receives no torque" not in read([alpha])[0]
    still = replace(idle, tracking=replace(idle.tracking, joint_error_max=np.zeros(3)))
    assert "receives no torque" not in read([still, beta])[0]


def test_what_fails_says_why():
    why = "the actuators cannot hold the arm at rest: joint1 needs 21.6 N m, its limit is 20 N m"
    assert f"beta failed: {why}." in verdict([], [evaluation("beta", failed=why)])


def test_what_was_not_computed_is_said_with_its_reason_and_is_no_failure():
    missing = {"margins": "singular", "stiffness": "singular"}
    alpha = evaluation("alpha", margins=None, stiffness=None, not_computed=missing)
    words = verdict([alpha], [alpha])
    assert "Warning: not computed: gain, phase, delay and disk margins and the stiffness" in words
    assert "(singular)" in words

    beta = evaluation("beta", tracking=None, not_computed={"tracking": "out of steps"})
    words = verdict([], [beta])
    assert words.startswith("No design could be ranked. beta was not ranked; not computed: track")
    assert "out of steps" in words

    gamma = evaluation("gamma", stability=None, not_computed={"stability": "no rest"})
    assert "gamma was not ranked; not computed: stability (no rest)." in verdict(
        [alpha], [alpha, gamma]
    )


def test_lengths_have_a_handy_unit():
    far = evaluation("alpha")
    far = replace(far, residual=replace(far.residual, tip_error_max=2.183))
    none = replace(far, residual=replace(far.residual, tip_error_max=1e-12))
    assert "tip error is at most 2.18 m and" in verdict([far], [far])
    assert "at most less than" not in verdict([none], [none])


def test_a_design_unstable_on_a_finer_truth_is_not_recommended():
    alpha = evaluation("alpha")
    rates = (-2.37, -2.19, -2.13, 0.61, -2.09)
    doubtful = replace(alpha, stability=replace(alpha.stability, abscissae=rates))
    words, _ = read([doubtful])
    assert "not recommended: alpha" in words
    assert "Recommended" not in words
    assert "Recommended: alpha" in read([alpha])[0]


@pytest.mark.parametrize(("ratio", "said"), [(0.9e-4, True), (1.1e-4, False)])
def test_a_loop_that_is_hardly_damped_is_said_to_be(ratio, said):
    alpha = evaluation("alpha")
    pole = 100.0 * np.array([-ratio + 1j, -ratio - 1j])
    nearly = replace(alpha, stability=replace(alpha.stability, poles=pole))
    assert ("nearly undamped" in verdict([nearly], [nearly])) == said
