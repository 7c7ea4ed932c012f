"""LQG: the poles of its Riccati equations are those of the loop on the design plant."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import controller_at, design_controller, scheduled_loop
from flexctl.errors import DesignError, InputError
from flexctl.loop import equilibrium_at_reference
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.plant.equilibrium import find_equilibrium
from tests.arms import single_link
from tests.designs import make_design
from tests.two_scales import arm_of, design_of, pose_of

pytestmark = pytest.mark.usefixtures("no_compiler")

WEIGHTS = {"joint_error": 200.0, "joint_rate": 2.0, "strain_energy": 3.0, "kinetic_energy": 2.0}
WEIGHTS |= {"effort": 0.1}
INTEGRAL = WEIGHTS | {"joint_integral": 900.0}
GAINS = {"Gp": 1.0, "Gv": 1.0}
OBSERVED = {"measures": ["encoder", "tachometer"]}
ARMS = ["rigid-joints", "sliding", "heavy-sliding", "heavy-spatial", "mixed"]


def closed(name, second=None, **more):
    """Loop of an arm of two scales on its own design plant."""
    arm, order = arm_of(name), {"kind": "modes", "order": 1}
    second = second or {"weights": WEIGHTS}
    end = pose_of(arm)
    tables = {"gains": None, "second_loop": second, "basis": order, "kind": "quintic"}
    design = make_design(0.8 * end, end, "lqg", duration=2.0, **tables, **more)
    return close_loop(design_controller(arm, design), arm, BasisChoice(**order))


def poles_of(loop):
    """Poles of the loop where the reference ends."""
    return np.sort_complex(linearise_loop(loop, loop.controller.reference.final, 1.0).poles)


def care_poles(loop, w):
    """Poles of the LQR by SciPy, weights and equations written down here."""
    plant = loop.truth
    linear = linearise(plant, plant.straight(loop.controller.reference.final))
    n, r = plant.n, list(plant.drives)
    f = [row for row in range(n) if row not in r]
    M, D, K, S = linear.M, linear.D, linear.K, linear.K_elastic
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, np.hstack([K, D]))]])
    B = np.vstack([np.zeros((n, plant.m)), np.linalg.solve(M, np.eye(n)[:, r])])
    Qp, Qv = w["strain_energy"] * S / 2, np.zeros((n, n))
    rigid = [row for row in r if row < plant.m]  # whose motion strains nothing
    Qp[rigid], Qp[:, rigid] = 0, 0
    Qp[r, r] += w["joint_error"]
    Qv[np.ix_(f, f)] = w["kinetic_energy"] * M[np.ix_(f, f)] / 2
    Qv[r, r] = w["joint_rate"]
    Q = scipy.linalg.block_diag(Qp, Qv)
    if "joint_integral" in w:
        sums = np.hstack([np.eye(n)[r], np.zeros((plant.m, n + plant.m))])
        A = np.vstack([np.hstack([A, np.zeros((2 * n, plant.m))]), sums])
        B = np.vstack([B, np.zeros((plant.m, plant.m))])
        Q = scipy.linalg.block_diag(Q, w["joint_integral"] * np.eye(plant.m))
    P = scipy.linalg.solve_continuous_are(A, B, Q, w["effort"] * np.eye(plant.m))
    return np.linalg.eigvals(A - B @ B.T @ P / w["effort"])


@pytest.mark.slow_but("sliding-integral", "rigid-joints-integral", "mixed-integral")
@pytest.mark.parametrize("weights", [WEIGHTS, INTEGRAL], ids=["state", "integral"])
@pytest.mark.parametrize("name", ARMS)
def test_the_loop_has_the_poles_of_its_riccati_equation(name, weights):
    loop = closed(name, {"weights": weights})

    found = poles_of(loop)

    own = np.sort_complex(loop.controller.feedback.poles)
    assert found == pytest.approx(own, abs=1e-9 * np.abs(own).max())
    exact = np.sort_complex(care_poles(loop, weights))
    assert found == pytest.approx(exact, abs=1e-7 * np.abs(exact).max())  # of the Riccati equation


@pytest.mark.slow_but("rigid-joints-integral", "rigid-joints-state")
@pytest.mark.parametrize("weights", [WEIGHTS, INTEGRAL], ids=["state", "integral"])
@pytest.mark.parametrize("name", ["rigid-joints", "heavy-spatial"])
def test_with_an_observer_the_poles_are_those_of_both(name, weights):
    loop = closed(name, {"weights": weights}, loop=OBSERVED)
    controller = loop.controller

    found = poles_of(loop)

    both = np.sort_complex([*controller.feedback.poles, *controller.observer.poles])
    assert found == pytest.approx(both, abs=1e-7 * np.abs(both).max())


@pytest.mark.parametrize("schedule", [0, 5])
@pytest.mark.parametrize("name", ["heavy-sliding", "heavy-spatial"])
def test_at_rest_along_the_path_it_holds_the_sagging_arm(name, schedule):
    # sag and torque are interpolated between 17 poses of the path: exact to round-off
    loop = closed(name, {"weights": WEIGHTS, "schedule": schedule})
    for share in (0.0, 0.37, 1.0):
        tau, holding = torques_at_rest(loop.controller, share)

        assert tau == pytest.approx(holding, abs=1e-7 * np.abs(holding).max())


@pytest.mark.parametrize("share", [0.11, 0.52, 0.83])
@pytest.mark.parametrize("turns", [3, -8])
def test_along_a_path_of_several_turns_it_holds_the_sagging_arm(turns, share):
    tau, holding = torques_at_rest(turning(turns), share)

    assert tau == pytest.approx(holding, abs=1e-6 * LIFTS)


def test_a_path_with_too_many_turns_under_gravity_is_refused(monkeypatch):
    monkeypatch.setattr(scheduled_loop, "_MOST", 33)  # quicker
    with pytest.raises(DesignError, match=r"\Areference: expected a path .* from 33 poses; take a"):
        turning(8)


def test_where_nothing_sags_a_path_may_have_many_turns():
    controller = turning(1000, gravity=(0.0, 0.0, -9.81))  # along the axis of the joint

    assert "sag16" in controller.recipe.numbers
    assert "sag17" not in controller.recipe.numbers


def test_without_its_weight_it_holds_a_straight_arm():
    arm = single_link().model_copy(update={"gravity": (0.0, -9.81, 0.0)})
    tables = {"gains": None, "second_loop": {"weights": WEIGHTS}}
    design = make_design([0.3], [0.8], "lqg", **tables)
    controller = design_controller(arm, design, BasisChoice(kind="modes", order=1))

    afloat = controller_at(controller, {"gravity[2]": 0.0})

    assert np.abs(torques_at_rest(afloat, 0.5)).max() < 1e-12


LIFTS = 9.81 * (0.54 / 2 + 0.25)  # largest torque [N m] on the arm below


def turning(turns, gravity=(0.0, -9.81, 0.0)):
    """LQR of a flexible link that turns through its whole circle."""
    arm = single_link().model_copy(update={"gravity": gravity})
    tables = {"gains": None, "second_loop": {"weights": WEIGHTS}, "duration": 20.0}
    design = make_design([0.3], [0.3 + 2 * np.pi * turns], "lqg", **tables)
    return design_controller(arm, design, BasisChoice(kind="modes", order=1))


def torques_at_rest(controller, share):
    """Torques of the law (m,) at the equilibrium there, and those that hold the arm."""
    plant, motion = controller.plant.nominal, controller.reference
    joints, still = motion.start + share * (motion.final - motion.start), np.zeros(plant.m)
    q, holding = find_equilibrium(plant, plant.straight(joints))
    tau = controller.evaluate("law", 0.0, [], joints, still, still, q, np.zeros(plant.n))[0]
    return tau.ravel(), holding


def test_a_schedule_is_that_of_composite_control():
    arm, second = arm_of("heavy-spatial"), {"weights": WEIGHTS, "schedule": 5}
    one = closed("heavy-spatial", second).controller
    other = design_of(arm, slow_loop=None, second_loop=second)
    other = design_controller(arm, other, BasisChoice(order=1))
    rng, n, m = np.random.default_rng(7), one.plant.n, one.plant.m
    q = one.plant.straight(one.reference.final) + rng.normal(size=n) / 50
    given = 0.0, [], *rng.normal(size=(3, m)), q, rng.normal(size=n)

    found = [c.evaluate("law", *given)[0] for c in (one, other)]

    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.slow_but("state-0", "observer-0", "state-5")
@pytest.mark.parametrize("schedule", [0, 5])
@pytest.mark.parametrize("loop", [{}, OBSERVED], ids=["state", "observer"])
def test_integral_action_brings_what_is_driven_to_its_reference_under_an_unknown_load(
    loop, schedule
):
    arm, order = arm_of("heavy-spatial"), {"kind": "modes", "order": 1}
    payload = arm.payload.model_copy(update={"mass": 1.5 * arm.payload.mass})
    true = arm.model_copy(update={"payload": payload})
    end, rest = pose_of(arm), {}
    for name, weights in (("state", WEIGHTS), ("integral", INTEGRAL)):
        second = {"weights": weights, "schedule": schedule}
        design = make_design(
            0.8 * end, end, "lqg", gains=None, second_loop=second, basis=order, loop=loop
        )
        controller = design_controller(arm, design)
        found = equilibrium_at_reference(
            close_loop(controller, true, BasisChoice(**order)), end, 1.0
        )
        sag = find_equilibrium(controller.plant.nominal, controller.plant.straight(end))[0]
        drives = list(controller.plant.drives)
        rest[name] = np.abs(found.q[drives] - sag[drives]).max()

    assert rest["state"] > 1e-3
    assert rest["integral"] < 1e-9


@pytest.mark.parametrize("name", ["rigid-joints", "heavy-spatial"])
def test_a_gain_with_integrals_can_be_given(name):
    own = closed(name, {"weights": INTEGRAL})
    gain = own.controller.feedback.gain
    given = closed(name, {"gain": gain.tolist()})

    assert gain.shape == (own.truth.m, 2 * own.truth.n + own.truth.m)
    assert poles_of(given) == pytest.approx(poles_of(own), rel=1e-9)


def test_a_chosen_gain_keeps_the_integrals():
    own = closed("rigid-joints", {"weights": INTEGRAL})
    gain, n = own.controller.feedback.gain, own.truth.n
    chosen = own.at({"second_loop.gain": gain})

    assert poles_of(chosen) == pytest.approx(poles_of(own), rel=1e-9)
    with pytest.raises(InputError, match=r"^second_loop.gain: .* \(2, 10\), got \(2, 8\)$"):
        own.at({"second_loop.gain": gain[:, : 2 * n]})


def test_a_given_gain_is_taken(make):
    gain = ((7.0, 0.1, 0.2, 3.0, 0.3, 0.4),)
    design = make["design"]([0.0], [1.0], "lqg", gains=None, second_loop={"gain": gain})
    controller = design_controller(make["single"](), design)
    q, v, zero = np.array([1.2, 0.01, -0.02]), np.array([0.5, 0.2, 0.1]), np.zeros(1)

    tau = controller.evaluate("law", 0.0, [], np.ones(1), zero, zero, q, v)[0].ravel()

    assert tau == pytest.approx([-7 * 0.2 - 0.001 + 0.004 - 1.5 - 0.06 - 0.04])


@pytest.mark.parametrize(
    ("kind", "to", "gravity", "refused"),
    [
        ("quintic", [0.5, 0.4], -9.81, True),
        ("quintic", [0.5, 0.4], 0.0, False),
        ("quintic", [0.0, 0.1], -9.81, False),  # it stays at a pose
        ("setpoint", [0.5, 0.4], -9.81, False),
    ],
)
def test_under_gravity_the_way_must_be_straight(make, kind, to, gravity, refused):
    arm = make["two-link"]((0.0, gravity, 0.0))
    second, ends = {"weights": WEIGHTS}, ([0.0, 0.1], to)
    more = {"duration": [0.5, 0.7]} if kind != "setpoint" else {}
    design = make["design"](*ends, "lqg", kind=kind, gains=None, second_loop=second, **more)
    if not refused:
        assert design_controller(arm, design).feedback is not None
        return
    with pytest.raises(InputError, match=r"reference: expected a straight line in joint space"):
        design_controller(arm, design)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"second_loop": None}, "second_loop: expected a table"),
        ({"gains": GAINS}, "gains: expected no such table"),
        ({"second_loop": {"decay": 3.0, "switch": {"blend": 0.1}}}, r"second_loop\.switch: exp"),
        ({"slow_loop": {"angle": "link"}}, "slow_loop: expected no such table"),
        (
            {"method": "composite", "gains": GAINS, "second_loop": {"weights": INTEGRAL}},
            r"second_loop\.weights\.joint_integral: expected no such key, as method is not lqg",
        ),
    ],
)
def test_what_does_not_belong_to_it_is_refused(make, tables, message):
    known = {"gains": None, "second_loop": {"decay": 3.0}, "method": "lqg"} | tables
    with pytest.raises(ValueError, match=message):
        make["design"]([0.0], [1.0], **known)


def test_a_motion_that_never_rests_is_refused_by_its_kind(make):
    second = {"weights": WEIGHTS}
    expected = r"reference\.kind: expected a motion that comes to rest, as method is lqg, got "
    with pytest.raises(ValueError, match=expected):
        make["design"]([0.0], [0.3], "lqg", kind="spin-up", gains=None, second_loop=second)
