"""Loops with instruments: rest, linear models exact with their delays, separation and its loss."""

import numpy as np
import pytest

import flexctl
from flexctl.control import design_controller
from flexctl.control.readings import fit_instruments
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.simulation.simulation import simulate
from tests.arms import plant_of, sliding_arm, with_motors

ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
MODES = BasisChoice(kind="modes", order=2)
T = 2e-3
ENCODER = {"kind": "encoder", "noise": 1e-5}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
EARTH = (0.0, -9.81, 0.0)


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def closed(make, arm, instruments, method="decoupling", loop=None, order=None, **tables):
    m = len(arm.links)
    tables.setdefault("gains", {"Gp": [60.0], "Gv": [12.0]})
    tables |= {"instruments": instruments, "loop": {"sample_time": T, **(loop or {})}}
    start, end = tables.pop("start", [0.0] * m), tables.pop("end", [0.5] * m)
    controller = design_controller(arm, make["design"](start, end, method, **tables), MODES)
    if order is None:
        return close_around(controller, controller.plant)
    return close_loop(controller, arm, modes=order)


def final_map(loop):
    """One-sample map (N, N) of the loop at its final pose, under its second loop."""
    linear = linearise(loop)
    return sampled_loop(linear, linear.sample_time, linear.delay)


@pytest.mark.parametrize(
    ("delay", "late"), [(0.0, 0.0), (0.6 * T, 0.0), (2 * T, T), (1.3 * T, 3 * T)]
)
@pytest.mark.parametrize("joint", ["rigid", "flexible"])
def test_poles_separate_on_the_design_plant(make, joint, delay, late):
    # those of the filter, of the same loop with the state measured, and waiting samples (zero)
    arm = make["single"](**({"flexible_joint": ROTOR} if joint == "flexible" else {}))
    tables = {"second_loop": {"weights": make["weights"]}} if joint == "rigid" else {}
    method = "decoupling" if joint == "rigid" else "joint-pd"
    tables |= {"observer": {}}
    loop = closed(
        make, arm, [ENCODER | {"delay": late}, GAUGE], method, loop={"delay": delay}, **tables
    )
    tables.pop("observer")
    design = make["design"](
        [0.0], [0.5], method, gains={"Gp": [60.0], "Gv": [12.0]},
        loop={"sample_time": T, "delay": delay}, **tables,
    )  # fmt: skip
    measured = final_map(close_around(design_controller(arm, design, MODES), loop.truth))
    expected = np.concatenate([np.linalg.eigvals(measured), loop.controller.observer.multipliers])
    found = np.linalg.eigvals(final_map(loop))

    def alive(z):
        # waiting samples form Jordan blocks at zero, of which round-off makes 1e-16^(1/size)
        return np.sort_complex(z[np.abs(z) > 1e-2])

    np.testing.assert_allclose(alive(found), alive(expected), atol=1e-9)


def test_separation_is_lost_on_the_truth(make):
    loop = closed(
        make, make["single"](), [ENCODER, GAUGE], order=4,
        second_loop={"weights": make["weights"]},
    )  # fmt: skip
    found = np.linalg.eigvals(final_map(loop))
    filter_poles = loop.controller.observer.multipliers
    gaps = np.abs(found[:, None] - filter_poles).min(axis=0)
    assert gaps.max() > 1e-4


