"""Loops whose second loop has a designed decay: poles, motions, and numbers that change."""

import numpy as np
import pytest
import scipy.linalg

import flexctl
from flexctl.control import design_controller
from flexctl.control.path_schedule import pose_at
from flexctl.control.second_loop import design_second_loop, second_loop_model
from flexctl.errors import DesignError, InputError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.model import BasisChoice
from flexctl.plant import find_compiler, library_cache
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.simulation.simulation import simulate
from tests.loops import Stepper, pole_distance
from tests.two_scales import ARMS, HEAVY, arm_of, design_of, pose_of, weights

EVERY = [*ARMS, *HEAVY]
METHODS = ["decoupling", "composite"]
WEIGHTS = {"joint_error": 10.0, "joint_rate": 1.0, "strain_energy": 2.0, "kinetic_energy": 0.5}
WEIGHTS |= {"effort": 0.1}
SEEN = {"measures": ["encoder", "tachometer", "strain_gauge"]}


def controller_of(arm, method="composite", second=None, *, interpreted=True, **more):
    second = second or {"weights": WEIGHTS, "decay": 0.8}
    if method == "decoupling":
        more |= {"method": "decoupling", "slow_loop": None}
    fast = weights() if method == "composite" else None
    design = design_of(arm, fast=fast, second_loop=second, **more)
    return design_controller(arm, design, BasisChoice(order=1), interpreted=interpreted)


def on_its_plant(controller):
    return close_around(controller, controller.plant)


@pytest.mark.slow_but("rigid-links-decoupling-second0", "subudhi-morris-decoupling-second1")
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("second", [{"decay": 1.2}, {"weights": WEIGHTS, "decay": 1.2}])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EVERY)
def test_the_loop_has_the_poles_of_its_design(name, method, second):
    loop = on_its_plant(controller_of(arm_of(name), method, second))
    linear = linearise(loop)
    assert np.abs(linear.rest.offset).max() < 1e-6  # under gravity it rests at its reference
    assert linear.poles.real.max() <= -1.2 + 1e-4
    # double poles of free joints are split by the square root of round-off
    assert pole_distance(linear.poles, loop.controller.feedback.poles) < 1e-6


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
def test_after_the_motion_it_decays_as_designed(method):
    # a tiny motion: the run is that of x' = (A - B G) x from where the second loop takes over
    arm = arm_of("rigid-joints")
    end = pose_of(arm)
    reference = {"kind": "quintic", "from": list(end - 1e-4), "to": list(end), "duration": 0.3}
    controller = controller_of(arm, method, {"decay": 2.5}, reference=reference)
    loop = on_its_plant(controller)
    times = 0.3 + np.linspace(0, 1.2, 40)
    run = simulate(loop, times=np.concatenate([[0.0], times]), duration=1.6)
    linear = linearise(loop)
    x = np.vstack([run.q - linear.rest.q[:, None], run.v])[:, 1:]
    A = linear.A + linear.B @ linear.K
    predicted = np.array([scipy.linalg.expm(A * (t - 0.3)) @ x[:, 0] for t in times]).T
    assert np.abs(x - predicted).max() < 1e-4 * np.abs(x[:, 0]).max()
    # the slowest poles are left in the end: the envelope falls at their rate or faster
    late = np.linalg.norm(x, axis=0)
    slope = np.polyfit(times[-20:], np.log(late[-20:]), 1)[0]
    slowest = controller.feedback.poles.real.max()
    assert slowest <= -2.5
    assert slope < -2.5


@pytest.mark.slow_but("rigid-joints-composite", "rigid-joints-decoupling")
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["rigid-joints", "heavy-spatial"])
def test_with_an_observer_poles_are_those_of_both(name, method):
    loop = on_its_plant(controller_of(arm_of(name), method, loop=SEEN))
    own = loop.controller
    expected = np.concatenate([own.feedback.poles, own.observer.poles])
    assert pole_distance(linearise(loop).poles, expected) < 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("schedule", [0, 3])
def test_a_limited_law_runs_as_scipy_runs_it(schedule):
    arm = arm_of("rigid-joints")
    table = arm.table()
    table["link"] = [link | {"limits": {"torque": 0.02}} for link in table["link"]]
    weak = type(arm).model_validate(table | {"name": "arm"})
    second = {"decay": 0.8, "weights": WEIGHTS} | ({"schedule": 3} if schedule else {})
    reference = {"kind": "quintic", "from": [0.3, 0.5], "to": [0.5, 0.7]}
    loop = on_its_plant(controller_of(weak, second=second, reference=reference | {"duration": 0.5}))
    times = np.array([0.0, 0.25, 0.5, 0.6, 0.8])
    run = simulate(loop, times=times, duration=0.9)
    assert run.saturated.any()
    x = Stepper(loop).continuous(times[1:].tolist())
    np.testing.assert_allclose(run.q[:, 1:], x[: loop.truth.n], atol=1e-6)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
