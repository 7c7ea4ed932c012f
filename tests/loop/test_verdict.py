"""Sentences of a verdict checked against the record they came from, whatever their words are.

Records are made by hand, and no two of their numbers are alike: so every number of a sentence
stands in one place of the record, and that is where it was read.
"""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.loop.evaluation import Evaluation
from flexctl.loop.margin.path_growth import PathGrowth
from flexctl.loop.margins import Margins
from flexctl.loop.performance import Effort, Residual, Tracking
from flexctl.loop.resting import Resting
from flexctl.loop.stability import Stability
from flexctl.loop.verdict import verdict

# tests are no package, so a module of another folder is read by its path
SOURCES = runpy.run_path(str(Path(__file__).parents[1] / "numbers_in_words.py"))["sources"]
DIMENSIONS = {
    "tip_error_max": "m", "tip_error_rms": "m", "tip_error_end": "m", "settling_time": "s",
    "joint_error_max": "rad", "peak": "N m", "rms": "N m", "energy": "J",
    "saturated_seconds": "s", "poles": "1/s", "spectral_abscissa": "1/s",
    "path_spectral_abscissa": "1/s", "path_t": "s", "gain_db": "dB", "gain_up_db": "dB",
    "gain_down_db": "dB", "phase_deg": "deg", "delay_seconds": "s", "common_delay_seconds": "s",
    "disk_frequency": "rad/s",
    "min_sampling_rate": "Hz", "crossing_frequency": "rad/s", "tip_offset": "m",
    "holding_torque": "N m", "limit": "N m", "settle_within": "m", "offset": "rad",
}  # fmt: skip


def evaluation(name, k=1.0, **changes):
    """An evaluation without a caveat; figures of another k are k times as large."""
    stability = Stability(
        poles=-np.array([2.17 * k + 31.9j, 2.17 * k - 31.9j, 8.4 * k]),
        stable=True,
        path_t=np.array([0.0, 0.537, 1.079]),
        path_abscissa=np.array([-3.31, -1.83, -2.57]) * k,
        orders=(1, 2, 4, 6, 8),
        abscissae=tuple(-x * k for x in (2.37, 2.19, 2.13, 2.11, 2.09)),
        settles_at_order=4,
    )
    margins = Margins(
        gain_up_db=np.array([14.3, 11.6, 16.9]) * k,
        gain_down_db=np.array([9.7, 21.2, 12.8]) * k,
        phase_deg=np.array([47.3, 56.1, 39.4]) * k,
        delay_seconds=np.array([0.0191, 0.0133, 0.0277]) * k,
        common_delay_seconds=0.0114 * k,
        disk=0.73 * k,
        disk_frequency=26.3 * k,
    )
    return Evaluation(
        **{
            "name": name, "method": "decoupling", "basis": {"kind": "modes", "order": 2},
            "truth": {"kind": "elements", "order": 4},
            "cost": {"law_mul": 613, "law_add": 487, "law_other": 29}, "assumptions": (),
            "tracking": Tracking(
                joint_error_max=np.array([0.00141, 0.00262, 0.00383]) * k,
                tip_error_max=0.0219 * k, tip_error_rms=0.0117 * k,
            ),
            "residual": Residual(
                tip_error_max=0.00673 * k, settling_time=0.439 * k, tip_error_end=0.000781 * k
            ),
            "effort": Effort(
                peak=np.array([71.0, 52.0, 33.0]) * k, rms=np.array([17.0, 13.0, 9.1]) * k,
                energy=92.0 * k, saturated_seconds=np.zeros(3),
            ),
            "stability": stability, "margins": margins, "min_sampling_rate": 347.0 * k,
            "stiffness": stiffness(0.271, 0.183),
        }
        | changes
    )  # fmt: skip


def stiffness(here, on_the_way, exact=True, proven=True, growth=None):
    """A tolerance of the stiffness at the final pose and on the way; NaN: not known there."""
    end = SimpleNamespace(mode="link2.y.1", frequency=58.9)
    interval = SimpleNamespace(
        alpha_upper=here, alpha_lower=-0.613, upper=end, lower=None, proven=proven
    )
    lemma = SimpleNamespace(lambda_max=7.7, alpha_star=0.0917, basis=None)
    return SimpleNamespace(
        exact=interval if exact else None,
        path_upper=on_the_way,
        path_t=0.811,
        path_proven=proven,
        path_growth=growth,
        lemma=lemma,
    )


