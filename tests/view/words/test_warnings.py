"""What speaks against a design that ranks first: phrases checked against the record."""

import re
from dataclasses import replace

import numpy as np
import pytest

from flexctl.model.record import BasisChoice
from flexctl.robustness.stiffness.path_growth import PathGrowth
from flexctl.verdict.margins import StabilityMargins
from flexctl.verdict.reasons import Reason
from flexctl.view.to_json import to_json
from flexctl.view.words.verdict import reason_words, warnings_of
from tests.verdict_record import SETTLED, THIN, changed, evaluation, of, read, stiffness, verdict


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


def test_growth_along_the_motion_is_said_at_its_largest():
    path = np.array([-3.31, 0.83, 0.57])
    _, places = read([changed(evaluation("alpha"), path_abscissa=path)])
    assert "stability.path_spectral_abscissa.1" in of(places, "alpha")

    for still in (np.array([-3.31, -1.83, -2.57]), np.array([-3.31, 0.0, -2.57])):
        _, places = read([changed(evaluation("alpha"), path_abscissa=still)])
        assert not [p for p in places if "path" in p]


def test_finer_truths_on_which_it_is_unstable_are_named_by_their_order():
    sound = [evaluation("zeta")]
    words = verdict(sound, sound)
    assert "elements" not in words

    rates = (2.37, 0.17, -2.13, 0.11, 2.09)  # of orders 1, 2, 4, 6, 8, judged on 4
    alpha = changed(evaluation("alpha"), abscissae=rates)
    words = verdict([alpha], [alpha])
    named = words[: words.index("elements")].rpartition("models")[2]
    assert [int(x) for x in named.replace(",", " ").split() if x.isdigit()] == [6, 8]
    coarser = changed(evaluation("alpha"), abscissae=(1.0, 1.0, 1.0, -1.0, -1.0))
    assert "elements" not in verdict([coarser], [coarser])
    on_eight = replace(alpha, truth=BasisChoice(kind="elements", order=8))  # 6 counts all the same
    assert "a model of 6 elements per link" in verdict([on_eight], [on_eight])
    on_axis = changed(evaluation("alpha"), abscissae=(-1.0, -1.0, -1.0, 0.0, -1.0))
    assert "elements" not in verdict([on_axis], [on_axis])


def test_poses_that_are_unstable_on_finer_truths_are_told_with_the_worst():
    rates, times = (np.nan, np.nan, -1.97, 3.07, 47.3), (np.nan, np.nan, 0.537, 0.537, 1.079)
    alpha = changed(evaluation("alpha"), path_abscissae=rates, path_times=times)
    words = verdict([alpha], [alpha])

    assert "First of the ranking, but not recommended: alpha" in words
    assert "worst on 8, where at t = 1.08 s a disturbance grows at 47.3 1/s" in words
    moving = changed(alpha, path_abscissa=np.array([-3.31, 29.0, -2.57]))  # hardly less here
    assert "spillover" not in verdict([moving], [moving])
    final = changed(alpha, abscissae=(2.37, 0.17, -2.13, -2.11, 2.09))  # 8 is told of already
    told = "(spillover), at t = 0.537 s a disturbance grows at 3.07 1/s"
    assert told in verdict([final], [final])
    slow = changed(alpha, path_abscissae=(np.nan, np.nan, -1.97, 0.9, 0.9))  # in 1.079 s
    assert "spillover" not in verdict([slow], [slow])


def test_a_design_that_is_only_marginally_stable_is_said_to_be():
    marginal = changed(evaluation("alpha"), stable="marginal")

    assert "marginal" in verdict([marginal], [marginal])
    sound = [evaluation("alpha")]
    assert "marginal" not in verdict(sound, sound)