def test_a_sampled_delayed_loop_is_near_the_continuous_one(method):
    arm = arm_of("rigid-joints")
    slow = {"decay": 0.5, "weights": WEIGHTS | {"strain_energy": 0.0, "kinetic_energy": 0.0}}
    far = []
    for T in (2e-4, 1e-4):
        sampled = {"sample_time": T, "delay": T / 2}
        loop = on_its_plant(controller_of(arm, method, slow, loop=sampled))
        poles = loop.controller.feedback.poles
        rate = linearise(loop).poles
        near = np.abs(rate[:, None] - poles).min(axis=0)
        far.append(near.max())
    assert far[0] / far[1] == pytest.approx(2, rel=0.1)  # first order in the delay


# Gains along the path


def scheduled(name, method, count=4, **second):
    second = second or {"weights": WEIGHTS, "decay": 0.8}
    return controller_of(arm_of(name), method, second | {"schedule": count})


@pytest.mark.slow_but("mixed-composite", "rigid-joints-composite", "rigid-links-decoupling")
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EVERY)
def test_frozen_loops_at_the_poses_have_the_poles_designed_there(name, method):
    controller = scheduled(name, method)
    loop, second = on_its_plant(controller), controller.design.second_loop
    for share in (0.0, 0.25, 1.0):  # poses of four: 1, 3/4, 1/4, 0
        joints = pose_at(controller.reference, share)
        linear = linearise_plant(controller.plant, controller.plant.straight(joints))
        torques = method == "composite"
        own = design_second_loop(linear, controller.plant.drives, second, torques=torques)
        found = linearise_loop(loop, joints, 0.0)
        assert np.abs(found.rest.offset).max() < 1e-6
        assert pole_distance(found.poles, own.poles) < 1e-5
        assert pole_distance(linearise_loop(loop, joints, 1.0).poles, found.poles) < 1e-9
    np.testing.assert_allclose(controller.feedback.schedule.gains.at(1.0), controller.feedback.gain)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
def test_where_all_poses_are_alike_the_schedule_is_the_loop_without(method):
    arm = arm_of("rigid-joints")  # only its second joint matters to the dynamics
    end = pose_of(arm)
    reference = {"kind": "quintic", "from": [end[0] - 0.4, end[1]], "to": list(end)}
    reference |= {"duration": 1.0}
    plain, followed = (
        controller_of(arm, method, {"decay": 1.3} | more, reference=reference)
        for more in ({}, {"schedule": 5})
    )
    schedule = followed.feedback.schedule
    np.testing.assert_allclose(schedule.gains.coefficients[0], plain.feedback.gain, rtol=1e-7)
    assert schedule.gains.error < 1e-7
    assert schedule.slowest == pytest.approx(plain.feedback.poles.real.max(), rel=1e-6)
    rng, n = np.random.default_rng(2), plain.plant.n
    q, v, none = plain.plant.straight(end) + 0.01 * rng.normal(size=n), rng.normal(size=n), [0, 0]
    torques = [c.law(1.0, [], end, none, none, q, v)[0] for c in (plain, followed)]
    np.testing.assert_allclose(*map(np.array, torques), rtol=1e-6)


@pytest.mark.usefixtures("no_compiler")
def test_between_the_poses_the_interpolated_gain_is_used():
    controller = scheduled("sliding", "composite")
    loop, table = on_its_plant(controller), controller.feedback.schedule.gains
    share = 0.6
    joints = pose_at(controller.reference, share)
    linear = linearise_plant(controller.plant, controller.plant.straight(joints))
    A, B = second_loop_model(linear, controller.plant.drives, torques=True)
    expected = np.linalg.eigvals(A - B @ table.at(share))
    assert pole_distance(linearise_loop(loop, joints, 0.0).poles, expected) < 1e-6
    assert controller.feedback.schedule.slowest >= expected.real.max() - 0.5


@pytest.mark.slow_but("decoupling")
@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("method", METHODS)
def test_a_slow_motion_is_followed_as_the_arm_bends(method):
    # what the feedforward neglects, such as the load of moving deflections, shrinks as 1/T^2
    arm, peaks = arm_of("heavy-sliding"), []
    for T in (2.0, 4.0):
        end = pose_of(arm)
        reference = {"kind": "quintic", "from": list(0.8 * end), "to": list(end), "duration": T}
        controller = controller_of(
            arm, method, {"weights": WEIGHTS, "schedule": 5}, reference=reference
        )
        run = simulate(on_its_plant(controller), times=np.linspace(0, T, 60), duration=T)
        peaks.append(np.abs(run.joint_error).max())
    assert peaks[0] < 5e-3
    assert peaks[0] / peaks[1] > 3.5


