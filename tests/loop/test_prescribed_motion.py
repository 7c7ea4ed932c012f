"""A prescribed motion of the joints: what links and torques do, beside partitioned equations."""

import numpy as np
import pytest
import scipy.integrate

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.model import BasisChoice, Design, build
from flexctl.plant import assemble_plant
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import evaluate
from tests.arms import make_arm, rrp, single_link, two_link, with_motors
from tests.designs import make_design
from tests.two_scales import JOINT, flexible

pytestmark = pytest.mark.usefixtures("no_compiler")

DOWN = (0.0, -9.81, 0.0)
VOLTS = {"command": "voltage", "resistance": 2.6, "torque_constant": 0.08, "back_emf": 0.09}
VOLTS |= {"gear": 50.0, "current_limit": 0.1, "voltage_limit": 1.0}


def motion(start, end, duration=1.5, kind="quintic", **loop):
    table = {"name": "replay", "summary": "s", "source": "own", "model": "arm"}
    table |= {"method": "prescribed-motion", "loop": {"duration": duration + 0.3, **loop}}
    reference = {"kind": kind, "from": start, "to": end, "duration": duration}
    return Design.model_validate(table | {"reference": reference})


def replayed(arm, design, order=2, truth=None):
    return close_loop(design_controller(arm, design), truth or arm, BasisChoice(order=order))


def sprung_arm(gravity=DOWN):
    """A flexible joint with a flexible link, and a rigid joint with one."""
    first = flexible(0.4, EI=20.0, flexible_joint=JOINT | {"stiffness": 120.0})
    return make_arm([first, flexible(0.3, EI=12.0)], gravity, {"mass": 0.05})


CASES = {
    "two-link": (lambda: two_link(DOWN, EI=40.0), [-1.2, 0.3], [-0.5, 0.9]),
    "rrp": (lambda: rrp((0.0, 0.0, -9.81), damping=0.01), [0.0, 0.0, 0.3], [0.8, 0.5, 0.6]),
    "sprung": (sprung_arm, [0.2, -0.4], [0.7, 0.1]),
}


def partitioned(loop, times):
    """Free coordinates and torques by the partitioned equations, joints as functions of time.

    The driven coordinates are eliminated: only the others are integrated, by SciPy.
    """
    plant, sample = loop.truth, loop.controller.reference.sample
    r = list(plant.drives)
    f = [row for row in range(plant.n) if row not in r]
    start = loop_start(loop)

    def full(t, y):
        q, v = np.zeros(plant.n), np.zeros(plant.n)
        q_d, v_d, a_d = (x[:, 0] for x in sample(np.array([t])))
        q[r], v[r], q[f], v[f] = q_d, v_d, y[: len(f)], y[len(f) :]
        M = plant.mass_matrix(q)
        n = plant.inverse_dynamics(q, v, np.zeros(plant.n))
        a = np.zeros(plant.n)
        a[r] = a_d
        a[f] = -np.linalg.solve(M[np.ix_(f, f)], M[np.ix_(f, r)] @ a_d + n[f])
        return q, a, (M @ a + n)[r] / plant.torque_per_command

    def rate(t, y):
        return np.concatenate([y[len(f) :], full(t, y)[1][f]])

    y0 = np.concatenate([start[f], np.zeros(len(f))])
    done = scipy.integrate.solve_ivp(
        rate, (0, times[-1]), y0, method="DOP853", t_eval=times, rtol=1e-9, atol=1e-11
    )
    parts = [full(t, y) for t, y in zip(times, done.y.T, strict=True)]
    return np.array([part[0] for part in parts]).T, np.array([part[2] for part in parts]).T


def loop_start(loop):
    """Coordinates at rest with the drives held at the start, by Newton's method on the others."""
    plant = loop.truth
    q = plant.straight(loop.controller.reference.start)
    f = np.setdiff1d(np.arange(plant.n), plant.drives)
    for _ in range(20):
        force = plant.gravity(q) + plant.elastic_force(q)
        q[f] -= np.linalg.solve(plant.tangent_stiffness(q)[np.ix_(f, f)], force[f])
    return q


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_links_respond_and_torques_follow_as_the_partitioned_equations_say(name):
    make, start, end = CASES[name]
    loop = replayed(make(), motion(start, end), order=1)
    times = np.linspace(0.0, 1.8, 13)
    run = simulate(loop, times=times)
    q, tau = partitioned(loop, times)

    np.testing.assert_allclose(run.q, q, atol=2e-7 * np.abs(q).max())
    np.testing.assert_allclose(run.tau, tau, atol=2e-6 * np.abs(tau).max())
    drift = run.q[list(loop.truth.drives)] - run.desired
    assert np.abs(drift).max() < 1e-9
    assert run.energy.imbalance < 1e-6