def read(ranked, evaluations=None):
    """The words of a verdict and where its numbers stand, as "design.path"."""
    evaluations = evaluations or ranked
    words = verdict(ranked, evaluations)
    record = {e.name: once(e.to_json()) for e in evaluations}
    plain = words
    for e in evaluations:  # what a design or a reason is called holds no numbers of the record
        for said in (e.failed, e.no_rest):
            plain = plain.replace(said, "") if said else plain
    return words, SOURCES(plain, record, DIMENSIONS)


def once(answer):
    """Leave out what stands in the record twice by its nature, as the nearer of two limits."""
    answer.pop("saturated_seconds")
    for part, keys in {"margins": ("gain_up_db", "gain_down_db"), "stability": ("poles",)}.items():
        for key in keys:
            (answer[part] or {}).pop(key, None)
    return answer


def of(places, name):
    return {place.partition(".")[2] for place in places if place.startswith(f"{name}.")}


SETTLED = {"residual.tip_error_max", "residual.settling_time"}


def test_the_best_is_named_first_with_its_own_figures_and_the_next_with_its():
    alpha, beta, gamma = (evaluation(n, k) for n, k in (("alpha", 1), ("beta", 1.37), ("gamma", 2)))
    words, places = read([alpha, beta, gamma])

    assert 0 <= words.index("alpha") < words.index("beta")
    assert of(places, "alpha") == SETTLED
    assert of(places, "beta") == {"residual.tip_error_max"}
    assert not of(places, "gamma")


def test_a_design_alone_has_no_next():
    _, places = read([evaluation("alpha")])

    assert of(places, "alpha") == SETTLED


def unsettled(e):
    return replace(e, residual=replace(e.residual, settling_time=None))


def test_of_designs_that_do_not_settle_the_error_that_is_left_is_said():
    alpha, beta = unsettled(evaluation("alpha")), unsettled(evaluation("beta", 1.37))
    words, places = read([alpha, beta])

    slow = {"residual.tip_error_max", "residual.tip_error_end", "stability.spectral_abscissa"}
    assert of(places, "alpha") == slow
    assert of(places, "beta") == {"residual.tip_error_max"}
    assert words.index("alpha") < words.index("beta")


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


THIN = {"disk": 0.2813, "phase_deg": np.array([17.3, 16.1, 19.4])}


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"disk": 0.2943}, {"disk"}),
        ({"disk": 0.3}, set()),
        ({"phase_deg": np.array([47.3, 16.1, 39.4])}, {"phase_deg.1"}),
        ({"phase_deg": np.array([47.3, 30.0, 39.4])}, set()),
        ({"gain_up_db": np.array([14.3, 5.37, 16.9])}, {"gain_db.1"}),
        ({"gain_down_db": np.array([9.7, 21.2, 5.37])}, {"gain_db.2"}),
        ({"delay_seconds": np.array([0.00173, 0.0133, 0.0277])}, {"delay_seconds.0"}),
        ({"common_delay_seconds": 0.00173}, {"common_delay_seconds"}),
        (THIN, {"disk", "phase_deg.1"}),
    ],
)
def test_thin_margins_are_said_of_the_joint_that_has_least(changes, places):
    alpha = evaluation("alpha")
    alpha = replace(alpha, margins=replace(alpha.margins, **changes))
    words, found = read([alpha])
    joints = {f"joint{int(p[-1]) + 1}" for p in places if p[-1].isdigit()}

    assert {p for p in of(found, "alpha") if p.startswith("margins")} == {
        f"margins.{p}" for p in places
    }
    assert all(joint in words for joint in joints)


@pytest.mark.parametrize(("sample_time", "said"), [(0.01, False), (0.0134, True)])
def test_a_sampled_loop_bears_a_sample_of_delay(sample_time, said):
    alpha = evaluation("alpha")
    margins = replace(alpha.margins, sample_time=sample_time, common_delay_seconds=0.0171)
    places = of(read([replace(alpha, margins=margins)])[1], "alpha")

    assert ("margins.delay_seconds.1" in places) == said


def test_wide_margins_are_not_dwelt_on():
    alpha = evaluation("alpha")
    assert not [p for p in read([alpha])[1] if "margins" in p]
    assert not [p for p in read([replace(alpha, margins=None)])[1] if "margins" in p]


