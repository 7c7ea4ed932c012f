"""Gains, damping and inertia with which a loop tolerates a required stiffness overestimate."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.optimize

from examples.papers.theodore_ghosal.stiffness_growth import stiffness_growth
from flexctl.errors import DesignError, InputError
from flexctl.loop.eigenvalues import ModeNames
from flexctl.model.changed_arm import with_damping, with_inertia
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import with_value
from flexctl.plant.linearisation import linearise
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop
from flexctl.robustness.stiffness.pose_loop import Case, PoseLoop, loop_at
from flexctl.search import remedies
from flexctl.search.changed_loops import EFFORT, over_damping, over_gains, scaled_gains
from flexctl.search.charts import damping_chart, gain_chart
from flexctl.search.one_number import (
    at_poses,
    first_serving,
    judge,
    judged_poses,
    log_grid,
    motion,
    narrow,
    search_over,
)
from flexctl.search.remedies import (
    fastest_second_loop,
    largest_bandwidth,
    least_damping,
    least_inertia,
)

MODES = BasisChoice(kind="modes", order=2)
ERRORS = (0.0, 0.3, -0.4, 2.0)
SAMPLED = {"sample_time": 1e-3, "delay": 1.5e-3}
READ = {"measures": ["encoder", "tachometer", "strain_gauge"]}


@pytest.fixture(scope="session")
def case_of(make):
    """case_of(...): one link on a hub, judged on itself at its final pose."""

    def build(method="decoupling", *, damping=0.01, n_path=1, arm=None, **tables):
        arm = arm or make["single"](damping=damping)
        tables.setdefault("basis", {"kind": "modes", "order": 2})
        joints = len(arm.links)
        design = make["design"]([0.0] * joints, [0.5] * joints, method, **tables)
        return Case.of(arm, design, truth_basis=MODES, n_path=n_path)

    return build


def with_gains(design, **factors):
    """Give the design with other joint gains."""
    for key, gains in scaled_gains(design, factors).items():
        design = with_value(design, key, gains)
    return design


def faster(s):
    return {"Gp": s**2, "Gv": s, "Gi": s**3}


def loops_of(case):
    """Loops of a case at its poses, controllers made anew."""
    closed = case.close()
    return list(at_poses(lambda _value: closed, judged_poses(closed, case.n_path))(0.0))


def upper(case):
    """alpha_upper of a case, controllers made anew."""
    return judge(0.0, lambda: loops_of(case)).alpha_upper


def stable_up_to(case, expected):
    """Brute force: eigenvalues of rebuilt loops at 41 errors from 0 to what is wanted."""
    loops = [pose.loop for pose in loops_of(case)]
    errors = np.linspace(0.0, expected, 41)
    return all((loop.poles(np.array([x])).real < 0).all() for loop in loops for x in errors)


# One loop under many gains


def assert_same_loops(found, expected):
    """Compare state matrices under several errors, entry by entry above round-off of their row."""
    for alpha in ERRORS:
        A, B = (pose.loop.matrix(np.array([alpha])) for pose in (found, expected))
        floor = 1e-13 * np.abs(B).max(axis=1, keepdims=True)
        assert (np.abs(A - B) <= 1e-10 * np.abs(B) + floor).all()


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("by", [{"Gp": 0.3, "Gv": 1.7, "Gi": 0.2}, faster(5.0)])
@pytest.mark.parametrize(
    ("method", "tables"),
    [
        ("decoupling", {}),
        ("decoupling", {"gains": {"Gp": [100.0], "Gv": [20.0], "Gi": [30.0]}}),
        ("decoupling", {"loop": SAMPLED}),
        ("composite", {}),
        ("composite", {"fast_loop": {"weights": {"strain_energy": 1.0, "effort": 1.0}}}),
        ("joint-pd", {}),
        ("decoupling", {"loop": READ}),
    ],
    ids=["decoupling", "integral", "sampled", "slow", "composite", "joint-pd", "observer"],
)
def test_loops_with_other_gains_are_those_of_controllers_made_anew(case_of, method, tables, by):
    case = case_of(method, **tables)

    found, *_ = over_gains(case, lambda _s: by)(1.0)

    assert_same_loops(found, loops_of(replace(case, design=with_gains(case.design, **by)))[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "rrp-stiff-decoupling",
        "rrp-gentle",
        "rrp-composite",
        "rrp-observer",
        "subudhi-morris-lqr",
        "subudhi-morris-observer",
    ],
)
def test_margins_of_catalogue_designs_with_other_gains_are_those_of_designs_made_anew(name):
    design, by = load_design(name), {"Gp": 0.3, "Gv": 1.7}
    case = Case.of(load_model(design.model), design, n_path=1)

    (found,) = over_gains(case, lambda _s: by)(1.0)

    closed = case.close(with_gains(design, **by))
    rebuilt = loop_at(closed, *motion(closed, 1)[0])
    # |A| of the observer's loop is 2e10 where the crossing is at 54 rad/s: equal matrices that are
    # factored otherwise differ by 5e-8 in what round-off leaves of it
    digits = 1e-6 if name == "rrp-observer" else 1e-8
    assert found.interval.alpha_upper == pytest.approx(rebuilt.interval.alpha_upper, rel=digits)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("ratio", [0.0, 0.003, 0.3])
@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("loop", [{}, SAMPLED], ids=["continuous", "sampled"])
def test_loops_with_another_damping_are_those_of_arms_made_anew(case_of, ratio, unknown, loop):
    case = replace(case_of(loop=loop), unknown_damping=unknown)

    (found,) = over_damping(case)(ratio)

    closed = case.changed(lambda arm: with_damping(arm, ratio)).close()
    assert_same_loops(found, loop_at(closed, closed.controller.reference.final, 0.0))


# The search


def scalar_loop(linear, inverse=0.0):
    """x' = (-1 + linear alpha + inverse alpha/(1 + alpha)) x."""
    loop = UncertainLoop(
        A=-np.eye(1),
        U=np.array([[linear, inverse]]),
        V=np.ones((2, 1)),
        D=np.diag([0.0, -1.0]),
        parameters=(Parameter(name="alpha", size=2, lowest=-1.0),),
        states=("x",),
    )
    pose = PoseLoop(closed=None, joints=np.zeros(1), second_loop_weight=0.0, pulled=lambda: loop)
    pose.__dict__["names"] = ModeNames(T=np.eye(1), names=("x",))  # there is no arm to name it by
    return pose


