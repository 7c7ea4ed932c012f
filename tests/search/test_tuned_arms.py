"""Arms that tuning verifies on, and a share of them on which limits are kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl import (
    close_loop,
    design_controller,
    evaluate,
    explain,
    load_design,
    load_model,
    tune,
)
from flexctl.errors import InputError
from flexctl.model import BasisChoice, apply_settings
from flexctl.search.samples import Variation, read_variation
from flexctl.search.tuning import rounds
from flexctl.search.tuning.arms import ArmSet
from flexctl.search.tuning.asked import asked_of
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.requirements import read_requirement
from flexctl.search.tuning.rounds import _constraint, _Judged
from flexctl.search.tuning.spectra import Case
from flexctl.search.tuning.verification import Verified, verdict_on
from flexctl.verdict import linear_metrics
from tests.model.test_tune_table import with_tune

ARM, DESIGN = "single-link-hub", "hub-pd"
ABSCISSA = "stability.spectral_abscissa"
TRUTH = BasisChoice(kind="elements", order=2)  # of shapes that do not depend on the load


def arms_of(**specs):
    return ArmSet(variations=tuple(read_variation(key, spec) for key, spec in specs.items()))


def table(**columns):
    return ArmSet(
        variations=tuple(
            Variation(key=key, kind="table", numbers=numbers) for key, numbers in columns.items()
        )
    )


def test_arms_of_lists_are_all_their_combinations():
    some = arms_of(a="1, 2, 5", b="3, 4")
    expected = [{"a": a, "b": b} for a in (1.0, 2.0, 5.0) for b in (3.0, 4.0)]

    assert some.corners() == some.sample(0.9, seed=0) == expected


def test_arms_of_a_table_are_its_rows():
    assert table(a=(1.0, 2.0), b=(3.0, 4.0)).corners() == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert table(a=(1.0, 2.0), b=(3.0, 4.0)).draw(5, seed=0) == []


def test_tables_of_unequal_length_are_refused():
    with pytest.raises(
        InputError, match=r"over: expected tables with as many rows .*, got 1 and 2"
    ):
        table(a=(1.0, 2.0), b=(3.0,))


def asked_over(**over):
    named = {f"truth.{key}": one for key, one in over.items()}
    return asked_of(load_design(DESIGN), (), None, None, named, untied=False)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_design_file_has_rows_of_a_table_as_rows(scaled):
    columns = {"a": (1.0, 2.0), "b": (3.0, 4.0)}
    over = {
        key: Variation(key=key, kind="table", numbers=numbers, scaled=scaled)
        for key, numbers in columns.items()
    }
    written = with_tune({"over": asked_over(**over).specs}).tune.over
    again = ArmSet(variations=tuple(read_variation(key, one) for key, one in written.items()))

    assert again.all == [{"truth.a": 1, "truth.b": 3}, {"truth.a": 2, "truth.b": 4}]
    assert all(one.scaled is scaled for one in again.variations)


@pytest.mark.parametrize(
    ("one", "written"),
    [
        (np.array([0.1, 0.2]), (0.1, 0.2)),
        (range(2), (0.0, 1.0)),
        ([np.int64(1), np.int64(2)], (1.0, 2.0)),
        (np.float64(0.5), 0.5),
        ("1:2", "1:2"),
    ],
)
def test_a_design_file_has_numbers_of_any_kind_as_plain_ones(one, written):
    specs = asked_over(a=one).specs

    assert specs == {"truth.a": written}
    assert with_tune({"over": specs}).tune.over == specs


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"minimise": [5]}, "minimise[1]: expected str, got int"),
        ({"over": {5: "1:2"}}, "over[1]: expected str, got int"),
        ({"over": {"payload.mass": [0.1, "x"]}}, "payload.mass: expected real numbers, got "),
        ({"over": {"payload.mass": [0.1, None]}}, "payload.mass: expected real numbers, got "),
        ({"over": {"payload.mass": "table(1, x)"}}, "payload.mass: expected FROM:TO:COUNT, "),
        ({"over": {"payload.mass": "tabel(1, 2)"}}, "payload.mass: expected normal or uniform "),
    ],
)
def test_arguments_of_other_kinds_are_refused_in_one_line(arguments, expected):
    with pytest.raises(InputError) as error:
        tune(ARM, DESIGN, **arguments)

    assert str(error.value).startswith(expected)


def test_rows_of_a_table_stay_together_beside_a_range():
    both = ArmSet(
        variations=(*table(a=(1.0, 2.0), b=(3.0, 4.0)).variations, read_variation("c", "5:6"))
    )

    assert len(both.corners()) == 4
    for arm in both.draw(20, seed=1):
        assert arm["b"] == arm["a"] + 2
        assert 5 <= arm["c"] <= 6


def test_a_list_beside_a_range_keeps_all_its_values():
    """A resonance in the middle of a list is found by no end of it."""
    some = arms_of(a="1, 2, 5", b="0:1")
    expected = [{"a": a, "b": b} for a in (1.0, 2.0, 5.0) for b in (0.0, 1.0)]

    assert some.corners() == expected
    assert {arm["a"] for arm in some.draw(20, seed=0)} == {1.0, 2.0, 5.0}


def test_a_list_beside_many_ranges_has_each_of_its_values_once():
    found = arms_of(a="1, 2, 3, 5", b="0:1", c="0:1", d="0:1").corners()

    assert len(found) == 10
    assert {arm["a"] for arm in found} == {1.0, 2.0, 3.0, 5.0}


def test_arms_that_lists_do_not_name_are_drawn_between_their_ends():
    """They verify a result on arms that tuning has not seen."""
    drawn = arms_of(a="1, 2, 5", b="3, 4", c="6").draw(5, seed=0)

    assert len(drawn) == 5
    for arm in drawn:
        assert 1 < arm["a"] < 5
        assert 3 < arm["b"] < 4
        assert arm["c"] == 6


def test_of_many_corners_some_are_taken_evenly():
    found = arms_of(a="0:1:1000", b="0:1").corners()

    assert len(found) == 200
    assert (found[0], found[-1]) == ({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0})


def test_arms_of_many_ranges_have_one_end_at_a_time():
    found = arms_of(a="0:1", b="0:1", c="0:1", d="0:1").corners()

    assert len(found) == 8
    assert all(sum(x in (0, 1) for x in arm.values()) == 1 for arm in found)


def test_enough_arms_are_drawn_for_a_quantile_to_leave_two_out():
    some = arms_of(a="normal(1, 0.1)")

    assert len(some.sample(0.8, seed=0)) == 20
    assert len(some.sample(0.98, seed=0)) == 100


def test_orders_are_drawn_as_whole_numbers_and_each_arm_once():
    found = arms_of(**{"truth.elements": "2:5"}).draw(50, seed=0)

    assert {arm["truth.elements"] for arm in found} == {2.0, 3.0, 4.0, 5.0}
    assert len(found) == 4


def test_a_number_with_one_value_is_set_on_every_arm():
    assert all(arm["a"] == 7.0 for arm in arms_of(a="7", b="0:1").draw(4, seed=0))


@pytest.mark.slow
def test_a_share_of_the_arms_has_the_objective_that_a_grid_of_gains_has():
    factors = np.array([0.2, 0.5, 1.0, 1.5, 2.0])
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (2.0, 40.0)},
        over={"payload.mass": ", ".join(f"*{x:g}" for x in factors)},
        quantile=0.8,
        minimise=ABSCISSA,
        subject_to=[],
        starts=1,
        jobs=1,
        truth_basis=TRUTH,
    )
    arm = load_model(ARM)
    controller = design_controller(arm, load_design(DESIGN))
    loops = [
        close_loop(controller, apply_settings(arm, [f"payload.mass=*{x}"]), TRUTH) for x in factors
    ]

    def of_four(Gv):
        """What four of five arms reach, and the nominal one."""
        moved = [loop.at({"gains.Gv": np.array([Gv])}) for loop in loops]
        own = [linear_metrics(loop)[ABSCISSA] for loop in moved]
        return max(sorted(own)[3], own[2])

    grid = min(map(of_four, np.geomspace(2.0, 40.0, 80)))
    assert of_four(found.values["gains.Gv"][1]) == pytest.approx(found.objective_after, rel=1e-9)
    assert grid - 0.02 < found.objective_after <= grid
    assert "on the nominal arm and 80 % of 5 others" in explain(found)
    assert found.quantile == 0.8


@pytest.mark.parametrize(
    ("quantile", "over", "expected"),
    [
        (0.9, None, "quantile: expected numbers of the arm that vary (over), got none"),
        (0.2, {"payload.mass": "1:2"}, "quantile: expected a share in 0.5 .. 1, got 0.2"),
        ("most", {"payload.mass": "1:2"}, "quantile: expected a share in 0.5 .. 1, got 'most'"),
        (np.nan, {"payload.mass": "1:2"}, "quantile: expected a share in 0.5 .. 1, got nan"),
    ],
)
def test_a_quantile_is_a_share_of_arms_that_vary(quantile, over, expected):
    with pytest.raises(InputError) as error:
        tune(ARM, DESIGN, over=over, quantile=quantile)

    assert str(error.value) == expected


def test_a_quantile_stands_in_the_design_file():
    assert with_tune({"over": {"payload.mass": "1:2"}, "quantile": 0.9}).tune.quantile == 0.9
    with pytest.raises(InputError, match=r"tune\.quantile: expected .*0\.5.*, got 0\.3"):
        with_tune({"quantile": 0.3})


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("residual.settling_time<=-1", "expected a value of at least 0"),
        ("margins.phase_deg>=400", "expected a value of at most 180"),
        ("margins.phase_deg>180", "expected a value of less than 180"),
        ("effort.saturated_seconds<0", "expected a value of more than 0"),
        ("stability.min_damping_ratio>=1.2", "expected a value of at most 1"),
        ("stiffness.exact.path_alpha_lower<=-2", "expected a value of at least -1"),
        ("stiffness.exact.path_growth<=0.9", "expected a value of at least 1"),
        ("residual.settling_time<=10", "expected a time of at most the 3 s that are run after"),
    ],
)
def test_limits_that_no_loop_can_keep_are_refused(limit, expected):
    with pytest.raises(InputError, match=f"subject_to: {expected}.*, got"):
        tune(ARM, DESIGN, subject_to=[limit])


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("stiffness.exact.alpha_lower>=-0.3", "stiffness.exact.alpha_lower <= NUMBER, as less"),
        ("stiffness.exact.path_alpha_lower>-0.3", "path_alpha_lower <= NUMBER, as less"),
        ("margins.min_sampling_rate>=100", "margins.min_sampling_rate <= NUMBER, as less"),
        ("neglected.scaled_peak>=2", "neglected.scaled_peak <= NUMBER, as less"),
        ("margins.sensitivity_peak>=2", "margins.sensitivity_peak <= NUMBER, as less"),
        ("stiffness.exact.alpha_upper<=0.3", "stiffness.exact.alpha_upper >= NUMBER, as more"),
    ],
)
def test_limits_of_margins_in_the_wrong_direction_are_refused(limit, expected):
    with pytest.raises(InputError, match=f"subject_to: expected .*{expected} of it is better"):
        tune(ARM, DESIGN, subject_to=[limit])


def test_many_arms_that_a_table_names_are_taken_evenly():
    many = table(a=tuple(np.arange(1000.0)))

    for arms in (many.corners(), many.sample(0.9, seed=0)):
        assert len(arms) == 200
        assert arms[0] == {"a": 0.0}
        assert arms[-1] == {"a": 999.0}


@pytest.mark.slow
def test_a_limit_is_told_on_the_arm_where_it_is_worst_though_it_is_kept_on_all():
    found = tune(
        ARM,
        DESIGN,
        {"gains.Gv": (2.0, 40.0)},
        over={"payload.mass": "*0.2:*3"},
        minimise=ABSCISSA,
        subject_to=["margins.phase_deg>=30"],
        starts=1,
        evaluations=20,
        unseen=0,
        jobs=1,
        truth_basis=TRUTH,
    )
    arm = load_model(ARM)
    controller = design_controller(arm, load_design(DESIGN))
    phases = [
        evaluate(
            close_loop(controller, apply_settings(arm, [f"payload.mass=*{x}"]), TRUTH).at(
                {"gains.Gv": np.array([found.values["gains.Gv"][1]])}
            )
        ).margins.phase_deg[0]
        for x in (0.2, 1.0, 3.0)
    ]

    assert found.constraints[0].value == pytest.approx(min(phases), rel=1e-6)
    assert min(phases) < phases[1] - 1


@pytest.mark.slow
def test_each_place_is_judged_once_on_each_arm(monkeypatch):
    judged = []

    def spy(problem, u, arm):
        judged.append((u.tobytes(), tuple(arm.items())))
        return verdict_on(problem, u, arm)

    monkeypatch.setattr(rounds, "verdict_on", spy)
    tune(
        ARM,
        DESIGN,
        {"gains.Gv": (2.0, 40.0)},
        over={"payload.mass": "*0.5:*2"},
        minimise=ABSCISSA,
        subject_to=[],
        starts=1,
        evaluations=10,
        unseen=2,
        jobs=1,
        truth_basis=TRUTH,
    )

    assert len(judged) > 6
    assert len(judged) == len(set(judged))


@pytest.mark.parametrize("times", [(1.2, 1.7, 1.925), (1.2, 1.925, 1.7), (1.7, 1.925, np.nan)])
def test_a_broken_limit_is_told_where_its_value_is_worst(times):
    # violations are of the error after the limit: the largest need not be that of the latest arm
    problem = read_problem(
        load_model("single-link-hub"),
        load_design("hub-pd"),
        [],
        subject_to=["residual.settling_time<=1.5"],
    )
    beyond = (0.0, 2.0, 0.5)
    arms = tuple(
        Verified(
            arm={"payload.mass": x} if x else {},
            metrics={"residual.settling_time": time},
            failed=None,
            violations=(violation,),
            lost=((),),
            objective=time,
        )
        for x, time, violation in zip((0.0, 0.5, 1.5), times, beyond, strict=True)
    )
    judged = _Judged(u=np.zeros(2), arms=arms)
    told = _constraint(0, problem, judged, judged)

    assert told.violation == 2.0
    np.testing.assert_equal(told.value, max(times[1:]) if np.isfinite(times[2]) else np.nan)


def judged_arms(*arms, violation=0.0, failed=None):
    """A place with verdicts on these arms, of which the last violates limits so or fails."""
    every = [
        Verified(
            arm=arm,
            metrics={"margins.phase_deg": [70.0], "effort.peak": [4.0, 6.0]},
            failed=None,
            violations=(0.0,),
            lost=((),),
            objective=1.0,
        )
        for arm in arms
    ]
    every[-1] = replace(every[-1], failed=failed, violations=(violation,))
    return _Judged(u=np.zeros(2), arms=tuple(every))


@pytest.mark.parametrize(("limit", "met"), [("nominal.", True), ("", False)])
def test_a_limit_of_the_nominal_arm_is_met_whatever_becomes_of_other_arms(limit, met):
    requirement = read_requirement(f"{limit}margins.phase_deg>=60")
    judged = judged_arms({}, {"payload.mass": 5.0}, failed="the loop is not stable")
    told = _constraint(0, SimpleNamespace(requirements=[requirement]), judged, judged)

    assert told.met is told.was_met is met


@pytest.mark.parametrize(("limit", "value"), [("effort.peak>=5", 4.0), ("effort.peak<=5", 6.0)])
def test_a_limit_is_told_on_the_joint_that_is_furthest_beyond_it(limit, value):
    judged = judged_arms({}, violation=0.2)
    problem = SimpleNamespace(requirements=[read_requirement(limit)])

    assert _constraint(0, problem, judged, judged).value == value


def test_a_place_without_a_verdict_on_some_arm_is_worse_than_one_that_spills_over():
    failed = judged_arms({}, {"payload.mass": 5.0}, failed="the loop is not stable")
    sound = judged_arms({}, {"payload.mass": 5.0}, violation=0.5)
    spilling = replace(sound, spillover={Case(order=4): 0.3})

    assert sound.order < spilling.order < failed.order


@pytest.mark.parametrize("span", ["2:3", "2:5", "1:4"])
def test_orders_of_a_range_have_whole_numbers_for_its_quantiles(span):
    low, high = map(float, span.split(":"))
    one = read_variation("truth.elements", span)

    assert one.some[0] == low
    assert one.some[-1] == high
    assert all(x == round(x) for x in one.some)
