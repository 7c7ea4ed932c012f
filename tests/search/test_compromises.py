"""Trade-offs between two metrics: verified, none better than another, none missed by far."""

from dataclasses import replace

import numpy as np
import pytest

import flexctl
from flexctl.errors import ComputationError, InputError
from flexctl.model import build_file
from flexctl.search.tuning import compromises
from flexctl.search.tuning.requirements import read_objective, read_requirement
from flexctl.search.tuning.tuner import tune
from flexctl.verdict import metrics

ARM, DESIGN = "single-link-hub", "hub-pd"
FAST, DELAY = "stability.spectral_abscissa", "margins.common_delay_seconds"
TRUTH = flexctl.BasisChoice(order=1)
FREE = {"gains.Gp": (5.0, 80.0), "gains.Gv": (1.0, 10.0)}
LIMIT = "margins.phase_deg>=55"


@pytest.fixture(scope="module")
def found():
    return flexctl.trade_off(
        ARM,
        DESIGN,
        FREE,
        minimise=FAST,
        against=DELAY,
        subject_to=[LIMIT],
        points=4,
        truth_basis=TRUTH,
        jobs=1,
        evaluations=60,
    )


@pytest.mark.slow
def test_each_design_is_judged_as_it_says(found):
    assert len(found.front) >= 3
    for one in found.front:
        (e,) = flexctl.compare(ARM, [one.design], truth_basis=TRUTH, baseline=False).evaluations
        known = metrics(e)
        assert known[FAST] == one.first
        assert known[DELAY] == -one.second
        assert min(known["margins.phase_deg"]) >= 55


@pytest.mark.slow
def test_none_is_better_in_both(found):
    first, second = ([getattr(one, name) for one in found.front] for name in ("first", "second"))
    assert (np.diff(second) > 0).all()
    assert (np.diff(first) < 0).all()


@pytest.mark.slow
def test_no_sample_is_better_by_more_than_a_hundredth(found):
    rng = np.random.default_rng(1)
    Gp, Gv = (np.exp(rng.uniform(*np.log(FREE[key]), 60)) for key in FREE)
    controller = flexctl.design_controller(ARM, DESIGN)
    loop = flexctl.close_loop(controller, ARM, modes=1)
    sets = [{"gains.Gp": p, "gains.Gv": v} for p, v in zip(Gp, Gv, strict=True)]
    judged = [metrics(e) for e in flexctl.evaluate_many(loop, sets)]
    kept = [
        (known[FAST], -known[DELAY])
        for known in judged
        if known["margins.phase_deg"] and min(known["margins.phase_deg"]) >= 55
    ]
    assert len(kept) > 5
    for one in found.front:
        better = [
            (x, y) for x, y in kept if x < one.first - 0.01 * abs(one.first) and y <= one.second
        ]
        assert better == []


@pytest.mark.slow
def test_its_ends_are_the_best_of_each(found):
    best = flexctl.tune(
        ARM,
        DESIGN,
        FREE,
        minimise=FAST,
        subject_to=[LIMIT],
        truth_basis=TRUTH,
        jobs=1,
        evaluations=60,
    )
    assert found.front[-1].first <= best.objective_after + 1e-9 * abs(best.objective_after)
    assert found.front[0].second <= min(one.second for one in found.front)
    assert found.start.first == best.objective_before


@pytest.mark.slow
def test_designs_say_how_they_were_found(found):
    names = [one.design.name for one in found.front]
    assert len(set(names)) == len(names)
    for one in found.front:
        if one.tuning is not None:
            assert one.tuning.design.name == DESIGN
            assert one.tuning.feasible
            assert one.design.tune.free == FREE
            assert LIMIT.replace(">=", " >= ") + ".0" in one.design.tune.subject_to


@pytest.mark.slow
def test_only_values_in_a_given_range_are_searched_for(found):
    """Between the ends of the front, at three values, each as good as its neighbours allow."""
    low, high = 1.2 * -found.front[-1].second, 0.9 * -found.front[0].second
    ranged = flexctl.trade_off(
        ARM,
        DESIGN,
        FREE,
        minimise=FAST,
        against=f"{DELAY}={low!r}:{high!r}",
        subject_to=[LIMIT],
        points=3,
        truth_basis=TRUTH,
        jobs=1,
        evaluations=60,
    )
    assert str(ranged.second) == DELAY
    assert ranged.tried == pytest.approx([-low, -(low + high) / 2, -high])
    for one in ranged.tried:
        limited = [each for each in ranged.front if each.second <= one * (1 - 1e-6)]
        assert limited
        easier = min(each.first for each in found.front if each.second <= one)
        assert min(each.first for each in limited) <= easier + 0.01 * abs(easier)