@pytest.mark.slow
def test_the_motion_is_that_of_the_true_arm_whatever_the_design_knows():
    # another payload, another discretisation: the joints follow exactly nevertheless
    known, true = two_link(DOWN, EI=40.0), two_link(DOWN, EI=30.0)
    loop = replayed(known, motion([-1.2, 0.3], [-0.5, 0.9]), order=3, truth=true)
    own = replayed(true, motion([-1.2, 0.3], [-0.5, 0.9]), order=3)
    times = np.linspace(0.0, 1.0, 5)
    runs = [simulate(one, times=times) for one in (loop, own)]

    assert np.abs(runs[0].joint_error).max() < 1e-9
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    changed = loop.at({"payload.mass": 0.3})
    assert changed.controller.plant is changed.truth
    assert np.abs(simulate(changed, times=times).joint_error).max() < 1e-9


def test_its_linear_model_is_the_arm_with_its_drives_held():
    loop = replayed(sprung_arm(), motion([0.2, -0.4], [0.7, 0.1]), order=2)
    final = loop.controller.reference.final
    poles = linearise_loop(loop, final, 0.0).poles
    truth, rest = loop.truth, linearise(loop).rest.q
    free = np.setdiff1d(np.arange(truth.n), truth.drives)
    grid = np.ix_(free, free)
    M, D, K = (
        A[grid]
        for A in (truth.mass_matrix(rest), truth.damping(rest), truth.tangent_stiffness(rest))
    )
    lower = -np.linalg.solve(M, np.hstack([K, D]))
    expected = np.linalg.eigvals(np.vstack([np.hstack([0 * M, np.eye(len(M))]), lower]))

    assert len(poles) == 2 * len(free)
    np.testing.assert_allclose(np.sort_complex(poles), np.sort_complex(expected), rtol=1e-6)
    np.testing.assert_allclose(rest[list(truth.drives)], final, atol=1e-12)
    assert linearise(loop).to_control().nstates == 2 * len(free)


def test_poles_of_an_undamped_arm_are_its_locked_frequencies():
    loop = replayed(single_link(damping=0.0), motion([0.0], [0.4]), order=3)
    found = np.sort(linearise(loop).poles.imag)[-3:]
    truth = linearise_plant(loop.truth, {"joint1": 0.4})

    locked = truth.frequencies(np.arange(loop.truth.n) >= 1)
    np.testing.assert_allclose(found, locked, rtol=1e-9)


@pytest.mark.slow
def test_limits_of_actuators_are_no_limits_of_a_prescribed_motion():
    arm = two_link(DOWN, EI=40.0)
    bare = replayed(arm, motion([-1.2, 0.3], [-0.5, 0.9]), order=1)
    weak = with_motors(arm, VOLTS, None, limits=(None, {"torque": 1e-3}))
    driven = replayed(weak, motion([-1.2, 0.3], [-0.5, 0.9]), order=1)
    times = np.linspace(0.0, 1.8, 7)
    runs = [simulate(loop, times=times) for loop in (bare, driven)]

    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-9)
    np.testing.assert_allclose(runs[1].torque, runs[0].tau, rtol=1e-6, atol=1e-8)
    rate = runs[1].v[0]
    volts = 2.6 * runs[0].tau[0] / (50 * 0.08) + 0.09 * 50 * rate
    np.testing.assert_allclose(runs[1].tau[0], volts, rtol=1e-6, atol=1e-6)
    assert not runs[1].saturated.any()