def bands(s):
    """alpha_upper: above 0.05 where sin(4 ln s) > 0."""
    return 0.05 * (1 + 0.5 * np.sin(4 * np.log(s)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3.0, 2.0, 1.0], (1.5, 2.0)), ([1.0, 0.5], (1.0, None)), ([3.0, 2.0], (None, None))],
    ids=["within", "first", "none"],
)
def test_the_bracket_before_the_first_value_that_serves_is_narrowed(values, expected):
    def serves(value):
        return value <= 1.7

    assert first_serving(serves, values, partial(narrow, serves, width=0.5)) == expected


def test_a_bracket_is_narrowed_by_at_most_as_many_trials_as_allowed():
    tried = []

    narrow(lambda value: tried.append(value) or True, 0.0, 1.0, width=0.0, most=3)

    assert tried == [0.5, 0.75, 0.875]


def test_the_first_of_several_bands_is_found_from_above():
    # ln s in (pi/4, pi/2) tolerates nothing, (0, pi/4) does, and (-pi/2, -pi/4) does too
    grid = np.geomspace(0.2, 4.5, 40)[::-1]

    found = search_over(lambda s: [scalar_loop(1 / bands(s))], grid, 0.05)

    assert found.answer.value == pytest.approx(np.exp(np.pi / 4), rel=1e-6)
    assert found.answer.alpha_upper >= 0.05
    assert found.answer.value < found.fails < found.answer.value * (1 + 1e-6)


def test_the_worst_of_two_poses_decides():
    poses = [lambda s: scalar_loop(10 * s), lambda s: scalar_loop(20 * s)]

    found = search_over(lambda s: (pose(s) for pose in poses), [4.0, 2.0, 1.0, 0.5], 0.05)

    assert found.answer.value == pytest.approx(1.0, rel=1e-6)


def test_what_is_lost_between_the_errors_looked_at_is_not_overlooked():
    # unstable near alpha = 0.22 alone, from u = (sqrt(20) + 1)^2 on; stable at 0, 1/3, 2/3 and 1
    found = search_over(lambda u: [scalar_loop(-20.0, u)], [30.2, 30.0, 29.0, 28.0], 1.0)

    assert found.answer.value == pytest.approx((np.sqrt(20) + 1) ** 2, rel=1e-6)


def test_both_ends_of_the_interval_are_told():
    # -1 - 2 alpha < 0 down to -1/2, -1 + 20 alpha < 0 up to 1/20
    trial = judge(0.0, lambda: [scalar_loop(-2.0), scalar_loop(20.0)])

    assert (trial.alpha_lower, trial.alpha_upper) == pytest.approx((-0.5, 0.05))