@pytest.mark.slow
def test_a_range_that_is_out_of_reach_is_tried_once():
    found = flexctl.trade_off(
        ARM,
        DESIGN,
        {"gains.Gv": (5.0, 7.0)},
        minimise=FAST,
        against=f"{DELAY}=1:2",
        subject_to=[],
        truth_basis=TRUTH,
        starts=1,
        evaluations=5,
        jobs=1,
    )

    assert found.tried == (-1.0,)
    assert len(found.front) == 1


@pytest.mark.slow
def test_what_the_best_design_has_without_limit_cannot_be_traded():
    said = "the design with the best stability.spectral_abscissa has no limit of margins.gain_db"
    with pytest.raises(ComputationError, match=said):
        flexctl.trade_off(
            ARM,
            DESIGN,
            FREE,
            minimise=FAST,
            against="margins.gain_db=3:6",
            subject_to=[],
            truth_basis=TRUTH,
            starts=1,
            evaluations=5,
            jobs=1,
        )


@pytest.mark.slow
def test_no_front_where_limits_cannot_be_kept():
    violated = r"the nearest design found violates margins.phase_deg >= 89.0 \(it has [5-8]"
    with pytest.raises(ComputationError, match=violated):
        flexctl.trade_off(
            ARM,
            DESIGN,
            {"gains.Gv": (5.0, 7.0)},
            minimise=FAST,
            against=DELAY,
            subject_to=["margins.phase_deg>=89"],
            truth_basis=TRUTH,
            starts=1,
            evaluations=5,
            jobs=1,
        )


QUICK = {"subject_to": [], "truth_basis": TRUTH, "starts": 1, "evaluations": 3, "jobs": 1}
DAMPING = "stability.min_damping_ratio"


def pressed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("searches", [1, 2])
def test_an_interrupt_while_a_search_begins_keeps_what_others_found(searches, monkeypatch):
    calls, heeded = [], []

    def press_later(*arguments, **options):
        calls.append(options["minimise"])
        return (tune if len(calls) <= searches else pressed)(*arguments, **options)

    monkeypatch.setattr(compromises, "tune", press_later)
    found = flexctl.trade_off(
        ARM, DESIGN, {"gains.Gv": (1.0, 10.0)}, minimise=FAST, against=DAMPING, points=3,
        interrupted=lambda: heeded.append(1), **QUICK,
    )  # fmt: skip

    assert len(calls) == searches + 1
    assert found.interrupted
    assert heeded == [1]
    assert found.front


def test_an_interrupt_of_the_first_search_has_nothing_to_keep(monkeypatch):
    monkeypatch.setattr(compromises, "tune", pressed)
    with pytest.raises(KeyboardInterrupt):
        flexctl.trade_off(ARM, DESIGN, FREE, minimise=FAST, against=DAMPING, **QUICK)


@pytest.mark.parametrize("turn", [1, -1])
def test_a_number_of_one_objective_alone_is_free_in_searches_that_depend_on_it(turn):
    # the feedforward moves no eigenvalue
    key, other = "cascade.velocity_feedforward", "cascade.position_gain"
    minimise, against = ("tracking.tip_error_rms", FAST)[::turn]
    found = flexctl.trade_off(
        ARM, "hub-cascade", {other: None, key: (0.0, 1.0)}, minimise=minimise, against=against,
        points=3, **QUICK,
    )  # fmt: skip
    own = {
        one.tuning.objective.metric + "".join(c.requirement.key for c in one.tuning.constraints): {
            number.name for number in one.tuning.free
        }
        for one in found.front
        if one.tuning
    }

    assert found.front
    assert {key, other} in own.values()
    assert all(free == ({other} if only == FAST else {key, other}) for only, free in own.items())


@pytest.mark.parametrize(
    ("free", "arguments", "expected"),
    [
        (
            FREE,
            {"against": "noise.tip_rms"},
            "against: expected a metric that the verdict has, got",
        ),
        (
            {"cascade.velocity_feedforward": (0.0, 1.0)},
            {"against": "tracking.tip_error_rms"},
            f"minimise: expected a metric that depends on a free number, got {FAST}",
        ),
    ],
)
def test_objectives_that_cannot_be_are_refused_before_any_search(
    free, arguments, expected, monkeypatch
):
    monkeypatch.setattr(compromises, "tune", pressed)
    design = "hub-cascade" if "cascade.velocity_feedforward" in free else DESIGN
    with pytest.raises(InputError, match=expected):
        flexctl.trade_off(ARM, design, free, minimise=FAST, **arguments, **QUICK)


