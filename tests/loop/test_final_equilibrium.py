"""Where a loop rests, in numbers and words: a polar arm, whose tip and torques are a few lines."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flexctl.errors import ComputationError, NoEquilibriumError
from flexctl.loop import final_equilibrium as module
from flexctl.loop.equilibrium import Equilibrium
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

FINAL = np.array([0.5, 0.7])


def polar(limit=(20.0, 9.0), truth=None, per_command=(1.0, 1.0)):
    """A loop of a joint that turns and one that slides, as far as it is asked for its rest."""

    def tip(q):
        return np.array([q[1] * np.cos(q[0]), q[1] * np.sin(q[0]), 0.1])

    own = SimpleNamespace(
        m=2, joints=("joint1", "joint2"), tip=tip,
        bodies=(SimpleNamespace(sliding=False), SimpleNamespace(sliding=True)),
        torque_per_command=np.array(per_command),
    )  # fmt: skip
    controller = SimpleNamespace(reference=SimpleNamespace(final=FINAL))
    loop: Any = SimpleNamespace(
        truth=truth or own, controller=controller, holding_limit=np.array(limit)
    )
    return loop


def at(q, tau=(0.0, 0.0), falls=False):
    """A rest at q, of an arm whose third coordinate sags when its joints are held."""
    return Equilibrium(
        desired=FINAL, q=np.array([*q, -0.03]), z=np.zeros(0), tau=np.array(tau),
        reference=np.array([*FINAL, -0.02]), falls=falls,
    )  # fmt: skip


def test_a_rest_is_described_against_its_reference_and_limits():
    found = module.describe_equilibrium(polar(), at([0.43, 0.76], [13.0, -4.1]))

    assert found.exists
    assert found.joint.tolist() == [0.43, 0.76]
    np.testing.assert_allclose(found.offset, [-0.07, 0.06], rtol=1e-12)
    between = 0.76**2 + 0.7**2 - 2 * 0.76 * 0.7 * np.cos(0.07)  # the law of cosines
    assert found.tip_offset == pytest.approx(np.sqrt(between), rel=1e-12)
    assert found.holding_torque.tolist() == [13.0, -4.1]
    assert found.limit.tolist() == [20.0, 9.0]
    assert found.sliding == {1}
    assert found.falls is False
    assert found.elsewhere is None
    assert module.describe_equilibrium(polar(), at([0.43, 0.76], falls=True)).falls


def test_commands_of_motors_hold_by_their_torques():
    found = module.describe_equilibrium(polar(per_command=(2.5, 0.1)), at([0.5, 0.7], [8.0, -41.0]))

    np.testing.assert_allclose(found.holding_torque, [20.0, -4.1], rtol=1e-15)
    assert found.limit.tolist() == [20.0, 9.0]
    assert found.holds


@pytest.mark.parametrize(
    ("torque", "weak"),
    [
        ([20.0, 9.0], []), ([-20.0, -9.0], []), ([20.001, 1.0], [0]), ([1.0, -9.001], [1]),
        ([20.0 * (1 + 5e-10), 9.0], []),  # round-off
    ],
)  # fmt: skip
def test_what_actuators_can_give_holds(torque, weak):
    found = module.describe_equilibrium(polar(), at(FINAL, torque))

    assert found.holds == (not weak)
    assert module.exceeding(np.array(torque), found.limit).tolist() == weak


def test_without_a_rest_the_arm_is_described_as_held_at_its_reference(make):
    # a mass that slides on a massless arm in a vertical plane
    turn = {"joint": "revolute", "joint_inertia": 0.5, "dh": {"alpha": np.pi / 2}}
    slide = {"joint": "prismatic", "joint_inertia": 0.1}
    arm = make["arm"]([turn, slide], (0.0, -9.81, 0.0), {"mass": 2.0})
    loop = polar(truth=assemble_plant(arm, BasisChoice(), interpreted=True))
    found = module.describe_equilibrium(loop, None)
    # the slider points along (sin, -cos) of the joint's angle
    weight, (angle, reach) = 2.0 * 9.81, FINAL
    held = weight * np.array([reach * np.sin(angle), -np.cos(angle)])

    assert not found.exists
    np.testing.assert_allclose(found.holding_torque, held, rtol=1e-12)
    assert found.holds == (np.abs(held) <= [20.0, 9.0]).all()
    assert found.limit.tolist() == [20.0, 9.0]
    assert np.isnan([*found.joint, *found.offset, found.tip_offset]).all()
    assert found.sliding == {1}
    assert found.falls is False


def test_an_arm_that_nothing_holds_has_no_holding_torque(monkeypatch):
    def fail(_truth, _q):
        raise ComputationError("buckles")

    loop = polar()
    loop.truth.straight = lambda joints: joints
    monkeypatch.setattr(module, "find_equilibrium", fail)

    assert np.isnan(module.describe_equilibrium(loop, None).holding_torque).tolist() == [True, True]


@pytest.fixture
def other(monkeypatch):
    """other(rest, found, end): what `other_equilibrium` says of a run that ends at `end`."""

    def ask(rest, found, end):
        asked = {}

        def find(_loop, joints, share, start=None):
            asked.update(joints=joints, share=share, start=start)
            if found is None:
                raise NoEquilibriumError("none")
            return found

        monkeypatch.setattr(module, "find_loop_equilibrium", find)
        q = np.array([[9.0, 7.0, end[0]], [9.0, 7.0, end[1]], [9.0, 7.0, -0.03]])
        result = module.other_equilibrium(polar(), rest, (q[:, 2], np.array([0.25])), 0.75)
        assert asked["joints"] is FINAL
        assert asked["share"] == 0.75
        assert [part.tolist() for part in asked["start"]] == [q[:, 2].tolist(), [0.25]]
        return result

    return ask


def test_a_run_leads_to_the_rest_next_to_its_end(other):
    here, there = at([0.5, 0.7]), at([2.5, 0.7])

    assert other(here, None, [2.4, 0.7]) is None
    assert other(None, there, [2.4, 0.7]) is there
    assert other(here, there, [2.4, 0.7]) is there
    assert other(here, there, [0.6, 0.7]) is None
    assert other(there, here, [2.4, 0.7]) is None
    assert other(here, there, [1.5, 0.7]) is None  # as near to both
    assert other(here, at([0.5 + 1e-7, 0.7]), [0.5 + 1e-7, 0.7]) is None
    beside = at([0.5 + 1e-5, 0.7])
    assert other(here, beside, [0.5 + 1e-5, 0.7]) is beside


WEAK = "the actuators cannot hold the arm"
END = "at rest at the end of the motion"


@pytest.mark.parametrize(
    ("torque", "words"),
    [
        ([20.0, -9.0], ""),
        ([-21.6, 8.0], f"{WEAK} {END}: joint1 needs 21.6 N m, its limit is 20 N m"),
        ([21.0, -9.9], f"{WEAK} {END}: joint2 needs 9.9 N, its limit is 9 N"),
    ],
)
def test_the_weakest_joint_is_named_with_its_torque_and_limit(torque, words):
    loop = polar()
    end = module.describe_equilibrium(loop, at(FINAL, torque))
    assert module.why_not_held(loop, end, np.zeros(0), []) == words


def test_the_pose_that_asks_most_is_named_and_from_when_on_it_is_too_much():
    loop, times = polar(), np.array([0.0, 0.537, 1.079, 1.618])
    asked = ([20.0, 9.0], [3.0, -11.3], [29.6, 1.0], [25.0, 1.0])
    rests = [at(FINAL, tau) for tau in asked]
    end = module.describe_equilibrium(loop, at(FINAL, [1.0, 2.0]))

    def said(poses):
        return module.why_not_held(loop, end, times[poses], rests[poses])

    weak = f"{WEAK} at its pose at t = %s s of the motion: joint%d needs %s, its limit is %s"
    assert said(slice(4)) == (
        weak % ("1.08", 1, "29.6 N m", "20 N m")
        + "; of the poses judged, a limit is first exceeded at t = 0.537 s"
    )
    assert said(slice(2)) == weak % ("0.537", 2, "11.3 N", "9 N")
    assert said(slice(1)) == ""


def test_an_arm_that_leaves_its_reference_is_said_to_with_the_place_it_goes_to():
    loop = polar()
    stays, gone = (
        module.describe_equilibrium(loop, at([2.51, 0.123], falls=x)) for x in (False, True)
    )
    elsewhere = replace(gone, elsewhere=np.array([-1.234, 0.456]))
    reference = "(reference: joint1 = 0.5 rad, joint2 = 0.7 m)"

    assert module.why_it_leaves(loop, stays) == ""
    words = module.why_it_leaves(loop, gone)
    assert words.endswith(f"joint1 = 2.51 rad, joint2 = 0.123 m {reference}")
    words = module.why_it_leaves(loop, elsewhere)
    assert words.endswith(f"joint1 = -1.23 rad, joint2 = 0.456 m {reference}")
    none = module.describe_equilibrium(loop, at(FINAL, falls=True))
    assert module.why_it_leaves(loop, replace(none, exists=False)) == ""