@pytest.mark.parametrize(
    ("here", "way", "expected"),
    [
        (0.0731, 0.0413, "path_alpha_upper"),
        (0.0413, 0.0731, "alpha_upper"),
        (0.0999, 0.31, "alpha_upper"),
        (0.31, 0.0999, "path_alpha_upper"),
        (0.1, 0.31, None),
        (0.31, 0.27, None),
        (np.inf, 0.0413, "path_alpha_upper"),
        (0.0413, np.inf, "alpha_upper"),
        (np.nan, 0.0413, "path_alpha_upper"),
        (0.0413, np.nan, "alpha_upper"),
    ],
)
def test_a_small_stiffness_margin_is_said_where_it_is_smallest(here, way, expected):
    alpha = evaluation("alpha", stiffness=stiffness(here, way))
    places = of(read([alpha])[1], "alpha")
    said = {p.rpartition(".")[2] for p in places if p.startswith("stiffness")} & {
        "alpha_upper",
        "path_alpha_upper",
    }

    assert said == ({expected} if expected else set())


def test_no_stiffness_margin_no_words_of_it():
    for none in (None, stiffness(0.01, 0.01, exact=False)):
        assert not [p for p in read([evaluation("alpha", stiffness=none)])[1] if "stiff" in p]


def changed(e, **changes):
    return replace(e, stability=replace(e.stability, **changes))


def test_growth_along_the_motion_is_said_at_its_largest():
    path = np.array([-3.31, 0.83, 0.57])
    _, places = read([changed(evaluation("alpha"), path_abscissa=path)])
    assert "stability.path_spectral_abscissa.1" in of(places, "alpha")

    for still in (np.array([-3.31, -1.83, -2.57]), np.array([-3.31, 0.0, -2.57])):
        _, places = read([changed(evaluation("alpha"), path_abscissa=still)])
        assert not [p for p in places if "path" in p]


def test_finer_truths_on_which_it_is_unstable_are_named_by_their_order():
    words = verdict([evaluation("zeta")], [evaluation("zeta")])
    assert "elements" not in words

    rates = (2.37, 0.17, -2.13, 0.11, 2.09)  # of orders 1, 2, 4, 6, 8, judged on 4
    alpha = changed(evaluation("alpha"), abscissae=rates)
    words = verdict([alpha], [alpha])
    named = words[: words.index("elements")].rpartition("truth")[2]
    assert [int(x) for x in named.replace(",", " ").split() if x.isdigit()] == [6, 8]
    coarser = changed(evaluation("alpha"), abscissae=(1.0, 1.0, 1.0, -1.0, -1.0))
    assert "elements" not in verdict([coarser], [coarser])
    on_axis = changed(evaluation("alpha"), abscissae=(-1.0, -1.0, -1.0, 0.0, -1.0))
    assert "elements" not in verdict([on_axis], [on_axis])


def test_a_design_that_is_only_marginally_stable_is_said_to_be():
    marginal = changed(evaluation("alpha"), stable="marginal")

    assert "marginal" in verdict([marginal], [marginal])
    assert "marginal" not in verdict([evaluation("alpha")], [evaluation("alpha")])


def test_several_caveats_are_all_said():
    alpha = changed(evaluation("alpha"), path_abscissa=np.array([-3.31, 1.83, 0.57]))
    alpha = replace(alpha, margins=replace(alpha.margins, **THIN), stiffness=stiffness(0.02, 0.3))
    said = read([alpha])[1]
    places = of(said, "alpha")

    assert said.index("alpha.residual.tip_error_max") < said.index("alpha.margins.disk")
    assert places >= SETTLED | {"stability.path_spectral_abscissa.1", "margins.disk"}
    assert "stiffness.exact.alpha_upper" in places


def test_a_failed_design_is_named_and_its_figures_are_not():
    alpha, beta = evaluation("alpha"), evaluation("beta", 1.37, failed="the run ends early")
    words, places = read([alpha], [alpha, beta])

    assert "beta" in words
    assert not of(places, "beta")


def test_an_unstable_design_says_how_fast_it_grows():
    alpha = evaluation("alpha")
    beta = changed(evaluation("beta", 1.37), poles=np.array([-3.0, 0.713]), stable=False)
    words, places = read([alpha], [alpha, beta])

    assert "unstable" in words[words.index("beta") :]
    assert of(places, "beta") == {"stability.spectral_abscissa"}


