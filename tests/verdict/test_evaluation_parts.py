"""What an evaluation does around its figures: when it samples, why a run ended, what it lacks."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from flexctl.errors import ComputationError, DesignError, InputError, RunError
from flexctl.model.record import BasisChoice
from flexctl.simulation.simulation import DEFAULT_SAMPLES
from flexctl.verdict import evaluation as module


def timed(duration, end):
    controller = SimpleNamespace(
        reference=SimpleNamespace(duration=end, steps=None),
        design=SimpleNamespace(reference=SimpleNamespace(kind="quintic")),
        sample_time=None,
        usual_duration=end + 0.5,
        final_second_loop_weight=0.0,
    )
    return SimpleNamespace(duration=duration, controller=controller)


@pytest.mark.parametrize(
    ("duration", "end", "more"),
    [
        (1.3, 0.5, 1), (1.0, 1.0, 0), (2.0, 0.0, 0), (1.0, 1.5, 0), (1.0, 0.123456789, 1),
        (10.0, 7.0000000000001, 0),  # a sample but for round-off
        (3.99998, 1.0, 1), (1.0, 0.9999999999999, 0),
    ],
)  # fmt: skip
def test_a_run_is_sampled_evenly_and_where_its_reference_ends(duration, end, more):
    t = module.run_times(timed(duration, end))

    assert len(t) == DEFAULT_SAMPLES + more
    assert (t[0], t[-1]) == (0.0, duration)
    assert (np.diff(t) > 0).all()
    assert (np.abs(t - end).min() < 1e-12) == (end <= duration)


def test_a_long_run_is_sampled_as_closely_as_one_of_four_usual_lengths():
    closest = 4 * 1.5 / (DEFAULT_SAMPLES - 1)

    for duration in (6.0, 6.1, 77.7, 599.0):
        step = np.diff(module.run_times(timed(duration, 1.0))).max()
        assert closest / 2 < step <= closest * (1 + 1e-9)
    assert len(module.run_times(timed(1e6, 1.0))) < 1.1e5


class _Rested(str):
    """Stands for where a loop rests, at its reference."""

    falls = False


RESTED = _Rested("resting")
TOLERANCE = SimpleNamespace(not_computed={})


def frozen(*rates, final=-1.0):
    rates = np.array(rates)
    times = np.linspace(0, 0.6, len(rates))
    return SimpleNamespace(path_abscissa=rates, path_t=times, spectral_abscissa=final)


@pytest.mark.parametrize(
    ("stability", "said", "unsaid"),
    [
        (frozen(-3.0, 1.25, 0.75), ("1.25 1/s", "t = 0.3 s"), ("the loop is stable",)),
        (frozen(-3.0, 0.25, -0.75), ("0.25 1/s", "t = 0.3 s"), ("the loop is stable",)),
        (frozen(2.5, 1.25, 0.75), ("2.5 1/s", "t = 0 s"), ("the loop is stable",)),
        (frozen(-3.0, -1.25, -2.0), ("the loop is stable",), ("1/s",)),
        (frozen(-3.0, -1.25, final=7.5), ("the final pose", "7.5 1/s"), ("the loop is stable",)),
        (frozen(-3.0, 0.0, -2.0), ("no disturbance grows",), ("1/s", "the loop is stable")),
        (frozen(-3.0, np.nan, 2.0), (), ("held still",)),
        (None, (), ("held still",)),
    ],
)
def test_why_a_run_ended_is_said_beside_its_frozen_loops(stability, said, unsaid):
    error = RunError("ends", time=0.4567, why="link2 bends too far")
    words = module._explain(error, stability, [])

    assert "0.457 s" in words
    assert "link2 bends too far" in words
    assert all(part in words for part in said)
    assert not any(part in words for part in unsaid)


@pytest.mark.parametrize(
    ("has", "left_out"),
    [
        ({}, []),
        ({"limits": [np.inf, 3.0]}, ["limits of the actuators"]),
        ({"dry": (1,)}, ["dry friction"]),
        ({"dry": (1,), "friction": None}, []),  # a truth plant without it
        ({"noisy": (0, 2)}, ["noise of readings"]),
        ({"resolution": 1e-3}, ["quantisation of readings or torques"]),
        ({"torque_resolution": 0.1}, ["quantisation of readings or torques"]),
        ({"limits": [3.0], "dry": (0,)}, ["limits of the actuators", "dry friction"]),
    ],
)
def test_what_eigenvalues_leave_out_may_be_why_a_run_of_a_stable_loop_ended(has, left_out):
    design = SimpleNamespace(
        loop=SimpleNamespace(torque_resolution=has.get("torque_resolution", 0.0)),
        instruments=[SimpleNamespace(resolution=has.get("resolution", 0.0))],
    )
    fitted = SimpleNamespace(noisy=has.get("noisy", ()))
    arm = SimpleNamespace(dry_joints=has.get("dry", ()))
    loop = SimpleNamespace(
        controller=SimpleNamespace(design=design, fitted=fitted),
        truth=SimpleNamespace(arm=arm, friction=has.get("friction", "a function")),
        holding_limit=np.array(has.get("limits", [np.inf])),
    )
    error = RunError("ends", time=0.4567, why="link2 bends too far")
    words = module._explain(error, frozen(-3.0, -1.25), module._not_linear(loop))

    other = f" or what eigenvalues leave out ({', '.join(left_out)})" if left_out else ""
    assert words.endswith(f"so that the cause is the motion itself{other}")


@pytest.mark.parametrize(
    "error",
    [
        ComputationError("no root"), DesignError("no gain"), ZeroDivisionError("by zero"),
        FloatingPointError("nan"), np.linalg.LinAlgError("singular"), ValueError("signs"),
    ],
    ids=repr,
)  # fmt: skip
def test_one_metric_that_fails_costs_that_metric_and_says_why(error):
    found = module._Assessment(loop=None, facts={})

    def fail():
        raise error

    assert found.get("margins", fail) is None
    assert found.get("other", lambda: 3.0) == 3.0
    assert set(found.missing) == {"margins"}
    assert str(error) in found.missing["margins"]


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), KeyboardInterrupt()], ids=repr)
def test_what_is_no_failed_computation_is_not_hidden(error):
    def fail():
        raise error

    with pytest.raises(type(error)):
        module._Assessment(loop=None, facts={}).get("margins", fail)


FACTS = {"name": "x", "method": "joint-pd", "basis": {}, "truth": {}, "cost": {}}


def test_what_is_known_is_put_together():
    found = module._Assessment(loop=None, facts=FACTS | {"assumptions": ("one",)})
    found.missing["margins"] = "no root"
    made = found.evaluation(failed="it fell", further=("two",))

    assert made.assumptions == ("one", "two")
    assert made.failed == "it fell"
    assert made.not_computed == {"margins": "no root"}
    found.missing["more"] = "later"
    assert "more" not in made.not_computed


def test_what_is_known_beforehand_is_that_of_the_design_the_truth_and_the_law():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    design = SimpleNamespace(
        name="alpha", method="joint-pd", loop=SimpleNamespace(settle_within=0.0123)
    )
    own, true = BasisChoice(kind="modes", order=2), BasisChoice(kind="elements", order=5)
    controller = SimpleNamespace(
        design=design,
        plant=SimpleNamespace(basis=own),
        law=ca.Function("law", [x, y], [x * y * (x + 1), ca.sin(x) * y - 3 + x]),
        numbers=np.zeros(0),
        sample_time=None,
        key="a law of this test",
    )
    loop: Any = SimpleNamespace(
        controller=controller, truth=SimpleNamespace(basis=true), assumptions=("one",)
    )
    found = module.Evaluation(**module._facts(loop))

    assert (found.name, found.method, found.settle_within) == ("alpha", "joint-pd", 0.0123)
    assert (found.basis, found.truth) == (own, true)
    assert found.assumptions == ("one",)
    assert found.cost == {"law_mul": 3, "law_add": 3, "law_other": 1}


def test_torques_are_no_motion_to_judge_by():
    design = SimpleNamespace(label="push.toml", reference=SimpleNamespace(torque=(1.0,)))
    with pytest.raises(InputError, match=r"push\.toml: reference"):
        module.require_motion(design)
    module.require_motion(SimpleNamespace(reference=SimpleNamespace(torque=None)))


@pytest.mark.parametrize(
    ("saturated", "named", "unnamed"),
    [
        ([True, False, True], ("joint1", "joint3"), ("joint2",)),
        ([False, True, False], ("joint2",), ("joint1",)),
    ],
)
def test_joints_at_their_limit_are_named(saturated, named, unnamed):
    arm = SimpleNamespace(links=())
    loop = SimpleNamespace(truth=SimpleNamespace(arm=arm, joints=("joint1", "joint2", "joint3")))
    (words,) = module._what_limits(loop, np.array(saturated))

    assert all(name in words for name in named)
    assert not any(name in words for name in unnamed)


@pytest.fixture
def judged(monkeypatch):
    """judged(name=what): an evaluation of which every part is a word, or what is given for it."""

    def word(name):
        return lambda *_args, **_more: name

    def run(open_loop=False, stable=True, saturated=(0.0, 0.0), no_rest=None, others=(), **parts):
        def fail(error):
            def part(*_args, **_more):
                raise error

            return part

        poses = SimpleNamespace(final=SimpleNamespace(rest="rest"))
        made = {
            "_facts": FACTS | {"assumptions": ("one",)},
            "require_loop": None,
            "Plant": object,
            "linear_poses": poses,
            "path_rests": ("times", "rests"),
            "describe_equilibrium": RESTED,
            "why_not_held": "",
            "why_it_leaves": "",
            "close_around": lambda _controller, plant: plant,
            "judge_stability": SimpleNamespace(stable=stable, **vars(frozen(-1.0))),
            "simulate": SimpleNamespace(saturated=np.array(saturated), end=None),
            "find_no_rest": no_rest,
            "other_equilibrium": None,
            "run_times": "times",
            "judge_stiffness": TOLERANCE,
            "why_no_readings": None,
        }
        names = ["judge_tracking", "judge_residual", "judge_effort", "stability_margins"]
        names += ["noise_levels", "judge_friction", "judge_positions", "sensor_margins"]
        names += ["neglected_at_rest"]
        made |= {name: name for name in names}
        made["sampling_rate_of"] = SimpleNamespace(rate="sampling_rate_of", limited_by=None)
        for name, value in (made | parts).items():
            fails = isinstance(value, Exception)
            does = value if callable(value) else fail(value) if fails else word(value)
            monkeypatch.setattr(module, name, does)
        reference = SimpleNamespace(torque=None)
        design = SimpleNamespace(
            open_loop=open_loop,
            reference=reference,
            label="design",
            instruments=(),
            loop=SimpleNamespace(torque_resolution=0.0),
        )
        arm = SimpleNamespace(links=())
        truth = SimpleNamespace(arm=arm, joints=("joint1", "joint2"), m=2, friction=None)
        controller = SimpleNamespace(
            design=design,
            external=None,
            own_states=(),
            observer=None,
            sample_time=None,
            fitted=None,
            final_second_loop_weight=0.0,
        )
        limits = np.array([np.inf])
        loop = SimpleNamespace(controller=controller, truth=truth, holding_limit=limits)
        return module.evaluate(loop, others=others)

    return run


PARTS = {
    "tracking": "judge_tracking",
    "residual": "judge_residual",
    "effort": "judge_effort",
    "positions": "judge_positions",
    "margins": "stability_margins",
    "sensor_margins": "sensor_margins",
    "min_sampling_rate": "sampling_rate_of",
    "stiffness": TOLERANCE,
    "rest": "resting",
    "noise": "noise_levels",
    "neglected": "neglected_at_rest",
    "friction": "judge_friction",
}
OF_STABLE = {"margins", "sensor_margins", "min_sampling_rate", "noise", "neglected", "friction"}


def known(found):
    return {key for key in PARTS if getattr(found, key) is not None}


def test_every_part_stands_where_it_belongs(judged):
    found = judged()
    assert {key: getattr(found, key) for key in PARTS} == PARTS
    assert found.stability.stable is True
    assert found.failed is found.no_rest is None
    assert found.not_computed == {}
    assert found.assumptions == ("one",)


@pytest.mark.parametrize(
    ("part", "metric", "lost"),
    [
        ("stability_margins", "margins", {"margins", "sensor_margins"}),
        ("sensor_margins", "margins.sensors", {"sensor_margins"}),
        ("sampling_rate_of", "margins.min_sampling_rate", {"min_sampling_rate"}),
        ("judge_stiffness", "stiffness", {"stiffness"}),
        ("neglected_at_rest", "neglected", {"neglected"}),
        ("judge_stability", "spillover", OF_STABLE),
        ("linear_poses", "stability", OF_STABLE),
    ],
)
def test_a_part_that_cannot_be_computed_is_named(judged, part, metric, lost):
    found = judged(**{part: ComputationError("no root")})
    assert found.not_computed == {metric: "no root"}
    assert set(PARTS) - known(found) == lost
    assert found.failed is None


def test_a_part_of_the_stiffness_margins_that_fails_is_named_by_itself(judged):
    partly = SimpleNamespace(not_computed={"path": "no root at t = 0.2 s"})
    found = judged(judge_stiffness=partly)
    assert found.stiffness is partly
    assert found.not_computed == {"stiffness.path": "no root at t = 0.2 s"}


def test_another_truth_that_cannot_be_judged_leaves_the_own_one(judged):
    def judge(_loop, _poses, others):
        if others:
            raise ComputationError("no root")
        return SimpleNamespace(stable=True, **vars(frozen(-1.0)))

    found = judged(judge_stability=judge, others=("finer",))
    assert found.not_computed == {"spillover": "no root"}
    assert found.stability.stable is True
    assert known(found) == set(PARTS)


def test_where_the_own_truth_cannot_be_judged_either_there_is_no_stability(judged):
    found = judged(judge_stability=ComputationError("no root"), others=("finer",))
    assert found.not_computed == {"spillover": "no root", "stability": "no root"}
    assert found.stability is None
    assert set(PARTS) - known(found) == OF_STABLE


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            np.linalg.LinAlgError("Singular matrix"),
            "its equations cannot be solved in double precision (Singular matrix)",
        ),
        (
            ZeroDivisionError("division\nby zero"),
            "a number leaves the range of double precision (division by zero)",
        ),
        (OverflowError(), "a number leaves the range of double precision (OverflowError)"),
        (
            ValueError("array must not contain infs"),
            "a method of a library refuses its numbers (array must not contain infs)",
        ),
        (DesignError("no gains"), None),
    ],
)
def test_what_a_library_says_in_two_words_becomes_a_sentence(judged, error, why):
    found = judged(stability_margins=error)
    expected = f"the computation failed: {why}" if why else "no gains"
    assert found.not_computed == {"margins": expected}


def test_a_law_of_the_state_has_no_margins_at_sensors_and_says_why(judged):
    found = judged(why_no_readings="it reads the state")
    assert set(PARTS) - known(found) == {"sensor_margins"}
    assert found.no_sensors == "it reads the state"
    assert found.not_computed == {}
    assert judged().no_sensors is None


@pytest.mark.parametrize(
    ("stable", "lost"), [("marginal", OF_STABLE), (False, OF_STABLE - {"friction"})]
)
def test_only_a_stable_loop_has_margins(judged, stable, lost):
    assert set(PARTS) - known(judged(stable=stable)) == lost


def test_what_cannot_be_held_fails_before_it_is_run(judged):
    found = judged(why_not_held="joint1 needs 21.6 N m", simulate=AssertionError("was run"))
    assert found.failed == "joint1 needs 21.6 N m"
    assert known(found) == {"rest"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RunError("ends", time=0.4567, why="link2 bends too far"), "link2 bends too far"),
        (ComputationError("the energy does not balance"), "the energy does not balance"),
    ],
)
def test_a_run_that_fails_keeps_what_is_known_without_it(judged, error, words):
    found = judged(simulate=error)
    assert words in found.failed
    assert known(found) == {"rest"}
    assert found.stability is not None
    assert not found.ranks


def test_an_open_loop_rests_nowhere_that_it_could_be_held_to(judged):
    found = judged(open_loop=True, why_not_held="weak", why_it_leaves="gone")
    assert found.rest is None
    assert found.failed is None


def test_without_a_rest_there_is_no_residual(judged):
    found = judged(
        no_rest="the reference never comes to rest",
        other_equilibrium=AssertionError("was looked for"),
    )
    assert found.residual is None
    assert found.no_rest == "the reference never comes to rest"


def test_an_arm_that_leaves_its_reference_has_failed(judged):
    assert judged(why_it_leaves="it rests elsewhere").failed == "it rests elsewhere"


@pytest.mark.parametrize(
    ("saturated", "stable", "said"),
    [((0.0, 0.0), True, 1), ((0.0, 0.3), True, 2), ((0.2, 0.3), False, 1)],
)
def test_margins_of_a_run_at_its_limits_say_what_they_leave_out(judged, saturated, stable, said):
    found = judged(saturated=saturated, stable=stable)
    assert len(found.assumptions) == said
    assert said == 1 or "joint2" in found.assumptions[1]


@pytest.mark.parametrize(
    ("joints", "what"),
    [(["revolute"], "torque limit"), (["revolute", "prismatic"], "actuator limit")],
)
def test_limits_of_forces_are_not_called_those_of_torques(joints, what):
    links = [SimpleNamespace(joint=joint, command="torque") for joint in joints]
    loop = SimpleNamespace(truth=SimpleNamespace(arm=SimpleNamespace(links=links), joints=joints))
    (words,) = module._what_limits(loop, np.ones(len(joints), dtype=bool))

    assert f"the run reaches the {what} of" in words


def test_a_design_of_torques_is_refused_before_anything_else(monkeypatch):
    monkeypatch.setattr(module, "_facts", lambda _loop: pytest.fail("was looked at"))
    monkeypatch.setattr(module, "require_loop", lambda _loop: None)
    design = SimpleNamespace(label="push.toml", reference=SimpleNamespace(torque=(1.0,)))
    with pytest.raises(InputError, match="torques"):
        module.evaluate(SimpleNamespace(controller=SimpleNamespace(design=design)))


@pytest.mark.parametrize(
    ("exists", "other", "expected"),
    [(True, None, "same"), (True, [0.3, 0.4], "elsewhere"), (False, [0.3, 0.4], "falls")],
)
def test_a_run_that_leads_elsewhere_is_seen(monkeypatch, exists, other, expected):
    @dataclass(frozen=True)
    class FinalEquilibrium:
        exists: bool = True
        falls: bool = False
        elsewhere: object = None

    rest = None if other is None else SimpleNamespace(q=np.array([*other, 0.0]))
    monkeypatch.setattr(module, "other_equilibrium", lambda *_args: rest)
    monkeypatch.setattr(module, "describe_equilibrium", lambda _loop, _rest: FinalEquilibrium())
    controller = SimpleNamespace(final_second_loop_weight=0.0)
    loop = SimpleNamespace(truth=SimpleNamespace(m=2), controller=controller)
    before = FinalEquilibrium(exists=exists)
    found = module._seen_in(loop, None, before, SimpleNamespace(end=None))

    assert found.falls == (expected == "falls")
    assert (found is before) == (expected == "same")
    if expected == "elsewhere":
        assert found.elsewhere.tolist() == [0.3, 0.4]


def test_a_run_that_took_too_many_steps_says_nothing_of_the_loop(judged):
    found = judged(simulate=RunError("too long", time=0.4, why="too long", exhausted=True))
    assert found.failed is None
    assert set(found.not_computed) == {"tracking", "residual", "effort"}
    assert all("too long" in why for why in found.not_computed.values())
    assert known(found) == {"rest", "stiffness"} | OF_STABLE
    assert not found.ranks