def test_a_recorded_motion_that_begins_at_speed_is_followed(tmp_path):
    t = np.linspace(0.0, 1.0, 60)
    table = np.array([t, 0.3 * np.sin(2 * t), 0.2 * t]).T
    header = "t,joint1,joint2"
    np.savetxt(tmp_path / "m.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
    design = motion([0.0, 0.0], [1.0, 1.0]).table() | {"name": "x", "path": tmp_path / "x.toml"}
    design["reference"] = {"kind": "csv", "file": "m.csv"}
    design["loop"] = {"duration": 1.0}
    loop = replayed(two_link(EI=40.0), Design.model_validate(design), order=1)
    run = simulate(loop, times=t)

    np.testing.assert_allclose(run.q[:2], table.T[1:], atol=1e-9)
    assert not any("ends at speed" in said for said in loop.assumptions)


@pytest.mark.parametrize(("speed", "said"), [(0.2, ["joint2 at 0.2 per s"]), (0.0, [])])
def test_a_recorded_motion_that_ends_at_speed_stops_at_once_as_is_said(tmp_path, speed, said):
    t = np.linspace(0.0, 1.0, 60)
    table = np.array([t, 0.3 * t**3 * (10 - 15 * t + 6 * t**2), speed * t]).T
    header = "t,joint1,joint2"
    np.savetxt(tmp_path / "m.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
    design = motion([0.0, 0.0], [1.0, 1.0]).table() | {"name": "x", "path": tmp_path / "x.toml"}
    design["reference"] = {"kind": "csv", "file": "m.csv"}
    loop = replayed(two_link(EI=40.0), Design.model_validate(design), order=1)

    found = [one for one in loop.assumptions if "ends at speed" in one]
    assert all(f"({where})" in one for one, where in zip(found, said, strict=True))


@pytest.mark.slow
def test_motors_recorded_in_a_run_under_gravity_need_the_torques_of_that_run(tmp_path):
    # a PD loop of a rotor and a rigid joint, seen by its encoders at 200 Hz, exact
    arm, t = sprung_arm(), np.linspace(0.0, 1.5, 301)
    gains = {"Gp": [60.0, 40.0], "Gv": [8.0, 4.0]}
    design = make_design([0.2, -0.4], [0.7, 0.1], "joint-pd", gains=gains, duration=1.0)
    run = simulate(replayed(arm, design, order=1), times=t)
    table = np.vstack([t, run.q[list(run.drives)]]).T
    header = "t,joint1,joint2"
    np.savetxt(tmp_path / "m.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
    replay = motion([0.0, 0.0], [1.0, 1.0]).table() | {"name": "x", "path": tmp_path / "x.toml"}
    replay |= {"reference": {"kind": "csv", "file": "m.csv"}, "loop": {"duration": 1.5}}

    found = simulate(replayed(arm, Design.model_validate(replay), order=1), times=t)

    # second derivatives of the spline are least exact at its ends, and where the motion ends
    np.testing.assert_allclose(found.q, run.q, atol=2e-6)
    np.testing.assert_allclose(found.tau, run.tau, atol=1e-3 * np.abs(run.tau).max())
    assert np.abs(found.q[list(found.drives)] - found.desired).max() < 1e-9


def test_a_verdict_has_what_a_constraint_has():
    loop = replayed(single_link(), motion([0.0], [0.3]), order=3)
    found = evaluate(loop)

    assert found.failed is None
    assert found.stability.stable is True
    assert found.margins is None
    assert found.stiffness is None
    assert found.rest is None
    assert found.tracking.joint_error_max.max() < 1e-9
    assert found.residual.tip_error_max > 0
    assert found.effort.peak[0] > 0
    assert any("follow the reference exactly" in words for words in found.assumptions)


def test_the_tip_at_rest_hangs_from_the_held_rotors():
    # a link behind a spring sags from the rotor at its reference, not up to it
    loop = replayed(sprung_arm(), motion([0.2, -0.4], [0.7, 0.1]), order=1)
    run = simulate(loop, times=np.array([0.0, 1.8]))
    held = loop_start(loop)

    np.testing.assert_allclose(run.q[:, 0], held, atol=1e-9)
    assert held[0] < 0.2 - 1e-3  # it sags
    assert run.rest_error[-1] < 0.1


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"gains": {"Gp": 1.0, "Gv": 1.0}}, r"gains: expected no such table, as method is presc"),
        ({"loop": {"sample_time": 0.01}}, r"loop\.sample_time: expected 0, as method is prescr"),
        ({"loop": {"measures": ["encoder"]}}, r"loop\.measures: expected"),
        ({"reference": {"kind": "setpoint", "from": [0.0], "to": [1.0]}},
         r"reference\.kind: expected a motion without a jump, as method is prescribed-motion"),
        ({"reference": {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 1.0,
                        "feed_forward": "rate"}},
         r"reference\.feed_forward: expected no such key, as method is prescribed-motion"),
        ({"second_loop": {"decay": 3.0}}, r"second_loop: expected no such table"),
    ],
)  # fmt: skip
def test_what_is_not_part_of_a_constraint_is_refused(tables, message):
    table = {"summary": "s", "source": "own", "model": "arm", "method": "prescribed-motion"}
    table["reference"] = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 1.0}
    with pytest.raises(InputError, match=message):
        build(Design, {"name": "replay", **table, **tables}, "replay")


DRY = {"viscous": 0.4, "coulomb": 1.5}
FALLING = DRY | {"static": 2.0, "stribeck_velocity": 0.05}
FRICTIONS = {
    "viscous": {"viscous": 0.7},
    "smoothed": FALLING,
    "events": FALLING | {"model": "events"},
    "lugre": FALLING | {"model": "lugre", "sigma0": 1e4, "sigma1": 50.0},
}