def test_without_any_that_ranks_no_design_is_recommended():
    beta = changed(evaluation("beta", 1.37), poles=np.array([-3.0, 0.713]), stable=False)
    words = verdict([], [beta])

    assert words.startswith("No design")
    assert "beta" in words


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
    assert key_of(**better).key < key_of(**worse).key


def test_without_a_rest_tracking_decides_after_all_that_have_one():
    resting = key_of(rms=9.0, energy=900.0)
    moving, slower = (replace(key_of(rms=r), residual=None) for r in (0.01, 0.02))

    assert resting.key < moving.key < slower.key


@pytest.mark.parametrize("missing", ["tracking", "effort"])
def test_what_did_not_run_has_no_key(missing):
    with pytest.raises(ComputationError, match="the arm falls"):
        _ = evaluation("x", failed="the arm falls", **{missing: None}).key


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
    answer = e.to_json()

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
    assert (exact["mode"], exact["crossing_frequency"]) == ("link2.y.1", 58.9)
    lemma = answer["stiffness"]["lemma"]
    assert (lemma["lambda_max_H"], lemma["alpha_star"]) == (7.7, 0.0917)
    assert answer["cost"] == {"law_mul": 613, "law_add": 487, "law_other": 29}


def test_what_is_infinite_or_unknown_is_null_in_json():
    e = evaluation("alpha", stiffness=stiffness(np.inf, np.nan))
    e = replace(e, margins=replace(e.margins, gain_up_db=np.array([np.inf, 11.6, 16.9])))
    answer = e.to_json()

    assert answer["margins"]["gain_up_db"] == [None, 11.6, 16.9]
    assert answer["margins"]["gain_db"] == [9.7, 11.6, 12.8]
    exact = answer["stiffness"]["exact"]
    assert exact["alpha_upper"] is exact["path_alpha_upper"] is None


# what is said in the same breath, and what is not known


def resting(**changes):
    """Where an arm of three joints, the last of them sliding, rests."""
    return Resting(
        **{
            "exists": True, "joint": np.array([0.5, 0.6, 0.7]),
            "offset": np.array([0.00517, -0.171, 0.00233]), "tip_offset": 0.0329,
            "holding_torque": np.array([13.1, 7.13, 1.91]), "limit": np.array([20.3, 15.7, 9.37]),
            "sliding": frozenset({2}),
        }
        | changes
    )  # fmt: skip


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


def test_poses_at_which_it_does_not_stay_are_counted():
    path = np.array([-3.31, np.nan, 0.57])
    words = verdict([e := changed(evaluation("alpha"), path_abscissa=path)], [e])

    assert "at 1 of 3 poses of the motion it has no equilibrium" in words
    assert "(t = 1.08 s) it is unstable, a disturbance grows at 0.57 1/s" in words


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (43.2, "at 13 % a small disturbance grows by up to a factor of 43 during the motion of"),
        (1.31, "by up to a factor of 1.3 during the motion of 0.93 s"),
        (1.0, "at 13 % some poses are unstable, but no small disturbance grows during the"),
        (5.1e7, "a factor above 1000"),
    ],
)
def test_a_small_stiffness_margin_of_poses_says_what_comes_of_it_in_time(factor, words):
    growth = PathGrowth(error=0.13, factor=factor, start=0.1, end=0.7, duration=0.93)
    alpha = evaluation("alpha", stiffness=stiffness(0.3, 0.0413, growth=growth))
    exact = alpha.to_json()["stiffness"]["exact"]

    assert words in verdict([alpha], [alpha])
    assert (exact["path_growth"], exact["path_growth_error"]) == (factor, 0.13)
    assert (exact["path_growth_from"], exact["path_growth_to"]) == (0.1, 0.7)


def test_a_margin_that_is_followed_is_not_called_proven():
    alpha = evaluation("alpha", stiffness=stiffness(0.0413, 0.3, proven=False))
    assert "at the final pose (by continuation of the equilibrium, not proven)" in verdict(
        [alpha], [alpha]
    )
    beta = evaluation("beta", stiffness=stiffness(0.0413, 0.3))
    assert "proven" not in verdict([beta], [beta])


def test_an_open_loop_is_called_one():
    alpha = changed(evaluation("alpha", method="feedforward"), stable="marginal")
    assert "it is an open loop" in verdict([alpha], [alpha])
    assert "marginal" not in verdict([alpha], [alpha])


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
