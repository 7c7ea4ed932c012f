"""Tuning: derivatives against differences, closed forms of the best gains, limits that are kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl import (
    close_loop,
    compare,
    design_controller,
    evaluate,
    evaluate_many,
    explain,
    load_design,
    load_model,
    tune,
)
from flexctl.errors import ComputationError, InputError
from flexctl.model import BasisChoice, Design, apply_settings, build_file
from flexctl.search.nonsmooth import Pieces
from flexctl.search.tuning import requirements as asked
from flexctl.search.tuning import rounds
from flexctl.search.tuning.after_tuning import tuned_design
from flexctl.search.tuning.asked import asked_of
from flexctl.search.tuning.free_numbers import FreeNumber, read_free
from flexctl.search.tuning.local_search import _timed
from flexctl.search.tuning.memory import Memory
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.runs import Peaks
from flexctl.search.tuning.spectra import Case, ClosedMatrix, SpectralLimit, spectral_pieces
from flexctl.search.tuning.verification import (
    verdict_on,
    verified,
    watched_over,
    with_cases,
)
from flexctl.simulation.simulation import simulate
from flexctl.verdict import metrics, unstable_orders
from flexctl.verdict.friction import FrictionVerdict, JointDamper
from flexctl.verdict.performance import judge_residual
from flexctl.view.words.tuning import tuning_words
from tests.arms import rigid_link, single_link
from tests.designs import make_design

ARM, DESIGN = "single-link-hub", "hub-pd"
ABSCISSA = "stability.spectral_abscissa"


def problem_of(arm, design, free, minimise):
    """What `tune` minimises."""
    return read_problem(
        load_model(arm), load_design(design), free, minimise=minimise, subject_to=[]
    )


def rigid_pd(Gp=8.0, Gv=1.0, Gi=None, **tables):
    gains = {"Gp": Gp, "Gv": Gv} | ({} if Gi is None else {"Gi": Gi})
    return make_design([0.0], [1.0], "joint-pd", gains=gains, **tables)


def tune_once(arm, design, free=(), **options):
    """From the start alone, in this process."""
    return tune(arm, design, free, starts=1, jobs=1, **options)


# Free numbers


def test_equal_gains_are_tied_and_others_are_not():
    design = make_design([0.0] * 3, [1.0] * 3, gains={"Gp": [4.0, 9.0, 4.0], "Gv": 2.0})
    free = read_free(design, ["gains"], joints=3)

    assert [one.name for one in free.numbers] == ["gains.Gp[1 3]", "gains.Gp[2]", "gains.Gv"]
    values = free.values(free.start)
    np.testing.assert_array_equal(values["gains.Gp"], [4.0, 9.0, 4.0])
    np.testing.assert_array_equal(values["gains.Gv"], 2.0)


def test_untied_gains_are_free_one_by_one():
    design = make_design([0.0] * 3, [1.0] * 3, gains={"Gp": 4.0, "Gv": 2.0})
    free = read_free(design, {"gains.Gp": (1.0, 10.0)}, joints=3, untied=True)
    moved = free.values(np.array([0.0, 0.5, 1.0]))["gains.Gp"]

    np.testing.assert_allclose(moved, [1.0, np.sqrt(10.0), 10.0], rtol=1e-9)


def test_what_a_scheduled_second_loop_replaces_is_not_free_unless_it_is_named():
    design = load_design("vertical-2r-composite")

    assert design.follows_path
    keys = [one.key for one in read_free(design, [], joints=2).numbers]
    weights = [f"second_loop.weights.{name}" for name in ("joint_error", "joint_rate", "effort")]
    assert keys == [*weights, "second_loop.decay"]
    assert len(read_free(design, ["gains"], joints=2)) == 2


def test_integral_gains_beside_a_scheduled_second_loop_are_free():
    table = load_design("vertical-2r-decoupling").table()
    table["second_loop"] = {"weights": table["second_loop"]["weights"], "schedule": 5}
    table["gains"] = {"Gp": 100.0, "Gv": 18.0, "Gi": 5.0}
    free = read_free(build_file(Design, table, "integral", None), [], joints=2)

    assert [one.key for one in free.numbers if one.key.startswith("gains")] == ["gains.Gi"]


def test_entries_of_an_array_are_named_by_their_places():
    design = make_design([0.0] * 3, [1.0] * 3, gains={"Gp": [4.0, 9.0, 4.0], "Gv": 2.0})
    free = read_free(design, {"gains.Gp[1 3]": (1.0, 8.0), "gains.Gv[2]": (1.0, 3.0)}, joints=3)

    assert [one.name for one in free.numbers] == ["gains.Gp[1 3]", "gains.Gv[2]"]
    moved = free.values(np.array([1.0, 0.0]))
    np.testing.assert_array_equal(moved["gains.Gp"], [8.0, 9.0, 8.0])
    np.testing.assert_array_equal(moved["gains.Gv"], [2.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (["gains.Gp[4]"], "free: gains.Gp: expected places in its array of 3, got [4]"),
        (["gains.Gp[0]"], "free: gains.Gp: expected places in its array of 3, got [0]"),
        (["gains.Gp[1 2]"], "free: gains.Gp[1 2]: expected equal values, got 4 and 9"),
        (["gains.Gp", "gains.Gp[2]"], "free: expected each number once, got gains.Gp[2] twice"),
    ],
)
def test_entries_that_cannot_be_free_are_refused(free, expected):
    design = make_design([0.0] * 3, [1.0] * 3, gains={"Gp": [4.0, 9.0, 4.0], "Gv": 2.0})
    with pytest.raises(InputError) as error:
        read_free(design, free, joints=3)

    assert str(error.value) == expected


@pytest.mark.parametrize("k", [[20.0, 5.0], [5.0, 5.0], [5, 6]])
def test_arrays_of_options_stay_arrays(k):
    design = load_design(DESIGN).model_copy(update={"options": {"k": k, "names": ["a", 1]}})
    free = read_free(design, ["options"], joints=1)

    np.testing.assert_array_equal(free.values(free.start)["options.k"], k)
    one = read_free(design, {"options.k[1]": (1.0, 40.0)}, joints=1)
    np.testing.assert_array_equal(one.values(np.ones(1))["options.k"], [40.0, k[1]])


def test_a_whole_number_of_the_options_is_free_where_it_is_named():
    design = load_design(DESIGN).model_copy(update={"options": {"k": 5, "c": 2.0, "on": True}})

    assert [one.name for one in read_free(design, ["options"], joints=1).numbers] == ["options.c"]
    assert read_free(design, {"options.k": (1.0, 9.0)}, joints=1).numbers[0].start == 5.0
    with pytest.raises(InputError, match="expected one of its numbers"):
        read_free(design, ["options.on"], joints=1)


def test_scales_are_ratios_above_zero_and_differences_elsewhere():
    design = make_design([0.0], [1.0], gains={"Gp": 4.0, "Gv": 2.0})
    ratio = read_free(design, ["gains.Gp=*0.1:*10"], joints=1).numbers[0]
    shift = read_free(design, {"gains.Gp": (0.0, 10.0)}, joints=1).numbers[0]

    assert ratio.value(0.75) == pytest.approx(4.0 * 10**0.5, rel=1e-9)
    assert shift.value(0.75) == pytest.approx(7.5, rel=1e-9)
    assert ratio.value(ratio.place(4.0)) == shift.value(shift.place(4.0)) == 4.0


@pytest.mark.parametrize("sign", [1, -1])
def test_rounded_values_stay_within_their_bounds(sign):
    # the tenth digit of a third and of two thirds lies beyond them
    lower, upper = sorted((sign / 3, 2 * sign / 3))
    one = FreeNumber(key="gains.Gp", entries=(), lower=lower, upper=upper, start=0.5 * sign)

    assert one.value(1e-13) == lower
    assert one.value(1 - 1e-13) == upper


@pytest.mark.parametrize("bounds", ["*0.1:*10", "0.5:200", "0:200"])
def test_zero_numbers_of_a_table_stay_zero_whatever_its_bounds(bounds):
    weights = {"joint_error": 100.0, "joint_rate": 3.0, "strain_energy": 0.0, "effort": 1.0}
    design = make_design([0.0], [1.0], "lqg", gains=None, second_loop={"weights": weights})
    free = read_free(design, {"second_loop.weights": bounds}, joints=1)

    names = [one.key.removeprefix("second_loop.weights.") for one in free.numbers]
    assert names == ["joint_error", "joint_rate", "effort"]


@pytest.mark.parametrize("free", ["gains.Gi[2]=0:5", "gains.Gi[1 2]=0:5", "gains.Gi=0:5"])
def test_entries_of_an_array_of_zeros_are_free_where_they_are_named(free):
    design = make_design([0.0] * 2, [1.0] * 2, gains={"Gp": 4.0, "Gv": 2.0, "Gi": [0.0] * 2})
    found = read_free(design, [free], joints=2)

    assert [one.start for one in found.numbers] == [0.0]
    assert found.numbers[0].name == free.removesuffix("=0:5")
    assert read_free(design, found, joints=2).by_name(np.ones(1)) == found.by_name(np.ones(1))


@pytest.mark.parametrize(
    ("free", "message"),
    [
        (["gains.Gp=20:10"], "free: gains.Gp: expected FROM below TO, got 20:10"),
        (["gains.Gp=30:40"], "free: gains.Gp: expected bounds about the value in the file, 20"),
        (["gains.Gq"], "free: expected one of its numbers (nearest: gains."),
        (["payload.mass"], "free: expected gains or weights of the design"),
        (["Gp"], "free: expected gains or weights of the design (did you mean gains.Gp?)"),
        (["gains.Gp=1:2:3"], "free: gains.Gp: expected FROM:TO or *FROM:*TO, got '1:2:3'"),
        (["gains.Gp=*1:2"], "free: gains.Gp: expected FROM:TO or *FROM:*TO"),
        (["gains", "gains.Gp"], "free: expected each number once, got gains.Gp twice"),
        (["gains.Gp=nan:3"], "free: gains.Gp: expected FROM:TO"),
        (["loop.settle_within"], "free: expected gains or weights of the design"),
        (7, "free: expected Mapping or list or tuple, got int"),
        ([5], "free[1]: expected str, got int"),
        ({"gains.Gp": (None, 5)}, "free: gains.Gp: expected real numbers, got (None, 5)"),
        ({"gains.Gp": ("a", "b")}, "free: gains.Gp: expected real numbers, got ('a', 'b')"),
        ({"gains.Gp": (1.0, 20.0, 40.0)}, "free: gains.Gp: expected two bounds, got (1.0, 20.0"),
    ],
)
def test_free_numbers_that_cannot_be_are_refused(free, message):
    with pytest.raises(InputError) as error:
        tune(ARM, DESIGN, free, minimise="stability.spectral_abscissa", subject_to=[], jobs=1)
    assert message in str(error.value)


@pytest.mark.parametrize("ends", [(1e-300, 1e300), (1e-320, 1e308), (-1e308, 1e308), (3.0, 5.0)])
def test_bounds_may_be_as_far_apart_as_numbers_go(ends):
    design = load_design("hub-pd")
    lower, upper = ends
    one = FreeNumber(key="gains.Gp", entries=(), lower=lower, upper=upper, start=4.0)

    assert one.value(one.place(4.0)) == 4.0
    assert (one.place(lower), one.place(upper)) == (0.0, 1.0)
    quarter = lower**0.75 * upper**0.25 if lower > 0 else 0.75 * lower + 0.25 * upper
    assert one.value(0.25) == pytest.approx(quarter, rel=1e-9)
    assert read_free(design, {"gains.Gp": (1e-300, 1e300)}, joints=1).start == pytest.approx(
        0.5, abs=0.01
    )


@pytest.mark.slow
def test_a_gain_that_the_law_does_not_use_is_refused():
    # with a schedule the second loop acts all along the path, in place of the joint gains
    table = {key: value for key, value in load_design(DESIGN).table().items() if key != "expect"}
    weights = {"joint_error": 300.0, "joint_rate": 0.3, "effort": 1e-4}
    table |= {"method": "decoupling", "second_loop": {"weights": weights, "schedule": 2}}
    design = build_file(Design, table, "scheduled", None)
    with pytest.raises(InputError, match=r"free: gains\.Gp: expected a number on which the obj"):
        tune(
            ARM, design, ["gains.Gp"], minimise="stability.spectral_abscissa", subject_to=[], jobs=1
        )


@pytest.mark.slow_but("free1")
@pytest.mark.parametrize("free", [[], ["second_loop.weights"]])
def test_numbers_without_effect_are_left_out_of_a_table(free):
    # a rigid arm has no strain energy
    weights = {"joint_error": 100.0, "joint_rate": 3.0, "strain_energy": 1.0, "effort": 1.0}
    design = make_design([0.0], [1.0], "lqg", gains=None, second_loop={"weights": weights})
    asked_for = {"minimise": "stability.spectral_abscissa", "subject_to": [], "evaluations": 2}
    found = tune_once(rigid_link(), design, free, **asked_for)
    alone = ["second_loop.weights.strain_energy"]

    assert {one.key.split(".")[-1] for one in found.free} == {"joint_error", "joint_rate", "effort"}
    assert found.tuned.second_loop.weights.strain_energy == 1.0
    with pytest.raises(InputError, match="strain_energy: expected a number on which"):
        tune_once(rigid_link(), design, [*alone, "second_loop.weights.effort"], **asked_for)


def test_noise_is_a_fact_until_it_is_named():
    # the verdict's noise is that of the file: tuned by default, it would be tuned away
    design = load_design("hub-lqg")
    assert not [key for key in keys_of(design, []) if "noise" in key]
    assert "observer.noise.encoder" in keys_of(design, ["observer"])


def keys_of(design, free):
    return [one.key for one in read_free(design, free, joints=1).numbers]


@pytest.mark.parametrize(
    ("design", "free", "minimise", "limit", "why"),
    [
        ("hub-lqg", ["observer.noise"], "noise.tip_rms", None, "observer.noise.encoder is free"),
        (
            "hub-lqg",
            ["observer"],
            "effort.energy",
            "noise.torque_rms<=1",
            "tuning would change the",
        ),
        ("hub-pd", [], "noise.tip_rms", None, "the design states no noise"),
        ("hub-pd", [], "effort.energy", "noise.tip_rms<=1", "the design states no noise"),
        ("hub-pd", [], "friction.sticking_offset", None, "no joint of the arm has dry friction"),
    ],
)
def test_metrics_that_the_verdict_cannot_have_are_refused(design, free, minimise, limit, why):
    with pytest.raises(InputError) as error:
        tune(ARM, design, free, minimise=minimise, subject_to=[limit] if limit else [], jobs=1)
    assert why in str(error.value)
    assert (limit or minimise).split("<")[0] in str(error.value)


def test_a_limit_on_the_smallest_sampling_rate_is_refused_where_there_is_none():
    arm, design = load_model("single-link-hub"), load_design("hub-lqg")
    table = design.table()
    table["observer"]["gain"] = design_controller(arm, design).observer.gain.tolist()
    del table["observer"]["noise"]
    design = build_file(Design, table, "chosen", None)
    with pytest.raises(InputError, match=r"min_sampling_rate.*observer\.gain is chosen"):
        tune(arm, design, subject_to=["margins.min_sampling_rate<=100"], jobs=1)


def test_a_limit_on_neglected_modes_is_refused_for_a_law_that_repeats():
    arm, design = load_model("single-link-hub"), load_design("hub-pid")
    table = design.table()
    table["loop"]["sample_time"] = 0.001
    table["instruments"] = [{"kind": "encoder", "sample_time": 0.002}]
    design = build_file(Design, table, "slow", None)
    with pytest.raises(InputError, match=r"neglected.*not all new at each sample"):
        tune(arm, design, subject_to=["neglected.scaled_peak<=2"], jobs=1)


# Requirements


@pytest.mark.parametrize(
    ("text", "value", "violation"),
    [
        ("margins.gain_db>=6", [7.0, 4.5], 0.25),
        ("margins.gain_db>=6", [np.inf, 8.0], 0.0),
        ("margins.gain_db>=6", None, np.inf),
        ("residual.settling_time<=0.3", np.inf, np.inf),
        ("residual.settling_time<=0.3", 0.45, 0.5),
        ("stiffness.exact.path_alpha_upper>=0.2", np.inf, 0.0),
        ("stiffness.exact.path_alpha_lower<=-0.2", -1.0, 0.0),
        ("stiffness.exact.path_alpha_lower<=-0.2", -0.1, 0.5),
        ("stability.spectral_abscissa<=0", 0.5, 500.0),
        ("effort.peak<=5", [4.0, 6.0], 0.2),
        ("effort.peak>=5", [4.0, 6.0], 0.2),
        ("effort.peak>=5", [6.0, 5.0], 0.0),
    ],
)
def test_violations_count_the_worst_joint_and_what_nothing_limits_is_met(text, value, violation):
    one = asked.read_requirement(text)
    assert one.violation({one.key: value}) == pytest.approx(violation, rel=1e-9)


@pytest.fixture(scope="module")
def unlimited():
    """Integral action leaves nothing of friction, nothing rings, and all poses tolerate 10 %."""
    loop = close_loop(design_controller(ARM, DESIGN), ARM, modes=2)
    judged = evaluate(loop)
    damper = JointDamper(joint=0, sliding=False, least=0.0, unstable=(), stuck=True)
    friction = FrictionVerdict(dampers=(damper,), sticking_offset=None, hunts=False, integral=True)
    return replace(judged, friction=friction)


@pytest.mark.parametrize(
    "text",
    [
        "stiffness.exact.path_growth<=2",
        "friction.sticking_offset<=0.001",
        "friction.held_damping_ratio>=0.02",
    ],
)
def test_what_nothing_limits_keeps_a_limit(unlimited, text):
    one = asked.read_requirement(text)

    assert unlimited.stiffness.path_upper > 0.1
    assert one.violation(metrics(unlimited)) == 0


@pytest.mark.parametrize(
    "unknown",
    [{"path_upper": np.nan}, {"path_upper": 0.01, "not_computed": {"exact.path_growth": "why"}}],
)
def test_a_growth_that_is_not_known_keeps_no_limit(unlimited, unknown):
    one = asked.read_requirement("stiffness.exact.path_growth<=2")
    judged = replace(unlimited, stiffness=replace(unlimited.stiffness, **unknown))

    assert one.violation(metrics(judged)) == np.inf


@pytest.mark.parametrize(("offset", "violation"), [(0.002, 1.0), (np.inf, np.inf)])
def test_an_offset_that_friction_holds_exceeds_its_limit(unlimited, offset, violation):
    one = asked.read_requirement("friction.sticking_offset<=0.001")
    judged = replace(unlimited, friction=replace(unlimited.friction, sticking_offset=offset))

    assert one.violation(metrics(judged)) == pytest.approx(violation)


def test_a_loop_that_hunts_has_no_offset_that_keeps_a_limit(unlimited):
    one = asked.read_requirement("friction.sticking_offset<=0.001")
    judged = replace(unlimited, friction=replace(unlimited.friction, hunts=True))

    assert one.violation(metrics(judged)) == np.inf


def test_torque_limits_are_kept_where_no_time_is_spent_at_them():
    one = asked.read_requirement("nominal.effort.peak<=limits")
    assert one.nominal
    assert one.violation({"effort.saturated_seconds": [0.0, 0.0]}) == 0
    assert one.violation({"effort.saturated_seconds": [0.0, 0.25]}) == 0.25


def test_objectives_are_sums_of_which_the_greatest_counts():
    both = asked.read_objective(["2*effort.energy + margins.disk", "residual.tip_error_max"])
    known = {"effort.energy": 3.0, "margins.disk": 1.5, "residual.tip_error_max": 0.1}

    assert both.value(known) == 4.5  # more of a margin is better
    assert both.value(known | {"margins.disk": None}) == np.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("residual.settling", "residual.settling_time"),
        ("-1*effort.energy", "a weight above 0"),
        ("0*effort.energy", "a weight above 0"),
        ("", "METRIC or NUMBER*METRIC"),
        ("stability.stable", "the name of a metric"),
    ],
)
def test_objectives_that_are_none_are_refused(text, message):
    with pytest.raises(InputError, match="minimise") as error:
        asked.read_objective(text)
    assert message in str(error.value)


# Derivatives


def limits_of(problem, kind, cases):
    limit = SpectralLimit(kind=kind, limit=0.05, scale=2.0, cases=tuple(cases))
    return replace(problem, spectral=(limit,), requirements=())


@pytest.mark.slow_but("case2-True-stable", "case3-True-damping", "case2-False-stable")
@pytest.mark.parametrize("kind", ["abscissa", "damping", "stable"])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    "case", [Case(), Case(time=0.4), Case(gains=(1.7,)), Case(gains=(np.exp(0.6j),))]
)
def test_derivatives_of_eigenvalues_agree_with_differences(kind, sampled, case):
    loop = {"sample_time": 0.01, "delay": 0.004} if sampled else {}
    design = make_design([0.0], [1.0], "joint-pd", gains={"Gp": 20.0, "Gv": 3.0}, loop=loop)
    problem = limits_of(
        problem_of(single_link(), design, ["gains"], "stability.spectral_abscissa"), kind, [case]
    )
    u, h = np.array([0.45, 0.52]), 1e-4
    pieces = problem.spectral_at(u)

    for i, step in enumerate(h * np.eye(2)):
        ends = [problem.spectral_at(u + sign * step).objective for sign in (1, -1)]
        slope = pieces.gradients[pieces.values.argmax(), i]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-3, abs=1e-6)


def test_what_is_above_a_limit_is_smooth_where_eigenvalues_meet():
    # three eigenvalues 1e-2 apart: their sum is a trace, each alone moves 1e4 times as fast
    A = np.diag([-1.0, -1.0, -1.0, -9.0]) + np.diag([1.0, 1.0, 0.0], 1)
    A[2, 0] = 1e-6
    change = np.random.default_rng(0).standard_normal((4, 4))
    change[3], change[:, 3] = 0, 0  # of the three alone
    excess = SpectralLimit(kind="excess", limit=-2.0, scale=0.5, cases=(Case(),))
    values, slopes = spectral_pieces(excess, [ClosedMatrix(A=A)], [[change]])

    assert values == pytest.approx(3 * (2.0 - 1.0) / 0.5, rel=1e-9)
    assert slopes == pytest.approx(np.trace(change) / 0.5, rel=1e-6)


@pytest.mark.parametrize("rate", [0.3, 5.0, 3e4])
def test_a_loop_is_the_more_unstable_the_faster_it_leaves(rate):
    limit = SpectralLimit(kind="stable", limit=0.0, scale=0.5, cases=(Case(),))
    A, change = np.diag([rate, -1.0]), np.diag([rate, 0.0])  # relative to the rate
    value, slope = spectral_pieces(limit, [ClosedMatrix(A=A)], [[change]])
    ends = [
        spectral_pieces(limit, [ClosedMatrix(A=A + h * change)], [[change]])[0]
        for h in (1e-4, -1e-4)
    ]

    assert value > 0
    assert slope[0, 0] == pytest.approx((ends[0] - ends[1])[0] / 2e-4, rel=1e-5)
    assert slope[0, 0] > 0.01  # also far from stability, where every real pole has a ratio of 1


@pytest.mark.slow
def test_derivatives_under_an_error_of_the_stiffness_agree_with_differences():
    base = problem_of("planar-two-link", "two-link-decoupling", ["gains"], "tracking.tip_error_rms")
    problem = limits_of(base, "stable", [Case(time=0.2, error=0.1)])
    u, h = base.free.start, 1e-4
    pieces = problem.spectral_at(u)

    for i, step in enumerate(h * np.eye(len(u))):
        ends = [problem.spectral_at(u + sign * step).objective for sign in (1, -1)]
        slope = pieces.gradients[pieces.values.argmax(), i]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-3, abs=1e-6)


@pytest.mark.slow_but("residual.tip_error_max", "tracking.joint_error_max", "effort.peak")
@pytest.mark.parametrize(
    "metric",
    [
        "residual.settling_time",
        "residual.tip_error_max",
        "tracking.joint_error_max",
        "tracking.tip_error_rms",
        "effort.peak",
        "effort.energy + 0.1*margins.phase_deg",
    ],
)
def test_derivatives_of_runs_agree_with_differences(metric):
    problem = replace(problem_of(ARM, DESIGN, ["gains"], metric), aim=0.4)
    u, h = np.array([0.45, 0.47]), 1e-3
    pieces = problem.at(u)

    for i, step in enumerate(h * np.eye(2)):
        ends = [problem.at(u + sign * step, slopes=False).objective for sign in (1, -1)]
        slope = pieces.gradients[pieces.values.argmax(), i]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-2, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("observer", [None, {"noise": {"torque": 0.01, "tip": 0.01}}])
@pytest.mark.parametrize(
    "metric",
    ["effort.peak", "residual.tip_error_max", "tracking.tip_error_rms", "tracking.joint_error_max"],
)
def test_derivatives_of_runs_do_not_see_the_steps_of_torques_and_readings(metric, observer):
    table = load_design("hub-pd").table() | {"name": "rounded"}
    table["loop"] = {"sample_time": 0.004, "duration": 2.0, "torque_resolution": 0.02}
    rate = {"kind": "difference", "time_constant": 0.01}
    table["instruments"] = [{"kind": "encoder", "resolution": 1e-4, "noise": 1e-6}, rate]
    if observer:
        table |= {"observer": observer, "instruments": table["instruments"][:1]}
    problem = read_problem(
        load_model(ARM), Design.model_validate(table), ["gains"], minimise=metric, subject_to=[]
    )
    u, h = problem.free.start, 1e-3
    pieces = problem.at(u)

    for i, step in enumerate(h * np.eye(len(u))):
        ends = [problem.at(u + sign * step, slopes=False).objective for sign in (1, -1)]
        slope = pieces.gradients[pieces.values.argmax(), i]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-2, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "free"),
    [("vertical-2r-pd", "gains.Gp"), ("vertical-2r-lqg", "observer.noise.torque")],
)
def test_what_a_law_demands_beyond_torque_limits_is_what_it_asks_for_without_them(design, free):
    limits = (15.0, 5.0)
    arm = apply_settings(
        load_model("vertical-2r"), [f"link{j + 1}.limits.torque={x}" for j, x in enumerate(limits)]
    )
    own = {"minimise": "effort.energy", "subject_to": ["effort.peak<=limits"]}
    problem = read_problem(arm, load_design(design), [free], **own)
    here = problem.point(problem.free.start, slopes=False)
    demanded = here.demanded(0)
    wide = apply_settings(arm, [f"link{j + 1}.limits.torque=1000" for j in (0, 1)])
    other = evaluate(close_loop(design_controller(wide, load_design(design)), wide)).trajectory

    assert np.abs(here.run(0).tau).max(axis=1) == pytest.approx(limits, rel=1e-9)
    assert other is not None
    np.testing.assert_allclose(
        np.abs(demanded.tau).max(axis=1), np.abs(other.tau).max(axis=1), rtol=1e-5
    )
    peaks = np.abs(demanded.tau).max(axis=1) / np.array(limits) - 1
    assert problem.at(problem.free.start).violation == pytest.approx(peaks.max(), rel=1e-6)


def test_no_time_at_torque_limits_is_asked_for_by_peaks():
    # the time alone has no slope where it is kept, and jumps
    design = rigid_pd(Gp=20.0, Gv=3.0, kind="setpoint", loop={"duration": 2.0})
    pieces = []
    for limit in ("effort.peak<=limits", "effort.saturated_seconds<=0"):
        own = {"minimise": "effort.energy", "subject_to": [limit]}
        problem = read_problem(rigid_link(torque=5.0), design, ["gains"], **own)
        pieces.append(problem.at(problem.free.start))

    assert pieces[0].violation > 2.9  # asks for 20 N m
    np.testing.assert_array_equal(pieces[1].constraints, pieces[0].constraints)
    np.testing.assert_array_equal(pieces[1].constraint_gradients, pieces[0].constraint_gradients)


@pytest.mark.slow_but("4.0-4.0")
@pytest.mark.parametrize(("most", "violation"), [(8.0, 0.0), (4.0, 4.0)])
def test_a_peak_above_the_torque_limit_is_kept_whatever_the_law_asks_for(most, violation):
    # a step of 1 rad asks for 20 N m, of which the actuator gives 5
    design = rigid_pd(Gp=20.0, Gv=3.0, kind="setpoint", loop={"sample_time": 2e-3, "duration": 2.0})
    own = {"minimise": "effort.peak", "subject_to": [f"effort.peak<={most}"]}
    problem = read_problem(rigid_link(torque=5.0), design, ["gains"], **own)
    found = problem.at(problem.free.start)

    assert found.violation == pytest.approx(violation, rel=1e-6)
    assert problem.value(problem.point(problem.free.start)) == pytest.approx(5.0)
    assert found.objective * problem.scale == pytest.approx(20.0)  # at the limit it has no slope


@pytest.mark.parametrize(("limit", "violation"), [("effort.peak<=5", 0.0), ("effort.peak<5", 3.0)])
def test_a_search_sees_that_the_torque_limit_breaks_a_strict_limit_of_its_value(limit, violation):
    design = rigid_pd(Gp=20.0, Gv=3.0, kind="setpoint", loop={"duration": 2.0})
    own = {"minimise": "effort.energy", "subject_to": [limit]}
    problem = read_problem(rigid_link(torque=5.0), design, ["gains"], **own)

    assert problem.at(problem.free.start).violation == pytest.approx(violation, rel=1e-6)


@pytest.mark.parametrize(("limit", "violation"), [(">0", 1.0), (">=0", 0.0)])
def test_a_search_sees_that_the_value_of_a_strict_limit_breaks_it(limit, violation):
    own = {"minimise": "effort.energy", "subject_to": [f"effort.saturated_seconds{limit}"]}
    problem = read_problem(rigid_link(torque=50.0), rigid_pd(), ["gains"], **own)

    assert problem.at(problem.free.start).violation == violation


# Closed forms


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0.0, 0.1])
def test_a_start_at_its_torque_limits_is_led_away_from_them(steps):
    # A step of 1 rad asks for a torque Gp: of the gains below the limit, the fastest loop is that
    # of critical damping with the largest. Rounded torques keep the limit where they do not round
    # up to it.
    limit, J = 4.96, 0.5
    loop = {"duration": 2.0, "sample_time": 0.002, "torque_resolution": steps}
    found = tune(
        rigid_link(inertia=J, torque=limit),
        rigid_pd(Gp=20.0, Gv=3.0, kind="setpoint", loop=loop),
        ["gains"],
        minimise="stability.spectral_abscissa",
        subject_to=["effort.peak<=limits"],
        starts=1,
        evaluations=60,
        jobs=1,
    )
    Gp = found.values["gains.Gp"][1]

    assert found.feasible
    assert Gp == pytest.approx(limit - steps / 2, rel=1e-3)
    assert found.objective_after == pytest.approx(-np.sqrt(Gp / J), rel=2e-2)


@pytest.mark.slow
def test_a_limit_that_rounded_torques_exceed_is_kept_by_more():
    loop = {"duration": 2.0, "sample_time": 0.002, "torque_resolution": 0.1}
    found = tune(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=20.0, Gv=3.0, kind="setpoint", loop=loop),
        ["gains"],
        minimise="stability.spectral_abscissa",
        subject_to=["effort.peak<=4.96"],
        starts=1,
        evaluations=60,
        jobs=1,
    )

    assert found.feasible
    assert found.values["gains.Gp"][1] < 4.95  # 4.96 were rounded to 5
    assert found.values["gains.Gp"][1] > 4.85


@pytest.mark.slow
def test_where_rounding_decides_rounded_runs_are_compared():
    # torques below half a step of 0.2 N m are none: gentle gains never bring the tip within 10 mm
    loop = {"sample_time": 0.005, "duration": 4.0, "torque_resolution": 0.2, "settle_within": 0.01}
    found = tune(
        rigid_link(inertia=0.5, dh={"a": 1.0}),
        rigid_pd(Gp=30.0, Gv=8.0, kind="setpoint", loop=loop),
        ["gains"],
        minimise="effort.peak",
        subject_to=["residual.settling_time<=3"],
        starts=1,
        evaluations=40,
        jobs=1,
    )

    assert found.feasible
    assert max(one.round for one in found.starts) > 0
    assert found.objective_after < 0.5 * found.objective_before


@pytest.mark.slow
def test_the_best_damping_of_a_rigid_joint_is_the_critical_one():
    # J s^2 + Gv s + Gp: the slowest pole is fastest where both are -sqrt(Gp/J), a double one.
    arm, design = rigid_link(inertia=0.5), rigid_pd()
    found = tune(
        arm,
        design,
        {"gains.Gv": (0.1, 50.0)},
        minimise="stability.spectral_abscissa",
        subject_to=[],
        starts=1,
        jobs=1,
    )

    assert found.values["gains.Gv"][1] == pytest.approx(2 * np.sqrt(0.5 * 8.0), rel=1e-4)
    assert found.objective_after == pytest.approx(-4.0, rel=1e-2)  # the root of the error in Gv


@pytest.mark.slow
def test_the_best_integral_loop_of_a_rigid_joint_has_three_poles_of_one_real_part():
    # s^3 + (Gv/J) s^2 + (Gp/J) s + Gi/J: the sum of the poles is -Gv/J = -12, so -4 at best.
    design = make_design([0.0], [1.0], "joint-pd", gains={"Gp": 8.0, "Gv": 6.0, "Gi": 4.0})
    found = tune(
        rigid_link(inertia=0.5),
        design,
        {"gains.Gp": (1.0, 100.0), "gains.Gi": (0.1, 100.0)},
        minimise="stability.spectral_abscissa",
        subject_to=[],
        starts=1,
        evaluations=400,
        jobs=1,
    )

    np.testing.assert_allclose(found.after.stability.poles.real, -4.0, rtol=0.02)


def test_the_largest_damping_ratio_is_the_critical_one():
    # J s^2 + Gv s + Gp: a rate of 2.5 needs Gv of 2.5 at least, and critical damping has 4.
    found = tune(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=8.0, Gv=3.0),
        {"gains.Gv": (0.5, 50.0)},
        minimise="stability.min_damping_ratio",
        subject_to=["stability.spectral_abscissa<=-2.5"],
        starts=1,
        jobs=1,
    )
    known = metrics(found.after)

    assert found.feasible
    assert known["stability.min_damping_ratio"] == pytest.approx(1.0, rel=1e-4)


# Results


def test_a_result_is_the_verdict_on_its_design_and_never_worse_than_the_start():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (3.0, 12.0)},
        minimise="residual.tip_error_max",
        subject_to=["margins.phase_deg>=70"],
        starts=1,
        jobs=1,
    )
    loop = close_loop(design_controller(load_model(ARM), found.tuned), ARM)
    again = metrics(evaluate(loop))

    assert found.feasible
    assert again == metrics(found.after)
    assert again["margins.phase_deg"][0] >= 70
    assert again["residual.tip_error_max"] == pytest.approx(found.objective_after, rel=1e-6)
    assert metrics(found.before)["margins.phase_deg"][0] < 70


@pytest.mark.slow
def test_an_interrupt_while_another_start_is_sought_keeps_what_the_first_search_found(monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "coarse_search", pressed)
    arguments = {"minimise": ABSCISSA, "subject_to": [], "jobs": 1}
    found = tune(ARM, DESIGN, {"gains.Gv": (3.0, 12.0)}, starts=2, **arguments)
    alone = tune(ARM, DESIGN, {"gains.Gv": (3.0, 12.0)}, starts=1, **arguments)

    assert found.interrupted
    assert found.evaluations == alone.evaluations
    assert found.objective_after == alone.objective_after < found.objective_before


@pytest.mark.parametrize(
    ("design", "free"),
    [
        (DESIGN, "gains"),
        pytest.param("hub-lqg", "second_loop.weights.joint_error", marks=pytest.mark.slow),
        ("hub-cascade", "cascade"),
    ],
)
def test_slopes_of_the_smallest_sampling_rate_are_those_over_long_steps(design, free):
    # which is known to 1e-5: over short steps differences tell nothing
    problem = problem_of(ARM, design, [free], asked.RATE)
    start = problem.free.start
    slopes = problem.point(start).differentiated.objective()[1][0]
    step = 3e-3
    for k, slope in enumerate(slopes):
        ends = [start + sign * step * np.eye(len(start))[k] for sign in (1, -1)]
        ahead, back = (problem.point(u).objective()[0][0] for u in ends)
        assert slope == pytest.approx((ahead - back) / (2 * step), rel=0.05, abs=0.05)


def test_a_second_interrupt_keeps_the_best_that_is_verified(monkeypatch):
    judge = rounds.Rounds._judge
    verified, unverified = np.array([0.75]), np.array([0.7])

    def press_in_a_later_round(self, *_):
        self.candidates.append(verified)
        self._judge(verified, self.arms)
        self.live = SimpleNamespace(best=unverified, evaluated=0)
        raise KeyboardInterrupt

    def press_at_the_last(self, u, arms):
        if u is unverified:
            raise KeyboardInterrupt
        return judge(self, u, arms)

    monkeypatch.setattr(rounds.Rounds, "_rounds", press_in_a_later_round)
    monkeypatch.setattr(rounds.Rounds, "_judge", press_at_the_last)
    found = tune_once(ARM, DESIGN, {"gains.Gv": (3.0, 12.0)}, minimise=ABSCISSA, subject_to=[])

    assert found.interrupted
    assert found.objective_after < found.objective_before


def test_an_interrupt_while_the_result_is_described_keeps_it(monkeypatch):
    follow, calls = rounds.eigenvalue_path, []

    def press_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return follow(*arguments)

    monkeypatch.setattr(rounds, "eigenvalue_path", press_once)
    found = tune_once(ARM, DESIGN, {"gains.Gv": (3.0, 12.0)}, minimise=ABSCISSA, subject_to=[])

    assert found.interrupted
    assert found.objective_after < found.objective_before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"free": {"gains.Gp": [30.0, 50.0]}}, "tune.free: gains.Gp: expected bounds about"),
        ({"free": ["gains.Gpp"]}, "tune.free: expected one of its numbers"),
        ({"over": {"gains.Gp": [1.0, 2.0]}}, "tune.over: expected numbers of the arm"),
        ({"minimise": "residual.settling"}, "tune.minimise: expected the name of a metric"),
        ({"subject_to": ["margins.gain_db>=6m"]}, "tune.subject_to: expected a number after"),
        ({"over": {"link1.EI": "uniform(2, 1)"}}, "tune.over.link1.EI: expected two ascending"),
        ({"quantile": 0.9}, "tune.quantile: expected numbers of the arm that vary"),
    ],
)
def test_what_a_file_asks_for_is_refused_by_its_name_and_key(table, message, tmp_path):
    path = tmp_path / "own.toml"
    design = build_file(Design, load_design(DESIGN).table() | {"tune": table}, "own", path)
    with pytest.raises(InputError) as error:
        tune_once(ARM, design)
    assert str(error.value).startswith(f"{path}: {message}")
    if "quantile" not in table:  # what is given beside a file is not of the file
        with pytest.raises(InputError) as error:
            tune_once(ARM, DESIGN, **table)
        assert message.removeprefix("tune.").removeprefix("over.") in str(error.value)
        assert "tune." not in str(error.value)


@pytest.mark.slow
def test_an_arm_without_a_verdict_is_named_with_the_reason():
    heavy = {"over": {"payload.mass": 1e9}, "minimise": ABSCISSA, "jobs": 1, "starts": 1}
    found = tune("vertical-2r", "vertical-2r-pd", {"gains.Gp": (1.0, 1e4)}, **heavy)
    arm, why = found.no_verdict

    assert arm == {"truth.payload.mass": 1e9}
    assert "payload.mass = 1e+09: " in tuning_words(found)
    assert why.rstrip(".") in tuning_words(found)


@pytest.mark.slow
def test_who_interrupts_does_not_wait_for_arms_that_were_not_seen(monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "coarse_search", pressed)
    arguments = {"minimise": ABSCISSA, "subject_to": [], "jobs": 1, "starts": 2}
    varied = {"payload.mass": "*0.9:*1.1"}
    found = tune(ARM, DESIGN, {"gains.Gv": (3.0, 12.0)}, over=varied, **arguments)

    assert found.interrupted
    assert len(found.judged_on) == 3  # the nominal arm and both ends of the range
    assert found.unseen is None


@pytest.mark.slow
def test_descent_passes_cusps_of_the_abscissa():
    # Eigenvalue by eigenvalue it stalls at -4.2, where a real eigenvalue and a pair meet.
    arguments = {"minimise": "stability.spectral_abscissa", "subject_to": [], "starts": 1}
    found = tune("vertical-2r", "vertical-2r-integral", ["gains"], jobs=1, **arguments)

    assert found.objective_after < -8


@pytest.mark.slow
def test_an_unstable_start_is_made_stable_first():
    design = make_design(
        [0.0], [1.0], "joint-pd", gains={"Gp": 20.0, "Gv": 3.0, "Gi": 300.0}, loop={"duration": 4.0}
    )
    found = tune(
        ARM,
        design,
        {"gains.Gi": (0.1, 400.0)},
        minimise="tracking.tip_error_rms",
        subject_to=[],
        starts=1,
        jobs=1,
    )

    assert found.before.stability.stable is False
    assert found.after.stability.stable is True
    assert found.feasible


@pytest.mark.slow
def test_an_unstable_start_is_made_stable_first_where_limits_stand_against_that():
    # A late PID loop: half the torque asks for more rate gain, twice the torque for less. What is
    # least unstable of the two is unstable by itself.
    found = tune_once(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=20.0, Gi=100.0, loop={"delay": 0.06, "sample_time": 0.02, "duration": 4.0}),
        {"gains.Gv": (0.5, 60.0), "gains.Gp": (5.0, 100.0)},
        minimise="tracking.tip_error_rms",
        subject_to=["margins.gain_db>=10"],
    )

    assert found.before.stability.stable is False
    assert found.after.stability.stable is True
    assert not found.feasible
    assert found.constraints[0].violation < 0.6  # 4 dB, the most that others find


def test_where_no_loop_is_stable_that_is_said_and_nothing_of_limits_or_finer_models():
    found = tune_once(
        ARM,
        make_design(
            [0.0], [1.0], "joint-pd", gains={"Gp": 20.0, "Gv": 3.0, "Gi": 300.0},
            loop={"duration": 4.0},
        ),
        {"gains.Gi": (250.0, 400.0)},
        minimise="tracking.tip_error_rms",
        subject_to=[],
    )  # fmt: skip
    said = explain(found)

    assert not found.improved
    assert "No loop was found that is stable and whose run succeeds; " in said
    assert "spillover" not in said
    assert "violates" not in said


@pytest.mark.slow
def test_limits_that_cannot_be_met_end_with_the_least_violation():
    found = tune(
        rigid_link(inertia=0.5),
        rigid_pd(),
        {"gains.Gv": (0.5, 50.0)},
        minimise="effort.energy",
        subject_to=["stability.spectral_abscissa<=-8"],
        starts=1,
        jobs=1,
    )

    assert not found.feasible
    assert found.values["gains.Gv"][1] == pytest.approx(4.0, rel=1e-2)  # as fast as it gets: -4


@pytest.mark.slow
def test_limits_that_stand_against_each_other_are_named_with_what_giving_way_buys():
    # J s^2 + Gv s + Gp: a rate of 3 needs Gv >= 3, a damping ratio of 0.3 needs Gv <= 1.9.
    found = tune(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=20.0, Gv=2.0),
        {"gains.Gv": (0.5, 5.0)},
        minimise="tracking.tip_error_rms",
        subject_to=["stability.spectral_abscissa<=-3", "stability.min_damping_ratio<=0.3"],
        starts=1,
        jobs=1,
    )
    named = {one.requirement.key: one.violation for one in found.conflict}

    assert not found.feasible
    assert named == {"stability.spectral_abscissa": 0, "stability.min_damping_ratio": 0}


@pytest.mark.slow
def test_the_nearest_to_limits_that_cannot_be_kept_is_not_almost_unstable():
    # the peak of a step is Gp, which with Gv >= 1 makes the loop decay at Gp/Gv
    found = tune_once(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=2.0, Gv=2.0, kind="setpoint", loop={"duration": 10.0}),
        {"gains.Gp": (1e-3, 5.0), "gains.Gv": (1.0, 5.0)},
        minimise="residual.tip_error_max",
        subject_to=["effort.peak<=0.05", "effort.energy<=100"],
    )
    before, after = (e.stability.spectral_abscissa for e in (found.before, found.after))

    assert not found.feasible
    assert before == pytest.approx(-2, rel=1e-3)
    assert after == pytest.approx(-0.2, rel=1e-2)
    assert set(found.starts[0].multipliers) == {0, -1}
    assert "stand against each other: a decay at a tenth of the start's rate" in explain(found)
    without_energy = {one.requirement.key: one for one in found.conflict}
    assert without_energy["effort.peak"].violation == 0


@pytest.mark.slow
def test_a_limit_of_the_abscissa_replaces_a_tenth_of_the_decay_of_the_start():
    # the peak of a step is Gp, which falls with the rate of the loop
    design = rigid_pd(Gp=50.0, Gv=8.0, kind="setpoint", loop={"duration": 8.0})

    def tuned(limit):
        return tune(
            rigid_link(inertia=0.5),
            design,
            {"gains.Gp": (0.01, 100.0), "gains.Gv": (0.01, 20.0)},
            minimise="effort.peak",
            subject_to=[limit],
            starts=1,
            jobs=1,
        )

    rate = -tuned("residual.tip_error_max<=2").before.stability.spectral_abscissa
    kept = tuned("residual.tip_error_max<=2")
    own = tuned("stability.spectral_abscissa<=-0.01")
    assert kept.after.stability.spectral_abscissa == pytest.approx(-rate / 10, rel=1e-2)
    assert "a decay at a tenth of the start's rate" in explain(kept)
    assert own.after.stability.spectral_abscissa > -rate / 20
    assert own.objective_after < 0.5 * kept.objective_after


def test_peaks_at_a_torque_limit_have_slopes_as_an_objective_too():
    design = rigid_pd(Gp=20.0, Gv=6.0, kind="setpoint", loop={"duration": 4.0})
    found = tune(
        rigid_link(inertia=0.5, limits={"torque": 4.0}),
        design,
        {"gains.Gp": (1.0, 40.0), "gains.Gv": (1.0, 12.0)},
        minimise="effort.peak",
        subject_to=["stability.spectral_abscissa<=-0.5"],
        starts=1,
        jobs=1,
    )

    assert found.objective_before == 4.0
    assert found.objective_after < 2.0
    assert all(value >= found.objective_after * (1 - 1e-6) for value in found.nearby.values())


@pytest.mark.slow
def test_arms_that_vary_are_watched_where_limits_are_lost():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (2.0, 12.0)},
        minimise="stability.spectral_abscissa",
        subject_to=["residual.tip_error_end<=0.02"],
        over={"payload.mass": "*0.8:*1.5"},
        starts=1,
        unseen=4,
        jobs=1,
    )

    assert found.feasible
    assert found.unseen.n == found.unseen.met == 4
    assert found.unseen.objective <= found.objective_after + 1e-6


@pytest.mark.slow
def test_a_settling_time_that_holds_the_objective_back_is_kept_by_the_verdict():
    # the error touches the band at the limit: the verdict's own run must not leave it there
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gp": (5.0, 100.0), "gains.Gv": (1.0, 100.0)},
        minimise="residual.tip_error_max",
        subject_to=["residual.settling_time<=1.5"],
        starts=1,
        jobs=1,
    )
    (limit,) = found.constraints
    assert limit.met
    assert limit.value <= 1.5
    assert found.objective_after < 0.19  # a grid of 21 by 21 gain sets has 0.1889


@pytest.mark.slow
def test_the_objective_of_several_arms_is_that_of_the_worst():
    # Each payload has gains of its own that are best: those of the nominal arm are not the answer.
    truth = BasisChoice(kind="elements", order=2)  # of shapes that do not depend on the load
    arguments = {
        "minimise": "stability.spectral_abscissa",
        "subject_to": [],
        "starts": 1,
        "jobs": 1,
    }
    arguments["truth_basis"] = truth
    free = {"gains.Gv": (2.0, 30.0)}
    found = tune(ARM, DESIGN, free, over={"payload.mass": "*0.5:*2"}, unseen=3, **arguments)
    alone = tune(ARM, DESIGN, free, **arguments)

    def worst_of(design):
        arms = [apply_settings(load_model(ARM), [f"payload.mass=*{f}"]) for f in (1, 0.5, 2)]
        controller = design_controller(arms[0], design)
        loops = [close_loop(controller, arm, truth) for arm in arms]
        return max(metrics(evaluate(loop))["stability.spectral_abscissa"] for loop in loops)

    assert found.shape_error is None
    assert found.objective_after == pytest.approx(worst_of(found.tuned), rel=1e-5)
    assert found.objective_after < worst_of(alone.tuned) - 1e-2
    assert found.objective_after < found.objective_before


def test_cases_that_were_learned_stay_when_arms_join():
    problem = problem_of(ARM, DESIGN, ["gains"], "tracking.tip_error_rms")
    limits = (asked.read_requirement("margins.phase_deg>=30"),)
    problem = watched_over(replace(problem, requirements=limits, spectral=()), ({},))
    learned = Case(gains=(1.5,))
    both = watched_over(with_cases(problem, [(learned,)]), ({}, {"truth.payload.mass": 1.2}))

    assert learned in both.spectral[1].cases
    assert {case.arm for case in both.spectral[1].cases} == {0, 1}


def test_numbers_that_a_design_refuses_together_are_a_lost_place():
    """A notch is refused where its zeros are damped more than its poles."""
    notch = {"kind": "notch", "frequency": 50.0, "zero_damping": 0.1, "pole_damping": 0.5}
    free = ["filters[1].zero_damping=0.01:0.4", "filters[1].pole_damping=0.2:1"]
    problem = problem_of(rigid_link(), rigid_pd(filters=[notch]), free, "residual.tip_error_max")

    assert np.isfinite(problem.at(problem.free.start, slopes=False).objective)
    assert problem.at(np.array([1.0, 0.0]), slopes=False).objective == np.inf


def test_an_arm_that_a_file_would_refuse_is_a_lost_arm():
    arms = ({}, {"truth.payload.mass": -0.1})
    limits = ["margins.min_sampling_rate<=500", "margins.phase_deg>=30"]
    over = {"payload.mass": "normal(0.25, 0.05)"}
    known = load_model(ARM), load_design(DESIGN)
    problem = read_problem(*known, (), minimise=ABSCISSA, subject_to=limits, over=over)
    both, u = watched_over(problem, arms), problem.free.start
    judged = verified(both, u, verdict_on(both, u, arms[1]), arms[1])

    assert both.at(u, slopes=False).objective == np.inf
    assert "payload.mass" in judged.failed
    assert judged.violation == np.inf


def test_what_is_wrong_with_the_file_itself_is_no_lost_place(monkeypatch):
    def fail(*_):
        raise ComputationError("why")

    monkeypatch.setattr("flexctl.search.tuning.loops_of_arms.compile_verdict", fail)
    with pytest.raises(ComputationError, match="why"):  # of a design that no other test has
        problem_of(rigid_link(), rigid_pd(Gp=8.125), ["gains"], "residual.tip_error_max")


def test_drawn_arms_that_a_file_would_refuse_are_left_out():
    """Else no design would keep its limits on one of a negative mass."""
    known, over = (load_model(ARM), load_design(DESIGN)), {"payload.mass": "normal(0.2, 0.2)"}
    problem = read_problem(*known, (), minimise=ABSCISSA, subject_to=[], over=over)
    asked_for = asked_of(known[1], (), ABSCISSA, [], over, untied=False, quantile=0.9)
    effort = {"starts": 1, "evaluations": 1, "seed": 0, "jobs": 1}
    work = rounds.Rounds(problem, asked_for, Memory(None, problem), **effort)
    drawn, others = problem.possible.draw(40, seed=1), work._others(40, 1)

    assert len(others) < len(drawn)
    assert all(arm["truth.payload.mass"] >= 0 for arm in [*work.arms[1:], *others])


@pytest.mark.slow
def test_unseen_arms_are_none_of_those_that_were_learned_from():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (2.0, 30.0)},
        minimise="stability.spectral_abscissa",
        subject_to=["residual.tip_error_end<=0.02"],
        over={"payload.mass": "*0.5:*2"},
        starts=1,
        unseen=3,
        jobs=1,
    )

    assert found.unseen.n == 3
    assert found.unseen.worst not in found.arms


@pytest.mark.slow  # two arms are derived anew
def test_kept_shapes_of_arms_that_vary_are_told_or_made_anew():
    arm, design = load_model("theodore-ghosal-rrp"), load_design("rrp-composite")
    truth = BasisChoice(kind="modes", order=2)
    arguments = {"minimise": "stability.spectral_abscissa", "subject_to": [], "starts": 1}
    arguments |= {"over": {"payload.mass": [0.05, 0.2]}, "unseen": 0, "truth_basis": truth}
    free = {"gains.Gv": (20.0, 80.0)}
    kept, rebuilt = (
        tune(arm, design, free, shapes=shapes, evaluations=6, **arguments)
        for shapes in ("kept", "rebuilt")
    )

    assert "Mode shapes are those of the nominal arm" in explain(kept)
    assert rebuilt.shape_error is None
    arms = [arm, *(apply_settings(arm, [f"payload.mass={mass}"]) for mass in (0.05, 0.2))]
    controller = design_controller(arm, rebuilt.tuned)
    worst = max(
        metrics(evaluate(close_loop(controller, one, truth)))["stability.spectral_abscissa"]
        for one in arms
    )
    assert rebuilt.objective_after == pytest.approx(worst, rel=1e-6)


# Finer models, limits that cannot be kept, defaults, proofs


@pytest.mark.slow
def test_a_tuned_design_does_not_drive_modes_of_finer_models():
    # Ever less effort moves the abscissa to the left on two modes, and spills over on six.
    arm, design, key = "subudhi-morris-2r", "subudhi-morris-lqr", "fast_loop.weights.effort"
    found = tune(
        arm,
        design,
        {key: (3e-7, 0.3)},
        minimise=ABSCISSA,
        subject_to=[],
        truth_basis=BasisChoice(order=2),
        starts=1,
        jobs=1,
    )
    problem = read_problem(
        load_model(arm),
        load_design(design),
        {key: (3e-7, 0.3)},
        minimise=ABSCISSA,
        subject_to=[],
        truth_basis=BasisChoice(order=2),
    )
    lowest, tuned = np.zeros(1), problem.free.numbers[0].place(found.values[key][1])
    value = problem.value(problem.point(lowest, slopes=False))

    assert found.feasible
    assert unstable_orders(found.after) == []
    assert {case.order for case in problem.spillover(lowest)} == {4, 6, 7, 8, 9}
    assert problem.spillover(np.array([tuned - 0.05]))  # no further without it
    assert value < found.objective_after < found.objective_before


@pytest.mark.slow
def test_poses_of_the_motion_that_spill_over_are_cases_as_a_verdict_finds_them(tmp_path):
    arm, design = load_model("planar-two-link"), load_design("two-link-decoupling")
    key = "second_loop.weights.effort"
    problem = read_problem(arm, design, {key: None}, minimise=ABSCISSA, subject_to=[])
    (verdict,) = compare(arm, design, baseline=False).evaluations
    times = {order: t for order, t, _ in verdict.stability.spilling}
    found = problem.spillover(problem.free.start)
    with Memory(tmp_path / "kept.db", problem) as memory:
        first = memory.spillover(problem, problem.free.start)
        again = memory.spillover(problem, problem.free.start)

    assert set(times) == {7, 8, 9}
    assert set(found) == {Case(order=9), *(Case(order=k, time=t) for k, t in times.items())}
    assert min(found.values()) > 0
    assert found == first == again


@pytest.mark.slow
def test_a_start_that_is_unstable_on_finer_models_is_mended():
    # The file's design is made for more than two modes; with a smaller weight it spills over.
    design = load_design("subudhi-morris-decoupling")
    weights = {**design.table()["second_loop"]["weights"], "effort": 0.05}
    table = {key: part for key, part in design.table().items() if key != "expect"}
    table["second_loop"] = {**table["second_loop"], "weights": weights}
    key, two = "second_loop.weights.effort", BasisChoice(order=2)
    arguments = {"minimise": ABSCISSA, "subject_to": [], "truth_basis": two, "jobs": 1}
    soft = build_file(Design, table, "soft", None)
    stuck = tune("subudhi-morris-2r", soft, {key: (0.04, 0.06)}, starts=1, **arguments)
    found = tune("subudhi-morris-2r", soft, {key: (0.04, 4.0)}, starts=1, **arguments)

    assert not stuck.feasible
    assert unstable_orders(stuck.after) == [4, 6, 7, 8, 9]
    assert "on other models of the arm, of 4, 6, 7, 8 and 9 modes per link" in explain(stuck)
    assert found.feasible
    assert unstable_orders(found.after) == []


@pytest.mark.slow
def test_where_limits_cannot_be_kept_the_nearest_design_is_that_of_the_verified_violation():
    # A smaller rate gain has more delay margin and less phase margin; the delay is further off.
    limits = ["margins.phase_deg>=89", "margins.delay_seconds>=0.2"]
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (5.0, 7.0)},
        minimise=ABSCISSA,
        subject_to=limits,
        truth_basis=BasisChoice(order=2),
        starts=1,
        evaluations=10,
        jobs=1,
    )

    assert not found.feasible
    assert found.values["gains.Gv"][1] == pytest.approx(5.0)
    assert found.starts[0].violation == pytest.approx(max(c.violation for c in found.constraints))


@pytest.mark.slow
def test_short_searches_without_a_limit_are_no_longer_than_a_search_may_be():
    limits = ["stability.spectral_abscissa<=-3", "stability.min_damping_ratio<=0.3"]
    found = tune_once(
        rigid_link(inertia=0.5),
        rigid_pd(Gp=20.0, Gv=2.0),
        {"gains.Gv": (0.5, 5.0), "gains.Gp": (19.0, 21.0)},
        minimise="tracking.tip_error_rms",
        subject_to=limits,
        evaluations=3,
    )

    assert not found.feasible
    assert len(found.conflict) == 2
    assert max(one.evaluations for one in found.conflict) <= 4 * 3 + 3  # of eigenvalues alone, runs


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1.516, 1.522])  # between two times of the run, 6 ms apart
def test_a_settling_time_between_two_samples_is_reached_and_kept(limit):
    # it falls with Gp, and the effort grows: the best gain is that of the limit
    loop = {"duration": 6.0, "settle_within": 0.01}
    reference = {"kind": "cycloid", "from": [0.0], "to": [np.pi / 2], "duration": 1.0}
    table = load_design(DESIGN).table() | {"reference": reference, "loop": loop}
    table |= {"gains": {"Gp": [30.0], "Gv": [30.0]}, "expect": {}}
    design = Design.model_validate({**table, "name": "slow"})
    found = tune(
        ARM,
        design,
        {"gains.Gp": (15.0, 60.0)},
        minimise="effort.rms",
        subject_to=[f"residual.settling_time<={limit}"],
        starts=1,
        jobs=1,
        evaluations=30,
    )

    assert found.feasible
    assert limit - 1e-3 < metrics(found.after)["residual.settling_time"] <= limit
    assert found.objective_after < found.objective_before


def test_a_late_error_exceeds_the_band_where_the_verdict_settles_later():
    design = load_design(DESIGN)
    loop = close_loop(design_controller(load_model(ARM), design), ARM)
    run = simulate(loop)
    settled = judge_residual(run, loop.controller).settling_time
    for after in settled + np.array([-0.05, -0.011, -1e-3, 2e-5, 1e-3, 0.013]):
        largest = Peaks(key="residual.settling_time", after=after).largest(loop, run)
        assert (largest > -np.log1p(-1e-3)) == (settled > after)  # in a band 0.1 % narrower


@pytest.mark.slow
def test_the_shortest_settling_time_ends_where_a_later_peak_touches_the_band():
    """It falls with Gp by 0.6 % to an edge at 51.2; steps of the time tried alone stop before it.

    The error after 0.999 of that time, and the later peak, hold it: their gradients cancel.
    """
    found = tune_once(ARM, "hub-pid", {"gains.Gp": (45.0, 60.0)}, subject_to=[], evaluations=60)
    loop = close_loop(design_controller(ARM, load_design("hub-pid")), ARM)
    sets = [{"gains.Gp": float(x)} for x in np.linspace(45.0, 60.0, 61)]
    times = [one.residual.settling_time for one in evaluate_many(loop, sets)]

    assert found.objective_after < min(times) * (1 + 1e-3)
    assert found.objective_after < found.objective_before * (1 - 5e-3)
    again = tune_once(ARM, tuned_design(found), evaluations=60)
    for one in (found, again):
        assert one.starts[0].status == "stationary"
        assert one.starts[0].stationarity < 1e-6
        assert not any(step.violation for step in one.starts[0].history)
    assert again.objective_after == pytest.approx(found.objective_after, rel=1e-4)


def test_a_late_error_is_counted_from_the_end_that_the_motion_has_with_these_gains():
    shaper = {"kind": "ZV", "frequency": "loop1"}  # a stiffer loop ends its motion earlier
    reference = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 0.5, "shaper": shaper}
    loop = {"duration": 5.0, "settle_within": 1e-5}
    design = rigid_pd(Gi=2.0, reference=reference, loop=loop)
    arm, after = rigid_link(dh={"a": 1.0}), 0.05
    limits = {"minimise": ABSCISSA, "subject_to": [f"residual.settling_time<={after}"]}
    problem = read_problem(arm, design, ["gains.Gp"], **limits)
    u = np.array([0.7])
    verdict = verdict_on(problem, u, {})
    own = Peaks(key="residual.settling_time", after=after)
    late, of_the_file = (
        own.largest(one, verdict.trajectory) for one in (problem.loop(0, u), problem.loop(0))
    )

    assert late > of_the_file + 0.01 > 1
    assert verified(problem, u, verdict, {}).violations == (late,)


def test_a_place_without_a_run_has_no_time_to_minimise():
    lost = Pieces.of([np.inf], np.zeros((1, 2)), [np.inf], np.zeros((1, 2)))
    whole = _timed(lost, 0.5, np.zeros(3))  # there were three pieces before its derivatives

    assert whole.objective == np.inf
    assert whole.gradients.shape == (1, 3)
    assert whole.constraint_gradients.shape == (2, 3)


@pytest.mark.slow
def test_what_a_settling_time_limit_lacks_is_told_as_a_multiple_of_the_band():
    # J s^2 + Gv s + Gp with Gp <= 1 is slower than 2 rad/s: at 0.5 s it is far from 5 mm
    found = tune_once(
        rigid_link(inertia=0.5, dh={"a": 1.0}),
        rigid_pd(Gp=1.0, Gv=1.0, kind="setpoint", loop={"duration": 20.0, "settle_within": 0.005}),
        {"gains.Gp": (0.5, 1.0), "gains.Gv": (0.5, 3.0)},
        minimise="effort.energy",
        subject_to=["residual.settling_time<=0.5", "effort.peak<=0.4"],  # it is Gp at least
        evaluations=20,
    )
    without_peak = {one.requirement.key: one for one in found.conflict}["effort.peak"]

    assert not found.feasible
    assert without_peak.worst.key == "residual.settling_time"
    times = np.exp(without_peak.violation)
    assert 100 < times < 200  # of at most 200, the whole step
    assert (
        "Without peak command at most 0.4 N m: settling time at most 0.5 s is still violated "
        f"(the tip error is up to {times:.3g} times the band after that)"
    ) in explain(found)


@pytest.mark.slow_but("3-limit")
@pytest.mark.parametrize(("evaluations", "status"), [(3, "limit"), (100, "stalled")])
def test_a_search_for_a_short_settling_time_says_how_it_ended(evaluations, status):
    found = tune_once(
        ARM,
        DESIGN,
        {"gains.Gv": (1.0, 20.0)},
        minimise="residual.settling_time",
        subject_to=[],
        evaluations=evaluations,
    )

    assert found.starts[0].status == status
    assert np.isnan(found.starts[0].stationarity) == (status == "limit")
    assert ("used up its evaluations" in explain(found)) == (status == "limit")


@pytest.mark.slow
@pytest.mark.parametrize("over", [{}, {"payload.mass": [1.0, 12.0]}])
def test_an_arm_that_its_actuators_cannot_hold_is_refused_before_any_search(over):
    # m g l of the elbow with 12 kg, and of the shoulder with 5 N m
    arm = load_model("vertical-2r")
    weak = arm if over else apply_settings(arm, ["link1.limits.torque=5"])
    joint, torque = ("joint2", "51.9 N m") if over else ("joint1", "19.8 N m")
    with pytest.raises(InputError, match=f"{joint}: expected an actuator .* {torque} .* got a lim"):
        tune_once(weak, "vertical-2r-pd", over=over)


def test_by_default_half_the_decay_is_kept_where_it_shows_within_the_run():
    loop = read_problem(load_model(ARM), load_design(DESIGN), ["gains"]).loop(0)
    limits = read_problem(load_model(ARM), load_design(DESIGN), ["gains"]).requirements
    (limit,) = (one for one in limits if one.key == ABSCISSA)

    known = metrics(evaluate(loop))[ABSCISSA]
    assert limit.limit.value == pytest.approx(known / 2, rel=5e-3)
    slow = rigid_pd(Gp=0.01, Gv=0.001)
    problem = read_problem(rigid_link(), slow, ["gains"])
    assert ABSCISSA not in [one.key for one in problem.requirements]


def test_by_default_the_delay_margin_is_not_thin_or_half_of_what_the_file_has():
    def limits(design, arm):
        return [
            one.limit.value
            for one in read_problem(arm, design, ["gains"]).requirements
            if one.key == "margins.common_delay_seconds"
        ]

    assert limits(load_design(DESIGN), load_model(ARM)) == [2e-3]  # the file has 15 ms
    stiff = rigid_pd(Gp=4e4, Gv=4e2)
    loop = read_problem(rigid_link(), stiff, ["gains"]).loop(0)
    own = metrics(evaluate(loop))["margins.common_delay_seconds"]
    assert own < 2e-3
    assert limits(stiff, rigid_link()) == [pytest.approx(own / 2, rel=5e-3)]
    sampled = rigid_pd(loop={"sample_time": 5e-3, "delay": 0.0})
    assert limits(sampled, rigid_link()) == [5e-3]
    assert limits(rigid_pd(Gp=8.0, Gv=0.01, loop={"sample_time": 0.1}), rigid_link()) == []


@pytest.mark.slow
def test_a_tuned_loop_is_proven_to_be_stable():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (5.0, 7.0)},
        minimise=ABSCISSA,
        subject_to=[],
        truth_basis=BasisChoice(order=2),
        starts=1,
        jobs=1,
    )

    assert found.certificate.proven
    assert found.objective_after <= found.certificate.spectral_abscissa < 0
    assert "proven in interval arithmetic" in explain(found)


@pytest.mark.slow
def test_a_limit_of_at_least_is_searched_as_one():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gp": (1.0, 400.0)},
        minimise="effort.energy",
        subject_to=["effort.peak>=6"],
        truth_basis=BasisChoice(order=2),
        starts=1,
        evaluations=20,
        jobs=1,
    )

    assert found.feasible
    assert found.constraints[0].value == pytest.approx(6.0, rel=1e-3)
    assert found.objective_after < found.objective_before


@pytest.mark.slow
def test_a_weight_of_a_settling_time_does_not_matter_for_the_gains():
    one, two = (
        tune(
            ARM,
            DESIGN,
            {"gains.Gv": (1.0, 20.0)},
            minimise=f"{weight}*residual.settling_time",
            subject_to=[],
            truth_basis=BasisChoice(order=2),
            starts=1,
            evaluations=25,
            jobs=1,
        )
        for weight in (1, 2)
    )

    assert one.values == two.values
    assert two.objective_after == pytest.approx(2 * one.objective_after)
    assert one.improved


@pytest.mark.parametrize(
    "text",
    [
        "residual.settling_time+0.01*effort.energy",
        "1e+1*residual.settling_time + 2.e-1*effort.energy",
        "effort.energy+residual.settling_time",
    ],
)
def test_sums_are_read_whatever_letter_a_metric_ends_with(text):
    (weights,) = asked.read_objective(text).sums

    assert set(weights) == {"residual.settling_time", "effort.energy"}


def _sampled_pid(free):
    """Free numbers of a PID of the single link at 1 kHz, with a derivative up to 500 rad/s."""
    design = load_design("hub-pid")
    gains = design.gains.model_copy(update={"derivative_filter": (500.0,)})
    loop = design.loop.model_copy(update={"sample_time": 1e-3})
    design = design.model_copy(update={"gains": gains, "loop": loop})
    return {one.key: one for one in read_problem(load_model(ARM), design, free).free.numbers}


def test_default_bounds_are_narrowed_to_what_the_design_allows():
    free = _sampled_pid(["gains"])
    nyquist = np.pi / 1e-3
    assert nyquist * (1 - 2e-3) < free["gains.derivative_filter"].upper < nyquist
    assert free["gains.derivative_filter"].lower == 25.0
    assert free["gains.Gp"].upper == 1000.0  # 20 times the value, as nothing forbids it


def test_bounds_that_are_given_are_not_narrowed():
    with pytest.raises(InputError, match=r"expected bounds that the design allows, got 4000"):
        _sampled_pid({"gains.derivative_filter": (50.0, 4000.0)})