def level(friction, v):
    """Steady friction of a side at rates v, with a smooth step in place of the sign."""
    own = {"coulomb": 0.0, "static": 0.0, "stribeck_velocity": 1.0} | friction
    drop = (own["static"] - own["coulomb"]) * np.exp(-((v / own["stribeck_velocity"]) ** 2))
    return own["viscous"] * v + (own["coulomb"] + drop) * np.tanh(v / 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", FRICTIONS)
def test_torques_include_the_friction_of_what_is_driven(name):
    """On a rotor it does not change the motion: its torque is added to that without friction."""
    friction, gear = FRICTIONS[name], 20.0
    of_motor = friction | {key: friction[key] / gear for key in DRY if key in friction}
    if "static" in friction:
        of_motor |= {"static": friction["static"] / gear}

    def arm(first, second):
        links = [
            flexible(
                0.4,
                EI=20.0,
                flexible_joint=JOINT | {"stiffness": 120.0, "gear": gear},
                friction=first,
            ),
            flexible(0.3, EI=12.0, friction=second),
        ]
        return make_arm(links, DOWN, {"mass": 0.05})

    design, times = motion([0.2, -0.4], [0.7, 0.1]), np.linspace(0, 1.8, 37)
    rubbed = replayed(arm(of_motor, friction), design)
    run, free = (
        simulate(loop, times=times, tolerance=Tolerance.of(1e-9))
        for loop in (rubbed, replayed(arm(None, None), design))
    )
    v_d = rubbed.controller.reference.sample(times)[1]
    added = np.array([gear * level(of_motor, gear * v_d[0]), level(friction, v_d[1])])

    np.testing.assert_allclose(run.q, free.q, atol=1e-7)
    np.testing.assert_allclose(run.tau - free.tau, added, atol=2e-5)
    work = np.trapezoid((run.tau - free.tau) * v_d, times).sum()
    assert run.energy.supplied[-1] - free.energy.supplied[-1] == pytest.approx(work, rel=1e-2)
    assert evaluate(rubbed).friction is None
    said = " ".join(run.assumptions)
    assert "torques include friction as in steady sliding" in said
    assert "creeps" not in said


@pytest.mark.slow
def test_friction_behind_the_spring_of_a_driven_rotor_acts_on_the_joint():
    """As smoothed friction in the partitioned equations, whatever its model."""
    friction = FRICTIONS["events"] | {"side": "link"}
    first = flexible(0.4, EI=20.0, flexible_joint=JOINT | {"stiffness": 120.0}, friction=friction)
    arm = make_arm([first, flexible(0.3, EI=12.0)], DOWN, {"mass": 0.05})
    loop = replayed(arm, motion([0.2, -0.4], [0.7, 0.1]))
    times = np.linspace(0, 1.4, 8)
    run = simulate(loop, times=times, tolerance=Tolerance.of(1e-8))
    q, _ = partitioned(loop, times)
    q_d = loop.controller.reference.sample(times)[0]
    free = simulate(replayed(CASES["sprung"][0](), motion([0.2, -0.4], [0.7, 0.1])), times=times)

    np.testing.assert_allclose(run.q[list(loop.truth.drives)], q_d, atol=1e-7)
    np.testing.assert_allclose(run.q, q, atol=1e-6)
    assert np.abs(run.q[0] - free.q[0]).max() > 5e-3
    assert any("joint1 is smoothed" in said for said in run.assumptions)


def test_friction_that_falls_early_is_smoothed_before_it_falls():
    falling = {"coulomb": 1.5, "static": 2.0, "stribeck_velocity": 5e-4, "model": "events"}
    arm = make_arm([flexible(0.4, EI=20.0, friction=falling)], DOWN)
    loop = replayed(arm, motion([0.2], [0.7]))
    (link,) = loop.truth.arm.links

    assert link.friction.smoothing_velocity == pytest.approx(5e-5)
    assert link.friction.reached > 0.9 * 2.0


@pytest.mark.parametrize("free", [(), ("payload.mass",)])
def test_a_truth_without_free_numbers_has_the_friction_of_what_is_driven_too(free):
    own = FRICTIONS["events"]
    arm = make_arm([flexible(0.4, EI=20.0, friction=own)], DOWN, {"mass": 0.05})
    design = motion([0.2], [0.7])
    truth = assemble_plant(arm, BasisChoice(order=1), parameters=free)
    loop = close_around(design_controller(arm, design), truth)
    q, v, held = loop.truth.straight([0.3]), np.array([0.5, 0.0]), np.zeros(2)
    rubs = loop.truth.inverse_dynamics(q, v, held)
    smooth = loop.truth.without_friction.inverse_dynamics(q, v, held)

    np.testing.assert_allclose(rubs - smooth, [level(own, 0.5), 0.0], atol=1e-9)