@pytest.mark.slow_but("direct-two-link", "direct-flexible")
@pytest.mark.parametrize("arm", ["two-link", "flexible"])
@pytest.mark.parametrize("way", ["observer", "direct"])
def test_a_sampled_loop_rests_under_gravity(make, arm, way):
    links = [dict(link) for link in make["two-link"](EARTH, EI=40.0).table()["link"]]
    if arm == "flexible":
        links[1]["flexible_joint"] = ROTOR | {"stiffness": 300.0}
    made = make["arm"](links, EARTH, {"mass": 0.1})
    own = [ENCODER | {"delay": T}, GAUGE] if way == "observer" else []
    own = own or [{"kind": "encoder", "delay": T}, {"kind": "difference"}]
    more = {"observer": {}} if way == "observer" else {}
    loop = closed(
        make, made, own, "joint-pd", order=3, start=[-1.0, 0.4], end=[-0.6, 0.8],
        loop={"delay": 1.5 * T}, gains={"Gp": [60.0, 30.0], "Gv": [6.0, 3.0]}, **more,
    )  # fmt: skip
    joints = loop.controller.reference.final
    linear = linearise_loop(loop, joints, 0.0)
    rest, truth = linear.rest, loop.truth
    force = truth.gravity(rest.q) + truth.elastic_force(rest.q) - truth.B @ rest.tau
    np.testing.assert_allclose(force, 0, atol=1e-8)
    # and stays there in a run, whose law is rounded nowhere
    run = simulate(loop, times=[0.0, 10 * T], start=(rest.q, 0 * rest.q, rest.z), duration=10 * T)
    if not np.allclose(loop.controller.reference.start, joints):
        return  # the reference moves
    np.testing.assert_allclose(run.q[:, -1], rest.q, atol=1e-9)