def test_several_caveats_are_all_said():
    alpha = changed(evaluation("alpha"), path_abscissa=np.array([-3.31, 1.83, 0.57]))
    alpha = replace(alpha, margins=replace(alpha.margins, **THIN), stiffness=stiffness(0.02, 0.3))
    said = read([alpha])[1]
    places = of(said, "alpha")

    assert said.index("alpha.residual.tip_error_max") < said.index("alpha.margins.disk")
    assert places >= SETTLED | {"stability.path_spectral_abscissa.1", "margins.disk"}
    assert "stiffness.exact.alpha_upper" in places


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
    exact = to_json(alpha)["stiffness"]["exact"]

    assert words in verdict([alpha], [alpha])
    assert (exact["path_growth"], exact["path_growth_error"]) == (factor, 0.13)
    assert (exact["path_growth_from"], exact["path_growth_to"]) == (0.1, 0.7)


def test_a_margin_that_is_followed_is_not_called_proven():
    alpha = evaluation("alpha", stiffness=stiffness(0.0413, 0.3, proven=False))
    assert "at the final pose (by continuation, not proven)" in verdict([alpha], [alpha])
    beta = evaluation("beta", stiffness=stiffness(0.0413, 0.3))
    assert "proven" not in verdict([beta], [beta])


@pytest.mark.parametrize("method", ["feedforward", "torque"])
def test_an_open_loop_is_called_one(method):
    alpha = changed(evaluation("alpha", method=method), stable="marginal")
    assert "it is an open loop" in verdict([alpha], [alpha])
    assert "marginal" not in verdict([alpha], [alpha])


SOUND = StabilityMargins(
    gain_up_db=np.array([12.0, np.inf]),
    gain_down_db=np.array([np.inf, 9.0]),
    phase_deg=np.array([45.0, 60.0]),
    delay_seconds=np.array([5e-3, 4e-3]),
    common_delay_seconds=3e-3,
    disk=0.5,
    disk_frequency=1.0,
    sensitivity_peak=1.7,
    sensitivity_frequency=1.0,
    complementary_peak=1.4,
    complementary_frequency=0.8,
    joint_sensitivity_peak=np.array([1.5, 1.6]),
    joint_complementary_peak=np.array([1.3, 1.2]),
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"gain_down_db": np.array([5.9, 9.0])}, "joint1: 5.9 dB"),
        ({"gain_up_db": np.array([12.0, 6.0])}, None),
        ({"phase_deg": np.array([45.0, 29.94])}, "joint2: 29.9 deg"),
        ({"delay_seconds": np.array([5e-3, 1.7e-3])}, "joint2: 1.7 ms of delay"),
        ({"common_delay_seconds": 1.25e-3}, "all joints together: 1.25 ms of delay"),
        ({"common_delay_seconds": 2e-3}, None),
        ({"sample_time": 4.5e-3}, "joint2: 4 ms of delay; all joints together: 3 ms of delay"),
        ({"sample_time": 1e-4, "common_delay_seconds": 1e-3}, None),
        ({"disk": 0.2994}, "disk 0.299"),
    ],
)
def test_every_thin_margin_is_named_with_its_joint(change, words):
    said = warnings_of(evaluation("alpha", margins=replace(SOUND, **change)))
    assert said == ([f"its margins are thin ({words})"] if words else [])


def test_of_one_joint_its_delay_is_said_once():
    per_joint = ("gain_up_db", "gain_down_db", "phase_deg")
    one = replace(SOUND, **{key: getattr(SOUND, key)[:1] for key in per_joint})
    one = replace(one, delay_seconds=np.array([1.3e-3]), common_delay_seconds=1.3e-3)
    (words,) = warnings_of(evaluation("alpha", margins=one))
    assert words.count("1.3 ms") == 1


@pytest.mark.parametrize("less", [True, False])
def test_delays_that_may_be_less_are_called_upper_bounds(less):
    said = warnings_of(evaluation("alpha", margins=replace(SOUND, delay_may_be_less=less)))
    assert any("upper bounds" in words for words in said) == less