def test_a_grid_of_which_the_first_bears_it_ends_there():
    found = search_over(lambda s: [scalar_loop(s)], [2.0, 1.0], 0.05)

    assert found.answer.value == 2.0
    assert found.fails is None


def test_where_none_bears_it_the_best_is_told():
    found = search_over(lambda s: [scalar_loop(1 / bands(s))], np.geomspace(0.2, 4.5, 40), 1.0)

    assert found.answer is None
    assert found.best.alpha_upper > 0.075 - 0.05


def test_values_for_which_there_is_no_design_are_passed_over():
    def loops(s):
        if s > 1:
            raise DesignError("no such design")
        return [scalar_loop(s)]

    found = search_over(loops, [2.0, 1.5, 1.0, 0.5], 0.05)

    assert found.answer.value == pytest.approx(1.0, rel=1e-6)


def test_other_errors_are_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        search_over(lambda s: [scalar_loop(s / 0)], [2.0, 1.0], 0.05)


def test_a_required_margin_of_zero_is_refused():
    with pytest.raises(InputError, match="required margin: expected one above 0"):
        search_over(lambda s: [scalar_loop(s)], [1.0], 0.0)


def test_a_logarithmic_grid_has_both_ends():
    grid = log_grid(0.01, 20.0, 20)

    assert (grid[0], grid[-1]) == pytest.approx((0.01, 20.0))
    assert np.diff(np.log10(grid)).max() <= 1 / 20


# Bandwidth


@pytest.mark.parametrize("scales", [(0.05, 1.0), (0.05, 20.0)])
def test_the_largest_bandwidth_lies_at_the_edge_of_what_rebuilt_loops_tolerate(
    case_of, monkeypatch, scales
):
    case, expected = case_of(n_path=2), 0.02
    monkeypatch.setattr(remedies, "SCALES", (*scales, 20))

    found = largest_bandwidth(case, expected).searched.answer

    def at(s):
        return replace(case, design=with_gains(case.design, **faster(s)))

    assert stable_up_to(at(found.value), expected)
    outside = found.value * 1.0005
    assert outside > scales[1] or not stable_up_to(at(outside), expected)
    assert found.alpha_upper == pytest.approx(upper(at(found.value)), rel=1e-8)


@pytest.mark.slow  # takes long
def test_the_largest_bandwidth_is_that_of_bisection(case_of, monkeypatch):
    case, expected = case_of(), 0.02
    monkeypatch.setattr(remedies, "SCALES", (0.05, 1.0, 20))

    found = largest_bandwidth(case, expected)

    def lacks(log_s):
        s = np.exp(log_s)
        return upper(replace(case, design=with_gains(case.design, **faster(s)))) - expected

    near = np.log(found.searched.answer.value)
    wanted_s = np.exp(scipy.optimize.brentq(lacks, near - 0.1, near + 0.1, xtol=1e-8))
    assert found.searched.answer.value == pytest.approx(wanted_s, rel=1e-6)
    assert found.means["Gp"] == pytest.approx([100 * wanted_s**2], rel=1e-5)
    assert found.means["Gv"] == pytest.approx([20 * wanted_s], rel=1e-5)


def test_the_design_itself_is_judged_too(case_of, monkeypatch):
    case = case_of()
    monkeypatch.setattr(remedies, "SCALES", (0.5, 2.0, 20))

    own = largest_bandwidth(case, 0.02).searched.own

    assert own.alpha_upper == pytest.approx(upper(case), rel=1e-8)


def test_no_bandwidth_bears_what_none_can(case_of, monkeypatch):
    monkeypatch.setattr(remedies, "SCALES", (0.2, 5.0, 20))

    found = largest_bandwidth(case_of(), 50.0)

    assert found.searched.answer is None
    assert found.searched.best.alpha_upper < 50
    assert found.means["Gp"]


def test_the_least_effort_lies_at_the_edge_of_what_rebuilt_loops_tolerate(
    case_of, make, monkeypatch
):
    monkeypatch.setattr(remedies, "EFFORTS", (1e-3, 1e3, 3))
    case, expected = case_of(second_loop={"weights": make["weights"], "switch": "end"}), 0.3

    found = fastest_second_loop(case, expected)

    def at(factor):
        design = with_value(case.design, EFFORT, 1e-4 * factor)
        return upper(replace(case, design=design, n_path=0))

    factor = found.searched.answer.value
    assert at(factor) >= expected
    assert found.searched.fails is None or at(found.searched.fails) < expected
    assert found.means["effort"] == pytest.approx(factor * 1e-4)
    assert found.means["fastest"] <= found.means["slowest"] < 0


