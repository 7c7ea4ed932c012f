"""Where a closed loop rests: against the nonlinear equations, by hand, and at its edges."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
import scipy.optimize

from flexctl.control import design_controller
from flexctl.errors import DesignError, NoEquilibriumError
from flexctl.loci.sources import loop_matrix, rests_until
from flexctl.loci.variation import Variation, over_number, rests_between
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.equilibrium import (
    find_loop_equilibrium,
    follow_equilibrium,
    set_integrals,
)
from flexctl.loop.equilibrium_search import (
    ForceBalance,
    _shrinks,
    _Solver,
    newton_solution,
    pseudo_transient,
    solution_nearby,
)
from flexctl.loop.final_equilibrium import describe_equilibrium, why_not_held
from flexctl.loop.linear import linearise_loop, slopes_at_rest
from flexctl.loop.setup import Setup
from flexctl.model import Design, load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.stiffness.followed_equilibria import ErrorFamily
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.pose_loop import Case
from flexctl.robustness.stiffness.structured_errors import bound_errors
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.margins import stability_margins
from flexctl.verdict.reasons import unstable_orders
from flexctl.view.to_json import to_json
from flexctl.view.words.verdict import warnings_of

DOWN = (0.0, -9.81, 0.0)
LINK = {
    "joint": "revolute",
    "dh": {"a": 0.9},
    "length": 0.9,
    "mass_per_length": 1.5,
    "EI": {"y": 200.0},
    "damping_ratio": [0.006, 0.01],
    "hub": {"inertia": [0.0, 0.0, 0.04]},
    "joint_inertia": 0.02,
    "limits": {"torque": 30.0},
}
LOAD = {"mass": 0.45, "inertia": [0.0008] * 3}
PD = {"Gp": [5.6], "Gv": [4.0]}
UP = 0.5236
TRUTH = BasisChoice(kind="elements", order=2)


def test_slopes_in_any_units_are_solved():
    rng = np.random.default_rng(3)
    units, others = (np.diag(10.0 ** rng.uniform(-9, 9, 5)) for _ in range(2))
    J, x = units @ rng.normal(size=(5, 5)) @ others, rng.normal(size=5) / np.diag(others)
    np.testing.assert_allclose(_Solver(J)(J @ x), x, rtol=1e-9)


@pytest.mark.parametrize("stiff", [1.0, 1e5])
def test_a_neutral_direction_needs_no_force_and_gives_way_to_none(stiff):
    # two joints of which only the sum has a spring, and a third one
    J = np.array([[stiff, stiff, 0.0], [stiff, stiff, 0.0], [0.0, 0.0, 3.0]])
    x = _Solver(J)(np.array([0.7, 0.7, 0.0]))
    np.testing.assert_allclose(x, [0.35 / stiff, 0.35 / stiff, 0.0], atol=1e-12)
    assert _Solver(J)(np.array([0.7, 0.6, 0.0])) is None
    uneven = np.array([[1.0, 1e3], [2.0, 2e3]])
    for force in (np.array([5.0, 10.0]), np.array([-5.0, -10.0])):
        np.testing.assert_allclose(uneven @ _Solver(uneven)(force), force)


class Forces:
    """A balance of n coordinates without a law, of given forces and slopes."""

    def __init__(self, left, slopes, n=1):
        self.loop = SimpleNamespace(truth=SimpleNamespace(n=n, mass_matrix=lambda _q: np.eye(n)))
        self.left, self.slopes = left, slopes

    def unstable(self, X):
        return np.linalg.eigvalsh(self.slopes(X)).min() < 0


def test_a_coordinate_without_any_force_stays_where_it_is():
    np.testing.assert_allclose(_Solver(np.diag([3.0, 0.0]))(np.array([6.0, 0.0])), [2.0, 0.0])


def test_a_state_of_the_law_moves_by_its_own_rate_in_a_fall():
    # beside a pendulum that falls a state with z' = q - z, whose left is z' itself
    balance = Forces(
        lambda X: np.array([-np.sin(X[0]), X[0] - X[1]]),
        lambda X: np.array([[-np.cos(X[0]), 0.0], [1.0, -1.0]]),
    )
    balance.unstable = lambda X: np.cos(X[0]) > 0
    found = pseudo_transient(balance, np.array([1e-3, 0.0]))
    np.testing.assert_allclose(found, [np.pi, np.pi], atol=1e-9)


@pytest.mark.parametrize(("noise", "arrives"), [(1e-10, True), (1e-5, False)])
def test_a_step_that_no_longer_shrinks_has_arrived_if_it_is_round_off(noise, arrives):
    sign = iter([1.0, -1.0] * 50)
    balance = Forces(lambda X: X - 1 + noise * next(sign), lambda _X: np.eye(1))
    found = newton_solution(balance, np.array([0.9]), np.zeros(1))
    assert (found is not None) == arrives
    assert found is None or found[0] == pytest.approx(1.0, abs=3 * noise)


@pytest.mark.parametrize(("roundings", "arrives"), [(10.0, True), (1e5, False)])
def test_next_to_a_singular_loop_what_rounding_leaves_has_arrived(roundings, arrives):
    # a direction 1e-7 as stiff as the other: round-off moves the solution along it by 1e-7
    J, at, sign = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-7]]), np.array([1.0, 2.0]), [1.0, -1.0] * 50
    noise = iter(
        roundings * np.finfo(float).eps * (J @ at) * one for one in np.array(sign)[:, None]
    )

    def left(X):
        return J @ (X - at) + next(noise) * [1.0, -1.0]

    balance, start = Forces(left, lambda _X: J, n=2), at * 1.0001
    found = newton_solution(balance, start, np.zeros(2))
    assert (found is not None) == arrives
    assert found is None or found == pytest.approx(at, abs=1e-4)
    again = solution_nearby(balance, start, J)
    assert (again is not None) == arrives


def test_slopes_of_a_place_nearby_lead_to_the_same_rest(make):
    known = find_loop_equilibrium(rigid_loop(make), np.array([UP]), 0.0)
    slopes = slopes_at_rest(rigid_loop(make), linearise_loop(rigid_loop(make), known.desired, 0.0))
    other, start = rigid_loop(make, 1.01), (known.q, known.z)
    balance = ForceBalance(loop=other, joints=known.desired, second_loop_weight=0.0)
    found = solution_nearby(balance, np.concatenate(start), slopes)
    np.testing.assert_allclose(found[:1], balanced(1.01)[0], rtol=1e-11)
    wrong = 30 * slopes  # steps that hardly shrink what is left: the other method's turn
    assert solution_nearby(balance, np.concatenate(start), wrong) is None
    found = follow_equilibrium(other, known, 0.0, start, wrong)
    np.testing.assert_allclose(found.q, balanced(1.01)[0], rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
def test_slopes_at_rest_are_those_of_the_forces(every):
    arm = load_model("vertical-2r")
    table = load_design("vertical-2r-encoders").table() | {"name": "trial"}
    period = every * table["loop"]["sample_time"]
    table["instruments"] = [{**table["instruments"][0], "sample_time": period}]
    loop = close_loop(design_controller(arm, Design.model_validate(table)), arm, elements=1)
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
    balance = ForceBalance(loop=loop, joints=linear.rest.desired, second_loop_weight=0.0)
    expected = balance.slopes(np.concatenate([linear.rest.q, linear.rest.z]))
    assert loop.controller.cycle == every
    np.testing.assert_allclose(
        slopes_at_rest(loop, linear), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )


@pytest.mark.parametrize("begin", [1e-3, -1e-3])
def test_a_fall_from_a_maximum_goes_down_its_own_side_in_short_steps(begin):
    # potential cos(q) of a pendulum upside down beside a stiff spring: the nearest valley is at pi
    visited = []

    def left(X):
        visited.append(X[0])
        return np.array([-np.sin(X[0]), 1e3 * X[1]])

    balance = Forces(left, lambda X: np.diag([-np.cos(X[0]), 1e3]), n=2)
    found = pseudo_transient(balance, np.array([begin, 0.1]))
    np.testing.assert_allclose(found, [np.copysign(np.pi, begin), 0.0], atol=1e-9)
    assert np.abs(np.diff(visited)).max() <= 0.2


def test_a_step_that_leaves_more_than_a_quarter_does_not_contract():
    step = np.array([0.3, -0.4])
    left = [None, 0.26 * step, -0.24 * step[::-1]]
    assert [_shrinks(x, step) for x in left] == [False, False, True]


def vertical_link(make, gravity=DOWN, **changes):
    return make["arm"]([LINK | changes], gravity, LOAD)


def loop_of(arm, design, truth=None, basis=TRUTH):
    controller = design_controller(arm, design, interpreted=True)
    return close_around(controller, assemble_plant(truth or arm, basis, interpreted=True))


def raised(make, method="joint-pd", gains=PD, **tables):
    tables = {"loop": {"duration": 30.0}} | tables
    return make["design"]([0.0], [UP], method, gains=gains, duration=6.0, **tables)


OBSERVER = {"measures": ["encoder", "tachometer", "strain_gauge"]}
LAWS = {
    "joint-pd": raised,
    "integral": lambda make: raised(make, gains=PD | {"Gi": [2.0]}),
    "decoupling": lambda make: raised(make, "decoupling", {"Gp": [60.0], "Gv": [15.0]}),
    "composite": lambda make: raised(make, "composite", {"Gp": [60.0], "Gv": [15.0]}),
    "sampled": lambda make: raised(make, loop={"sample_time": 2e-3, "delay": 3e-3}),
    "observer": lambda make: raised(
        make, "decoupling", {"Gp": [60.0], "Gv": [15.0]}, loop=OBSERVER
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_nothing_moves_where_the_loop_rests(make, law):
    # the forward dynamics and the law themselves, of a payload that the law does not know
    arm = vertical_link(make)
    truth = apply_settings(arm, ["payload.mass=*1.1"])
    loop = loop_of(arm, LAWS[law](make), truth)
    joints = np.array([UP])
    rest = find_loop_equilibrium(loop, joints, 0.0)
    still = np.zeros(loop.truth.n)
    seen = loop.measurement.function(rest.q, still)
    tau, z_rate = loop.controller.law(0.0, rest.z, joints, [0.0], [0.0], *seen)
    a = loop.truth.forward_dynamics(rest.q, still, np.array(tau).ravel())
    np.testing.assert_allclose(a, 0.0, atol=1e-7)
    np.testing.assert_allclose(np.array(z_rate).ravel(), 0.0, atol=1e-7)
    np.testing.assert_allclose(rest.tau, np.array(tau).ravel(), rtol=1e-12)
    # integral action takes the joint to its reference, nothing else does
    assert (abs(rest.offset[0]) < 1e-9) == (law == "integral")


def rigid_loop(make, load=1.0, gravity=DOWN, law=raised):
    """A massless rigid link with a tip mass, which is `load` times what its law knows."""
    link = {"joint": "revolute", "dh": {"a": 0.9}, "length": 0.9, "mass_per_length": 0.0}
    arm = make["arm"]([link | {"joint_inertia": 0.02}], gravity, LOAD)
    return loop_of(arm, law(make), apply_settings(arm, [f"payload.mass=*{load}"]))


def balanced(load, low=-1.0):
    """Joint angle at which 5.6 (q - q_d) = m g l (cos q_d - load cos q), and the torque there."""
    weight = 0.45 * 9.81 * 0.9

    def torque(q):
        return 5.6 * (q - UP) - weight * (np.cos(UP) - load * np.cos(q))

    q = scipy.optimize.brentq(torque, low, UP)
    return q, load * weight * np.cos(q)


def test_a_rigid_link_rests_where_its_torques_balance(make):
    q, tau = balanced(1.1)
    found = find_loop_equilibrium(rigid_loop(make, 1.1), np.array([UP]), 0.0)
    np.testing.assert_allclose(found.q, [q], rtol=1e-12)
    np.testing.assert_allclose(found.tau, [tau], rtol=1e-10)


# at the reference 5.6 - load m g l sin q_d is positive up to a load of 2.82
@pytest.mark.parametrize(("load", "falls"), [(2.0, False), (2.8, False), (2.85, True), (6.0, True)])
def test_a_load_far_from_the_known_one_is_released_to_where_it_rests(make, load, falls):
    q, tau = balanced(load, -2.0)
    found = find_loop_equilibrium(rigid_loop(make, load), np.array([UP]), 0.0)
    np.testing.assert_allclose(found.q, [q], rtol=1e-10)
    np.testing.assert_allclose(found.tau, [tau], rtol=1e-10)
    assert found.falls == falls
    np.testing.assert_allclose(found.offset, [q - UP], rtol=1e-10)
    np.testing.assert_allclose(found.reference, [UP], rtol=1e-12)


def test_a_rest_is_followed_to_that_of_a_loop_that_differs_a_little(make):
    known = find_loop_equilibrium(rigid_loop(make), np.array([UP]), 0.0)
    other, much = rigid_loop(make, 1.01), rigid_loop(make, 6.0)
    found = follow_equilibrium(other, known, 0.0, (known.q, known.z))
    q, tau = balanced(1.01)
    np.testing.assert_allclose([*found.q, *found.tau], [q, tau], rtol=1e-10)
    assert found.desired is known.desired
    assert follow_equilibrium(much, known, 0.0, (known.q, known.z)) is None


def test_an_open_loop_is_where_its_reference_is(make):
    def law(make):
        return make["design"]([0.0], [UP], "feedforward", loop={"duration": 30.0})

    loop = rigid_loop(make, 1.1, law=law)
    found = find_loop_equilibrium(loop, np.array([UP]), 0.0)
    np.testing.assert_allclose(found.q, [UP], rtol=1e-12)
    np.testing.assert_allclose(found.tau, [1.1 * 0.45 * 9.81 * 0.9 * np.cos(UP)], rtol=1e-12)
    again = follow_equilibrium(loop, found, 0.0, (np.array([0.1]), np.zeros(0)))
    np.testing.assert_allclose(again.q, [UP], rtol=1e-12)


def test_integrals_are_set_to_what_holds_the_arm(make):
    loop = rigid_loop(make, 1.1, law=LAWS["integral"])
    rest = find_loop_equilibrium(loop, np.array([UP]), 0.0)
    np.testing.assert_allclose(rest.offset, 0.0, atol=1e-12)
    # the weight that is known is fed forward, Gi z is the rest of it
    missing = 0.1 * 0.45 * 9.81 * 0.9 * np.cos(UP)
    np.testing.assert_allclose(np.abs(2.0 * rest.z), [missing], rtol=1e-9)
    away = replace(rest, z=rest.z + 0.37)
    np.testing.assert_allclose(set_integrals(loop, away, 0.0).z, rest.z, rtol=1e-9)

    plain = rigid_loop(make, 1.1)
    still = find_loop_equilibrium(plain, np.array([UP]), 0.0)
    assert set_integrals(plain, still, 0.0) is still
    level = rigid_loop(make, 1.1, (0.0, 0.0, 0.0), LAWS["integral"])
    still = find_loop_equilibrium(level, np.array([UP]), 0.0)
    assert set_integrals(level, still, 0.0) is still


def free_joint(make, gravity):
    """Loop of a law tau = -4 v, which brings the joint back to nowhere."""
    loop = loop_of(vertical_link(make, gravity), raised(make))
    law = loop.controller.law
    inputs = [ca.SX.sym(f"i{k}", law.numel_in(k)) for k in range(law.n_in())]
    damper = ca.Function("law", inputs, [-4 * inputs[6][0], ca.SX(0, 1)])
    return close_around(replace(loop.controller, recipe=damper), loop.truth)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81)])
def test_a_neutral_loop_rests_at_its_reference(make, gravity):
    # without gravity, or with one along the axis that bends nothing in the plane
    loop = free_joint(make, gravity)
    rest = find_loop_equilibrium(loop, np.array([UP]), 0.0)
    np.testing.assert_allclose(rest.q, loop.truth.straight(np.array([UP])), atol=1e-15)
    assert not rest.falls


@pytest.mark.parametrize("side", [1, -1])  # the arm and its mirror image
def test_an_arm_that_its_gains_do_not_hold_falls_to_where_it_rests(make, side):
    arm = vertical_link(make, (0.0, -9.81 * side, 0.0))
    design = make["design"]([0.0], [side * UP], "joint-pd", gains=PD, duration=6.0)
    loop = loop_of(arm, design, apply_settings(arm, ["payload.mass=*0.95"]))
    rest = find_loop_equilibrium(loop, np.array([side * UP]), 0.0)
    assert rest.falls
    assert rest.q[0] == pytest.approx(side * 3.606, abs=1e-3)
    assert not find_loop_equilibrium(loop_of(arm, design), np.array([side * UP]), 0.0).falls


def test_a_loop_that_leaves_its_reference_has_no_margins(make):
    with pytest.raises(NoEquilibriumError, match="no equilibrium at its reference"):
        stability_margins(rigid_loop(make, 2.85))
    assert stability_margins(rigid_loop(make, 2.0)).gain_db[0] > 0


def test_from_a_place_with_no_equilibrium_near_none_is_found(make):
    loop = loop_of(vertical_link(make), raised(make))
    far = loop.truth.straight(np.array([2.0]))
    with pytest.raises(NoEquilibriumError):
        find_loop_equilibrium(loop, np.array([UP]), 0.0, start=(far, np.zeros(0)))


def payload_family(loop, joints):
    """Loops over the relative error of the payload, of which the law knows the nominal value."""
    return ErrorFamily(
        closed=loop,
        joints=joints,
        second_loop_weight=0.0,
        loop_with=lambda error: replace(loop, truth=loop.truth.loaded(1 + error)),
        lowest=-1.0,
    )


def test_the_payload_at_which_the_equilibrium_ends(make):
    # the fold by hand: rest and a singular derivative of the torques at once, links rigid in EI
    # 1e7, where c = (1/2 rho l^2 + m l) g cos q
    stiff = vertical_link(make, EI={"y": 1e7})
    loop = loop_of(stiff, raised(make))
    own, load = 0.5 * 1.5 * 0.81 * 9.81, 0.45 * 0.9 * 9.81

    def fold(x):
        q, error = x
        c = own + (1 + error) * load
        return [
            5.6 * (q - UP) - (own + load) * np.cos(UP) + c * np.cos(q),
            5.6 - c * np.sin(q),
        ]

    q, expected = scipy.optimize.fsolve(fold, [0.6, -0.02], xtol=1e-14)
    found = payload_family(loop, np.array([UP])).interval()
    assert found.lower.alpha == pytest.approx(expected, abs=1e-6)
    assert (found.lower.ends, found.lower.kind, found.lower.mode) == (
        "fold",
        "divergence",
        "joint1",
    )
    assert not found.proven
    assert abs(q - UP) > 0.05


def test_beyond_the_end_that_was_followed_the_rebuilt_loop_falls(make):
    loop = loop_of(vertical_link(make), raised(make))
    end = payload_family(loop, np.array([UP])).interval().lower.alpha
    assert end == pytest.approx(-0.0224915, abs=2e-7)
    falls = [
        find_loop_equilibrium(with_load(loop, 1 + x * end), np.array([UP]), 0.0).falls for x in ENDS
    ]
    assert falls == [False, True]


def test_payload_errors_are_guaranteed_only_as_far_as_the_equilibrium_was_followed(make):
    loop = Case.of(vertical_link(make), raised(make), truth_basis=TRUTH).close()
    asked = {"t": 6.0, "where": "the final pose"}
    whole = bound_errors(loop, np.array([UP]), 0.0, {"payload": 1.0}, **asked)
    assert whole.guaranteed[0].upper == pytest.approx(0.0224915, abs=2e-7)
    assert (whole.ends, whole.mode, whole.bounds.proven) == ("fold", "joint1", False)
    assert (whole.bounds.followed, whole.bounds.stopped) == (True, "")

    # the bounds of the equilibrium without errors are none of a loop that does not keep it
    late = Deadline(begun=-20.0, ends=0.0)
    cut = bound_errors(loop, np.array([UP]), 0.0, {"payload": 1.0}, **asked, deadline=late)
    assert cut.bounds.guaranteed_fraction == 0.0
    assert "each single error" in cut.bounds.stopped
    assert cut.bounds.worst_case is None


def test_errors_are_followed_no_farther_than_they_are_asked_for(make):
    loop = Case.of(vertical_link(make), raised(make), truth_basis=TRUTH).close()
    asked = {"t": 6.0, "where": "the final pose"}
    near, far = (
        bound_errors(loop, np.array([UP]), 0.0, {"payload": 1.0}, **asked, reach=reach)
        for reach in (0.02, 0.03)
    )
    assert (near.guaranteed[0].upper, near.ends, near.bounds.worst_case) == (0.02, "", None)
    assert (far.guaranteed[0].upper, far.ends) == (pytest.approx(0.0224915, abs=2e-7), "fold")


def test_a_payload_is_judged_at_the_pose_that_tolerates_least_of_it(make):
    found = stiffness_margin(
        vertical_link(make), raised(make), truth_basis=TRUTH, n_path=3, errors={"payload": 1.0}
    )
    final, worst = found.independent
    assert [final.t, worst.t] == [6.0, 6.0]  # at the start it tolerates 24 times as much
    assert "least payload error" in worst.where
    assert worst.guaranteed[0].upper == final.guaranteed[0].upper


@pytest.mark.parametrize(("load", "rests"), [(0.98, True), (0.95, False)])
def test_no_margin_is_given_of_where_an_arm_falls_to(make, load, rests):
    # with 2.25 % less payload than the law knows the equilibrium at UP ends
    arm = vertical_link(make)
    case = {"truth_basis": TRUTH, "true_arm": apply_settings(arm, [f"payload.mass=*{load}"])}
    if rests:
        assert stiffness_margin(arm, raised(make), n_path=0, **case).exact.alpha_upper == np.inf
        return
    with pytest.raises(NoEquilibriumError, match=r"no equilibrium at its reference joint1 = 0\.5"):
        stiffness_margin(arm, raised(make), n_path=0, **case)
    lowered = make["design"]([UP], [-UP], "joint-pd", gains=PD, duration=6.0)
    path = stiffness_margin(arm, lowered, n_path=2, **case).path
    assert [(at.interval is None, at.why) for at in path] == [
        (True, "the loop has no equilibrium at its reference"),
        (False, ""),
    ]


@pytest.mark.slow
def test_a_finer_truth_without_an_equilibrium_costs_no_verdict_and_no_recommendation(make):
    # as if the finer meshes were of an arm with 5 % less payload, of which the loop falls
    arm = vertical_link(make)
    loop, light = loop_of(arm, raised(make)), apply_settings(arm, ["payload.mass=*0.95"])
    finer = [
        assemble_plant(light, BasisChoice(kind="elements", order=n), interpreted=True)
        for n in (3, 4)
    ]
    found = evaluate(loop, others=finer)

    assert (found.not_computed, found.failed) == ({}, None)
    assert found.stability.stable is True
    assert found.stability.orders == (2, 3, 4)
    np.testing.assert_array_equal(np.isnan(found.stability.abscissae), [False, True, True])
    assert found.stability.settles_at_order == 3
    assert to_json(found)["spillover"]["spectral_abscissa"][1:] == [None, None]
    assert unstable_orders(found) == [3, 4]
    warning = "no equilibrium at its reference on models of 3 and 4 elements per link"
    assert warning in warnings_of(found)


def bounded_with(monkeypatch, *answers):
    """Let poses have these (fraction, why it stopped, worst case); return what each was asked."""
    asked, left = [], iter(answers)

    def bounded(_study, _pose, *, t, where, deadline, reach=np.inf, **_more):
        fraction, stopped, worst = next(left)
        asked.append((t, reach, deadline.whole))
        found = Fraction(guaranteed_fraction=fraction, stopped=stopped, worst_case=worst)
        return Bound(t=t, where=where, bounds=found, guaranteed=fraction)

    monkeypatch.setattr(
        "flexctl.robustness.stiffness.independent_errors.IndependentStudy._bounded", bounded
    )
    return asked


@dataclass(frozen=True)
class Fraction:
    guaranteed_fraction: float
    stopped: str
    worst_case: str | None
    mu_peak: float = 1.0
    proven: bool = True


@dataclass(frozen=True)
class Bound:
    t: float
    where: str
    bounds: Fraction
    guaranteed: object


def margin_along(make, time_limit=1e4):
    asked = {"errors": {"payload": 1.0}, "time_limit": time_limit, "n_path": 3}
    return stiffness_margin(
        vertical_link(make), raised(make), truth_basis=TRUTH, **asked
    ).independent


def test_poses_of_a_motion_are_followed_no_farther_than_the_least_bound(make, monkeypatch):
    asked = bounded_with(monkeypatch, (0.5, "", None), (0.4, "", None), (0.4, "", None))
    final, least = margin_along(make)
    # the final pose is the last one of the motion, and is not followed twice
    assert asked == [(6.0, np.inf, 1e4), (3.0, 0.5, 1e4), (0.0, 0.4, 1e4)]
    assert (final.t, final.bounds.guaranteed_fraction) == (6.0, 0.5)
    assert (least.t, least.bounds.guaranteed_fraction) == (3.0, 0.4)
    assert "tolerates the least payload error" in least.where


@pytest.mark.parametrize(("second", "worst"), [(None, "final"), ("second", "second")])
def test_of_poses_that_the_time_did_not_suffice_for_nothing_is_said(
    make, monkeypatch, second, worst
):
    bounded_with(monkeypatch, (0.5, "", "final"), (0.0, "late", second))
    _, least = margin_along(make)
    assert least.where == "the poses of the motion"
    assert least.bounds.guaranteed_fraction == 0.0
    assert (least.bounds.stopped, least.bounds.worst_case) == ("late", worst)


def test_no_pose_is_begun_after_the_time_limit(make, monkeypatch):
    asked = bounded_with(monkeypatch, (0.5, "", "final"))
    _, least = margin_along(make, time_limit=1e-9)
    assert len(asked) == 1
    assert least.where == "the poses of the motion"
    assert "was reached before all poses were judged" in least.bounds.stopped
    assert (least.bounds.guaranteed_fraction, least.bounds.proven) == (0.0, False)
    assert [(one.kind, one.upper) for one in least.guaranteed] == [("payload", 0.0)]
    assert least.bounds.worst_case == "final"


def test_a_plant_with_more_payload_is_the_one_assembled_with_it(make):
    arm = vertical_link(make)
    truth = assemble_plant(arm, TRUTH, interpreted=True)
    heavy = truth.loaded(2.0)
    twice = apply_settings(arm, ["payload.mass=*2", "payload.inertia=[0.0016, 0.0016, 0.0016]"])
    other = assemble_plant(twice, TRUTH, interpreted=True)
    q = truth.straight(np.array([0.4])) + 1e-3
    for name in ("mass_matrix", "gravity", "tangent_stiffness"):
        expected = getattr(other, name)(q)
        np.testing.assert_allclose(getattr(heavy, name)(q), expected, rtol=1e-12, atol=1e-12)


ENDS = (0.999, 1.001)


def with_load(loop, times):
    load = loop.truth.arm.payload
    inertia = tuple(times * np.array(load.inertia))
    payload = load.model_copy(update={"mass": times * load.mass, "inertia": inertia})
    arm = loop.truth.arm.model_copy(update={"payload": payload})
    return close_around(loop.controller, assemble_plant(arm, TRUTH, interpreted=True))


@pytest.mark.parametrize(("limit", "held"), [(8.88, False), (8.9, True)])
def test_the_smallest_torque_that_holds(make, limit, held):
    # at rest the link asks for 8.889 N m
    loop = loop_of(vertical_link(make, limits={"torque": limit}), raised(make))
    resting = describe_equilibrium(loop, find_loop_equilibrium(loop, np.array([UP]), 0.0))
    assert resting.holding_torque == pytest.approx([8.8888], abs=1e-4)
    assert resting.holds == held
    words = why_not_held(loop, resting, np.zeros(0), [])
    assert words == ("" if held else f"{WEAK}: joint1 needs 8.89 N m, its limit is 8.88 N m")


WEAK = "the actuators cannot hold the arm at rest at the end of the motion"


def test_an_observer_that_knows_the_limit_hides_no_motor_that_is_too_weak(make):
    # its law clips the torque itself: what it asks for at rest is what decides
    law = LAWS["observer"](make)
    strong, weak = (loop_of(vertical_link(make, limits={"torque": x}), law) for x in (30.0, 5.0))
    resting = [
        describe_equilibrium(x, find_loop_equilibrium(x, np.array([UP]), 0.0))
        for x in (strong, weak)
    ]
    assert [x.holds for x in resting] == [True, False]
    np.testing.assert_allclose(resting[1].holding_torque, resting[0].holding_torque, rtol=1e-9)


def test_a_torque_that_cannot_be_held_on_the_way_fails_the_design(make):
    # from hanging down past the horizontal to upright: neither end asks for a torque
    link = {key: value for key, value in LINK.items() if key not in ("EI", "damping_ratio")}
    arm = make["arm"]([link | {"limits": {"torque": 5.0}}], DOWN, LOAD)
    design = make["design"]([-np.pi / 2], [np.pi / 2], gains={"Gp": [100.0], "Gv": [20.0]})
    truth = BasisChoice(order=1)
    found = compare(arm, [design], truth_basis=truth, baseline=False)
    judged = found.evaluations[0]
    assert judged.rest.holds
    assert judged.tracking is None
    assert "at its pose at t = " in judged.failed
    assert "joint1 needs" in judged.failed
    assert "its limit is 5 N m" in judged.failed
    assert found.ranking == ()


def test_no_margin_is_given_of_an_arm_that_its_actuators_cannot_hold(make):
    arm = vertical_link(make, limits={"torque": 8.0})
    words = "margin: the actuators cannot hold the arm at this pose: joint1 needs 8.89 N m"
    with pytest.raises(DesignError, match=words):
        stiffness_margin(arm, raised(make), truth_basis=TRUTH, n_path=0)


def test_the_torque_that_is_named_is_the_largest_of_the_motion(make):
    # from hanging down through the horizontal, where 13.0 N m hold the arm, to upright
    arm = vertical_link(make, limits={"torque": 9.0})
    design = make["design"]([-1.5], [1.5], "decoupling", gains={"Gp": [60.0], "Gv": [15.0]})
    loop = loop_of(arm, design)
    judged = evaluate(loop)
    level = loop.truth.gravity(loop.truth.straight(np.array([0.0])))[0]
    assert f"joint1 needs {level:.3g} N m, its limit is 9 N m" in judged.failed
    assert "first exceeded at t = " in judged.failed


@pytest.mark.slow
def test_where_an_arm_falls_to_is_no_place_to_judge_it_at(make):
    arm = vertical_link(make)
    loop = loop_of(arm, raised(make), apply_settings(arm, ["payload.mass=*0.95"]))
    judged = evaluate(loop)
    assert judged.rest.falls
    assert (
        judged.stability is judged.margins is judged.stiffness is judged.min_sampling_rate is None
    )
    assert "3.61 rad" in judged.failed


def test_poses_are_followed_up_to_where_the_equilibrium_is_lost(make):
    # by hand: where the fold of the statics is at the reference, the slowest eigenvalue is zero
    arm = vertical_link(make)
    loop = loop_of(arm, raised(make), apply_settings(arm, ["payload.mass=*0.95"]))
    times = np.linspace(0, 6, 5)
    last = rests_until(loop, times)
    motion = loop.controller.reference
    before, beyond = (motion.sample(np.array([last + dt]))[0][:, 0] for dt in (0.0, 1e-4))
    assert 3.0 < last < 4.5
    rates = np.linalg.eigvals(loop_matrix(linearise_loop(loop, before, 0.0)))
    assert -0.01 < rates.real.max() < 0
    assert find_loop_equilibrium(loop, beyond, 0.0).falls
    assert rests_until(loop_of(arm, raised(make)), times) == 6.0
    assert rests_until(loop_of(vertical_link(make, (0.0, 0.0, 0.0)), raised(make)), times) == 6.0


def test_over_a_number_that_takes_the_equilibrium_away_nothing_is_followed(make):
    arm = vertical_link(make)
    variation = Variation(
        key="payload.mass",
        setup=Setup.of(arm, BasisChoice(kind="modes", order=1), truth_basis=TRUTH),
        design=raised(make),
        redesign=True,
        truth_set=("payload.mass=0.45",),
    )
    source = over_number(variation)
    assert np.linalg.eigvals(source.matrix(0.45)).real.max() < 0
    with pytest.raises(NoEquilibriumError, match=r"payload\.mass: expected values at .* got 0\.5,"):
        source.matrix(0.5)  # with 10 % less than the law knows


def test_with_a_fixed_law_values_are_followed_up_to_where_the_equilibrium_is_lost(make):
    # by hand: where the fold of the statics is reached, the slowest eigenvalue is zero
    arm = vertical_link(make)
    variation = Variation(
        key="payload.mass",
        setup=Setup.of(arm, BasisChoice(kind="modes", order=1), truth_basis=TRUTH),
        design=raised(make),
    )
    own = arm.payload.mass
    source = over_number(variation)
    values = rests_between(source, np.linspace(0.8 * own, 1.2 * own, 3), variation.design_value)
    first = float(values[0])
    assert 0.9 * own < first < own
    assert len(values) == 3
    rates = np.linalg.eigvals(source.matrix(first)).real
    assert -0.05 < rates.max() < 0
    beyond = apply_settings(arm, [f"payload.mass={first - 1e-5 * own!r}"])
    assert find_loop_equilibrium(loop_of(arm, raised(make), beyond), np.array([UP]), 0.0).falls
    with pytest.raises(
        NoEquilibriumError, match=r"payload\.mass: expected values .* got 0\.1 to 0\.2, at"
    ):
        rests_between(source, np.array([0.1, 0.2]), variation.design_value)