def test_without_any_pose_at_which_it_stays_nothing_grows_there():
    lost = changed(evaluation("alpha"), path_abscissa=np.full(3, np.nan))
    (words,) = warnings_of(lost)
    assert "at 3 of 3 poses of the motion it has no equilibrium" in words


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("tracking", "tracking"),
        ("residual", "residual"),
        ("effort", "effort"),
        ("stability", "stability"),
        ("spillover", "truth orders"),
        ("margins", "gain, phase, delay and disk"),
        ("margins.min_sampling_rate", "sampling rate"),
        ("stiffness", "stiffness margin"),
    ],
)
def test_a_metric_that_was_not_computed_is_called_by_its_name_in_words(metric, words):
    (said,) = warnings_of(evaluation("alpha", not_computed={metric: "out of steps"}))
    name, reason = said.removeprefix("not computed: ").rsplit(" (", 1)
    assert words in name
    assert not re.search("[._]", name)
    assert reason == "out of steps)"


@pytest.mark.parametrize(
    ("tolerated", "words"), [(4e-7, "no"), (0.0, "no"), (2e-6, "only 0.0002 %")]
)
def test_next_to_nothing_is_no_tolerated_overestimate(tolerated, words):
    (said,) = warnings_of(evaluation("alpha", stiffness=stiffness(tolerated, 0.3)))
    assert said == f"{words} stiffness overestimate is tolerated at the final pose"


@pytest.mark.parametrize(
    ("threshold", "smaller", "said"),
    [
        (0.0, 0.0, "small vibrations grow to an amplitude of about 1 mrad at 20 rad/s (descr"),
        (
            2e-5,
            0.0,
            "vibrations larger than about 0.02 mrad grow to an amplitude of about 1 mrad at",
        ),
        (2e-5, 3e-6, "about 1 mrad at 20 rad/s, smaller ones to about 0.003 mrad (describing"),
    ],
)
def test_vibrations_that_friction_lets_grow_have_their_sizes(threshold, smaller, said):
    facts = {
        "joint": 0,
        "stuck_joint": None,
        "sliding": False,
        "amplitude": 1e-3,
        "frequency": 20.0,
    }
    facts |= {"threshold": threshold, "smaller": smaller}
    words = reason_words(Reason(code="friction-vibrates", facts=facts))
    stuck = reason_words(Reason(code="friction-vibrates", facts=facts | {"stuck_joint": 2}))

    assert words.startswith("friction of joint1 lets ")
    assert said in words
    assert stuck.startswith("friction of joint1, while joint3 is stuck, lets ")


def test_vibrations_of_an_unstable_loop_are_bounded_up_to_a_size():
    facts = {"joint": None, "stuck_joint": None, "sliding": False, "amplitude": np.inf}
    facts |= {"frequency": 20.0, "threshold": 1e-3, "smaller": 2e-5}

    assert reason_words(Reason(code="friction-vibrates", facts=facts)) == (
        "friction of its joints keeps vibrations below about 1 mrad (at 20 rad/s) bounded; larger "
        "ones grow without limit, smaller ones to about 0.02 mrad at most (describing function)"
    )


def test_joints_that_are_unstable_when_stuck_or_slow_are_named():
    facts = {"joints": [0, 2], "together": False, "pairs": []}
    pairs = {"joints": [], "together": False, "pairs": [[1, 0], [0, 2]]}
    all_at_once = pairs | {"together": True}
    said = {
        (code, k): reason_words(Reason(code=code, facts=each))
        for code in ("friction-stuck", "friction-slides")
        for k, each in enumerate((facts, pairs, all_at_once))
    }

    assert said["friction-stuck", 0].endswith("while friction holds joint1 or joint3")
    assert said["friction-stuck", 1].endswith(
        "holds joint1 and joint3 at once or joint2 and joint1 at once"
    )
    assert "while friction holds all joints together or joint1" in said["friction-stuck", 2]
    assert said["friction-slides", 0].startswith("slow sliding of joint1 and joint3 is unstable")
    assert said["friction-slides", 1].startswith(
        "slow sliding of joint1 (with joint3 stuck) and joint2 (with joint1 stuck) is unstable"
    )