def test_a_sum_is_that_of_its_worst_arm_not_of_the_worst_of_each_metric():
    how = {**QUICK, "over": {"payload.mass": "*0.3, *3"}, "evaluations": 1}
    free = {"gains.Gv": (5.0, 7.0)}
    found = flexctl.tune(ARM, DESIGN, free, minimise=f"{FAST} + 100*{DELAY}", **how)
    other = replace(found, objective=read_objective(DELAY))
    before = compromises._value(found.objective, other, before=True)

    assert compromises._value(found.objective, other) == found.objective_after
    assert before == found.objective_before
    assert found.objective.value(found.worst_before) > before + 0.01


def point(first, second):
    return compromises.Compromise(design=None, first=first, second=second, tuning=None)


def test_an_equally_good_design_is_not_dominated():
    designs = [point(1.0, 2.0), point(1.0, 2.0 * (1 + 1e-12)), point(1.0, 2.5), point(0.5, 3.0)]
    front = compromises._front(designs)

    assert [(one.first, one.second) for one in front] == [(1.0, 2.0), (0.5, 3.0)]
    assert compromises._dominated(designs, front) == 1
    assert compromises._dominated([], []) == 0


def test_the_default_objective_cannot_be_traded_against_itself():
    """Of a run without a rest it is no settling time, but the error while it moves."""
    table = flexctl.load_design(DESIGN).table()
    del table["expect"]
    table["loop"]["duration"] = 1.0  # as long as its motion
    moving = build_file(flexctl.Design, table, "moving", None)
    with pytest.raises(InputError, match="against: expected another metric than minimise"):
        flexctl.trade_off(ARM, moving, FREE, against="tracking.tip_error_rms", **QUICK)


def test_limits_and_objectives_of_the_nominal_arm_are_told_and_judged_on_it():
    limit = f"nominal.{DAMPING}>=0.45"
    how = {**QUICK, "minimise": f"nominal.{FAST}", "subject_to": [limit], "evaluations": 1}
    free = {"gains.Gv": (5.0, 7.0)}
    found = flexctl.tune(ARM, DESIGN, free, over={"payload.mass": "*9"}, **how)
    nominal, worst = metrics(found.before), found.worst_before
    beside = compromises._beside(found, found, {"gains.Gv": 6.0})

    assert nominal[DAMPING] > 0.45 > worst[DAMPING]
    assert nominal[FAST] < worst[FAST]
    assert compromises._keeps_limits(found)
    assert compromises._violation(found) == 0
    assert beside.objective_before == nominal[FAST]
    assert beside.constraints[0].before == nominal[DAMPING]
    assert beside.constraints[0].was_met
    other = read_requirement(f"nominal.{DAMPING}>=0.5")
    told = compromises._since(found, replace(found.constraints[0], requirement=other))
    assert told.before == nominal[DAMPING]
    assert told.was_met


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"against": "margins.disc"}, "against: expected the name of a metric"),
        ({"against": "effort.energy+effort.rms"}, "against: expected one metric"),
        ({"against": "2*effort.energy"}, "against: expected one metric"),
        ({"against": ["effort.energy"]}, "against: expected the name of a metric"),
        ({"against": FAST}, "against: expected another metric than minimise"),
        (
            {"against": "margins.disk=0.2"},
            "against: margins.disk: expected LOW:HIGH, LOW below HIGH",
        ),
        ({"against": "margins.disk="}, "against: margins.disk: expected LOW:HIGH, LOW below HIGH"),
        ({"against": "margins.disk=0.4:0.2"}, "against: margins.disk: expected LOW:HIGH"),
        ({"against": "margins.disk=0.4:inf"}, "against: margins.disk: expected LOW:HIGH"),
        ({"against": "margins.disc=0.2:0.4"}, "against: expected the name of a metric"),
        ({"against": f"{FAST}=-3:-2"}, "against: expected another metric than minimise"),
        ({"against": DELAY, "points": 1}, r"points: expected a whole number in 2 \.\. 200, got 1"),
        ({"against": DELAY, "points": 2.5}, "points: expected a whole number"),
    ],
)
def test_wrong_arguments_are_refused(arguments, expected):
    with pytest.raises(InputError, match=expected):
        flexctl.trade_off(ARM, DESIGN, FREE, minimise=FAST, **arguments)