# Damping and inertia


def test_without_damping_every_overestimate_is_unstable(case_of):
    assert upper(case_of(damping=0.0)) == 0.0


def test_what_is_borne_grows_with_light_damping_as_the_first_order_formula_says(case_of):
    # the next term is in proportion to the ratio: 1e-3 leaves less than 1 %, round-off far less
    ratios, off = np.array([1e-4, 1e-3]), []
    for ratio in ratios:
        case = case_of(damping=float(ratio))
        plant = case.close().controller.plant.nominal
        linear = linearise(plant, plant.straight(np.array([0.5])))
        first = stiffness_growth(linear, plant.drives, Gp=100.0, Gv=20.0).first_margin
        off.append(upper(case) / first - 1)

    assert np.abs(off).max() < 0.01
    assert off[1] / off[0] == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize(
    "second",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["affine", "rebuilt"],
)
def test_the_least_damping_lies_at_the_edge_of_what_rebuilt_loops_tolerate(case_of, make, second):
    tables = {"second_loop": {"weights": make["weights"], "switch": "end"}} if second else {}
    case, expected = case_of(**tables), 0.05

    found = least_damping(case, expected).searched

    def at(ratio):
        return case.changed(lambda arm: with_damping(arm, ratio))

    assert upper(at(found.answer.value)) >= expected
    assert upper(at(found.fails)) < expected
    assert found.answer.value == pytest.approx(found.fails, rel=1e-4)


@pytest.mark.slow
def test_the_least_inertia_lies_at_the_edge_of_what_rebuilt_loops_tolerate(case_of):
    case, expected = case_of(), 0.05

    found = least_inertia(case, expected)

    def at(inertia):
        return case.changed(lambda arm: with_inertia(arm, {"joint1": inertia}))

    (inertia,) = found.means["added"]
    assert upper(at(inertia)) >= expected
    assert upper(at(inertia * 0.999)) < expected
    assert found.searched.answer.value > 0


@pytest.mark.slow
def test_inertia_is_added_at_all_joints(case_of, make, monkeypatch):
    case = case_of(arm=make["two-link"]((0.0, 0.0, 0.0)))
    monkeypatch.setattr(remedies, "INERTIAS", (1.0, 10.0, 3))

    found = least_inertia(case, 50.0)

    assert found.means["joints"] == ("joint1", "joint2")
    assert found.means["added"] is None


# Charts


@pytest.mark.slow  # takes long
def test_the_chart_of_gains_is_what_rebuilt_loops_tolerate(case_of):
    case = case_of(n_path=2)

    chart = gain_chart(case, span=(0.2, 5.0), count=3)

    expected = [
        [
            upper(replace(case, design=with_gains(case.design, Gp=Gp, Gv=Gv)))
            for Gv in (0.2, 1.0, 5.0)
        ]
        for Gp in (0.2, 1.0, 5.0)
    ]
    np.testing.assert_allclose(chart.alpha_upper, expected, rtol=1e-8)
    assert chart.own.alpha_upper == pytest.approx(chart.alpha_upper[1, 1])
    assert chart.modes[1][1] == chart.own.loss.mode


@pytest.mark.slow  # takes long
def test_the_chart_of_damping_is_what_rebuilt_loops_tolerate(case_of):
    case, ratios = case_of(), (0.0, 0.01, 0.1)

    chart = damping_chart(case, ratios=ratios)

    expected = [
        [upper(there.changed(lambda arm, r=r: with_damping(arm, r))) for r in ratios]
        for there in (case, replace(case, unknown_damping=True))
    ]
    np.testing.assert_allclose([chart.known, chart.unknown], expected, rtol=1e-8)
    assert chart.known[0] == chart.unknown[0] == 0.0
    assert chart.own_ratios == (0.01,)


@pytest.mark.parametrize("ratios", [(), (0.1, 0.01), (-0.1, 0.1), (0.5, 1.0)])
def test_damping_ratios_that_do_not_ascend_within_0_and_1_are_refused(case_of, ratios):
    with pytest.raises(InputError, match="ratios: expected some that ascend"):
        damping_chart(case_of(), ratios=ratios)


def test_poses_of_the_motion_end_at_the_final_one(case_of):
    closed = case_of().close()

    along, final = ([joints[0] for joints, _ in judged_poses(closed, k)] for k in (3, 1))
    assert along == pytest.approx([0.5, 0.25, 0.0])
    assert final == pytest.approx([0.5])