@pytest.mark.parametrize("way", ["observer", "direct"])
def test_the_linear_model_is_that_of_small_motions(make, way):
    # ten samples of the nonlinear loop from a small deviation, against powers of the map
    own = [ENCODER | {"delay": T}, GAUGE | {"delay": 2 * T}]
    direct = [{"kind": "encoder", "delay": T}, {"kind": "difference", "time_constant": 3e-3}]
    loop = closed(
        make, make["two-link"](EARTH, EI=40.0), own if way == "observer" else direct, "joint-pd",
        order=2, start=[-0.6, 0.8], end=[-0.6, 0.8], loop={"delay": 1.25 * T},
        gains={"Gp": [60.0, 30.0], "Gv": [6.0, 3.0]},
        **({"observer": {}} if way == "observer" else {}),
    )  # fmt: skip
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
    rest, n = linear.rest, loop.truth.n
    size = 1e-7 * np.random.default_rng(0).normal(size=2 * n + len(rest.z))
    size[2 * n :][loop.controller.noise_rows] = 0
    x0 = np.concatenate([rest.q, np.zeros(n), rest.z])

    def after(x):
        run = simulate(
            loop, times=[0.0, 10 * T], start=(x[:n], x[n : 2 * n], x[2 * n :]), duration=10 * T
        )
        return np.concatenate([run.q[:, -1], run.v[:, -1]])

    step = sampled_loop(linear, T, linear.delay)
    # a run that starts with a law in action has its torque from before the first sample
    waiting = np.zeros(len(step) - len(size))
    m = loop.truth.m
    start = np.concatenate([size, waiting])
    first = linear.K @ size
    start[len(size) : len(size) + m] = first
    if len(waiting) > m:
        start[len(size) + m :] = np.tile(first, len(waiting) // m - 1)
    expected = (np.linalg.matrix_power(step, 10) @ start)[: 2 * n]
    moved = (after(x0 + size) - after(x0 - size)) / 2  # of the same noise
    np.testing.assert_allclose(moved, expected, atol=2e-3 * np.abs(expected).max())


def test_the_readings_of_the_truth(make):
    # against the plant's own functions, and numbers of the springs that follow `at`
    arm = make["single"](flexible_joint=ROTOR)
    own = [ENCODER | {"side": "motor"}, ENCODER | {"side": "link"}, GAUGE]
    own += [{"kind": "deflection", "xi": 1.0, "noise": 1e-4}, {"kind": "torque", "noise": 1e-3}]
    own += [{"kind": "tachometer", "noise": 1e-3}]
    loop = closed(make, arm, own, "joint-pd", order=3, observer={})
    rng = np.random.default_rng(1)
    q, v = 0.1 * rng.normal(size=loop.truth.n), rng.normal(size=loop.truth.n)
    y, unused = loop.measurement.read(q, v)
    assert not unused.any()
    tip = loop.truth.deflections(q)[0][0]
    gauge = y[2]
    expected = [q[1], q[0], gauge, tip, 60.0 * (q[1] - q[0]), v[1]]
    np.testing.assert_allclose(y, expected, rtol=1e-10)
    shapes = loop.truth.bodies[0].planes["y"]
    length = loop.truth.arm.links[0].length
    bent = (shapes.bending(0.1).T @ q[2:]).item() / length**2
    assert gauge == pytest.approx(bent)
    stiffer = loop.at({"link1.flexible_joint.stiffness": 90.0})
    assert stiffer.measurement.read(q, v)[0][4] == pytest.approx(90.0 * (q[1] - q[0]))


def test_numbers_of_instruments_are_free(make):
    loop = closed(make, make["single"](), [ENCODER, GAUGE], order=2)
    noisier = loop.at({"instruments[1].noise": 1e-3})
    assert noisier.law_key == loop.law_key  # compiled once
    gains = [abs(one.controller.observer.gain).sum() for one in (loop, noisier)]
    assert gains[1] < gains[0]
    rounded = closed(
        make, make["single"](), [ENCODER | {"resolution": 1e-4}, {"kind": "difference"}],
        "joint-pd", order=2,
    )  # fmt: skip
    coarser = rounded.at({"instruments[1].resolution": 1e-2})
    assert coarser.law_key == rounded.law_key
    assert coarser.controller.fitted.readings[0].resolution == 1e-2


def test_what_is_read_is_told(make):
    encoder = ENCODER | {"resolution": 1e-4, "delay": 1.5 * T}
    loop = closed(
        make, make["single"](), [encoder, {"kind": "difference"}], "joint-pd", order=2,
        loop={"torque_resolution": 0.05, "seed": 7},
    )  # fmt: skip
    told = " / ".join(loop.assumptions)
    assert (
        "encoder of joint1 in steps of 0.0001 rad with noise of 0.000224 rad rms, 2 samples late"
        in told
    )
    assert "difference of joint1" in told
    assert "steps of 0.05 N m" in told
    assert "seed 7" in told


def test_the_linear_loop_of_a_design_plant_has_its_own_poses(make):
    # at a pose that is not the final one the filter's gain is still that of the final pose
    loop = closed(make, make["two-link"](EARTH, EI=40.0), [ENCODER, GAUGE], order=2)
    linear = linearise_plant(loop.truth, loop.truth.straight(np.array([0.2, 0.3])))
    assert np.isfinite(linear.A_state).all()
    there = linearise_loop(loop, np.array([0.2, 0.3]), 0.0)
    assert np.abs(np.exp(there.poles * T)).max() < 1.05


def test_json_and_words_name_the_readings(make):
    encoder = ENCODER | {"resolution": 1e-4, "delay": T}
    loop = closed(make, make["single"](), [encoder, {"kind": "difference"}], "joint-pd", order=2)
    told = flexctl.to_json(loop)
    assert told["instruments"] == [
        {
            "name": "encoder of joint1",
            "kind": "encoder",
            "place": "joint1",
            "xi": None,
            "late": 1,
            "every": 1,
            "deviation": pytest.approx(1e-5 / np.sqrt(T)),
            "resolution": 1e-4,
            "density": 1e-5,
        }
    ]
    assert told["differences"] == [{"place": "joint1", "time_constant": 0.0}]
    assert told["seed"] == 0
    assert "It reads the encoder of joint1." in flexctl.explain(loop.controller)


def test_readings_of_sliding_flexible_joints_are_in_metres_and_newtons(make):
    arm = with_motors(sliding_arm(), springs=(None, ROTOR | {"gear": 100.0}))
    instruments = [{"kind": "encoder"}, {"kind": "tachometer", "side": "link"}, {"kind": "torque"}]
    loop = {"sample_time": T}
    design = make["design"](
        [0.0, 0.4],
        [0.5, 0.5],
        "joint-pd",
        gains={"Gp": [6.0], "Gv": [1.0]},
        instruments=instruments,
        loop=loop,
    )
    units = {one.name: one.unit for one in fit_instruments(plant_of(arm), design).readings}

    assert units == {
        "encoder of joint1": "rad",
        "encoder of rotor2": "m",
        "tachometer of joint1": "rad/s",
        "tachometer of joint2": "m/s",
        "torque of joint2": "N",
    }