@pytest.mark.usefixtures("no_compiler")
def test_an_integral_beside_a_decay_keeps_it_or_is_refused():
    arm = arm_of("rigid-joints")
    joints = {"joint_error": 100.0, "joint_rate": 20.0, "effort": 0.1, "strain_energy": 1.0}
    second = {"decay": 0.4, "weights": joints}

    def made(Gi, second):
        gains = {"gains": {"Gp": [5.0], "Gv": [3.0], "Gi": [Gi]}}
        design = design_of(arm, method="decoupling", slow_loop=None, second_loop=second, **gains)
        return design_controller(arm, design, BasisChoice(order=1), interpreted=True)

    assert linearise(on_its_plant(made(14.0, second))).poles.real.max() < -0.4
    followed = on_its_plant(made(14.0, second | {"schedule": 3}))
    assert followed.controller.n_state == 2
    assert linearise(followed).poles.real.max() < -0.4
    slow = r"^gains.Gi: with the integral the second loop has .* second_loop.decay of 0.4 1/s"
    with pytest.raises(DesignError, match=slow):
        made(0.1, second)
    with pytest.raises(DesignError, match=slow):  # s^3 + 4a s^2 + 4a^2 s + Gi never keeps it
        made(0.05, {"decay": 0.4})
    with pytest.raises(DesignError, match=r"^gains\.Gi: the integral makes the second loop uns"):
        made(14.0, {"decay": 0.4})


# Numbers that change


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("schedule", [{}, {"schedule": 4}])
@pytest.mark.parametrize("method", METHODS)
def test_another_decay_derives_nothing_anew(method, schedule):
    arm = arm_of("mixed")
    loop = on_its_plant(controller_of(arm, method, {"decay": 1.0} | schedule))
    faster = loop.at({"second_loop.decay": 2.0})
    expected = on_its_plant(controller_of(arm, method, {"decay": 2.0} | schedule))
    assert faster.law_key == loop.law_key
    assert faster.controller.feedback.decay == 2.0
    np.testing.assert_allclose(faster.law_numbers, expected.law_numbers, rtol=1e-9, atol=1e-12)
    with_weights = loop.at({"second_loop.decay": 3.0})
    assert np.abs(with_weights.law_numbers - loop.law_numbers).max() > 0


@pytest.mark.slow_but("schedule0")
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
@pytest.mark.parametrize("schedule", [{}, {"schedule": 3}])
def test_a_new_value_compiles_nothing(monkeypatch, schedule):
    arm = arm_of("rigid-joints")
    end = pose_of(arm)
    reference = {"kind": "quintic", "from": list(0.9 * end), "to": list(end), "duration": 0.2}
    second = {"weights": WEIGHTS, "decay": 0.5} | schedule
    kept = {"reference": reference, "loop": {"duration": 0.4}}
    loop = on_its_plant(controller_of(arm, second=second, interpreted=False, **kept))
    flexctl.evaluate(loop)
    built = []
    monkeypatch.setattr(library_cache, "_build", lambda *_: built.append(1))
    values = {"second_loop.decay": 0.9, "second_loop.weights.joint_rate": 2.0}
    verdict = flexctl.evaluate(loop, values)
    assert not built
    assert verdict.stability.poles.real.max() < -0.9


@pytest.mark.usefixtures("no_compiler")
def test_chosen_gains_give_way_to_weights_of_their_own_loop_alone():
    arm = arm_of("rigid-joints")
    loop = on_its_plant(controller_of(arm))
    own = loop.controller
    chosen = loop.at(
        {
            "second_loop.gain": 0.9 * own.feedback.gain,
            "fast_loop.Kp": 0.9 * own.fast.Kp,
            "fast_loop.Kv": 0.9 * own.fast.Kv,
        }
    )
    assert set(chosen.controller.weights) == {"second_loop", "fast_loop"}
    assert chosen.controller.weights["second_loop"]["decay"] == 0.8
    again = chosen.at({"second_loop.decay": 0.8})
    np.testing.assert_array_equal(again.controller.feedback.gain, own.feedback.gain)
    np.testing.assert_array_equal(again.controller.fast.Kp, 0.9 * own.fast.Kp)
    back = again.at({"fast_loop.weights.effort": 0.1})
    np.testing.assert_allclose(back.law_numbers, loop.law_numbers, rtol=1e-12)
    assert back.controller.weights is None


@pytest.mark.usefixtures("no_compiler")
def test_one_matrix_in_place_of_a_schedule_is_refused():
    loop = on_its_plant(scheduled("rigid-joints", "composite"))
    with pytest.raises(InputError, match=r"^second_loop.gain: .* second_loop.schedule"):
        loop.at({"second_loop.gain": loop.controller.feedback.gain})
