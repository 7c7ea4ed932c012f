"""Loops whose torques act on rotors: every integrator gives the same run, and its energy."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.plant.library_cache import find_compiler
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.simulation.step_size import local_poles

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="an integrator in C")

JOINT = {"rotor_inertia": 0.02, "stiffness": 60.0, "damping": 0.02}
WEIGHTS = {"joint_error": 50.0, "joint_rate": 1.0, "strain_energy": 2.0, "kinetic_energy": 2.0}


def arm_of(make, gravity=(0.0, 0.0, 0.0)):
    """A flexible joint with a carried rotor behind a rigid one, and one on the base."""
    links = [
        {"joint": "revolute", "length": length, "mass_per_length": 0.2, "EI": {"y": 8.0}}
        | {"damping_ratio": 0.01}
        for length in (0.3, 0.4, 0.3)
    ]
    links[0]["flexible_joint"] = JOINT
    links[1]["joint_inertia"] = 0.02
    links[2]["flexible_joint"] = JOINT | {"gear": 2.0, "rotor_inertia": 0.004, "carried": True}
    return make["arm"](links, gravity, {"mass": 0.1, "inertia": [0.0, 0.0, 0.001]})


def loop_of(make, method="decoupling", gravity=(0.0, 0.0, 0.0), order=2, **more):
    start, final = [0.0, 0.0, 0.0], [0.6, -0.4, 0.9]
    gains = {"Gp": 60.0, "Gv": 16.0} if method == "decoupling" else {"Gp": 5.0, "Gv": 1.0}
    if method == "decoupling":
        more |= {"second_loop": {"weights": WEIGHTS | {"effort": 1e-3}}}
    design = make["design"](start, final, method, gains=gains, duration=1.0, **more)
    arm = arm_of(make, gravity)
    controller = design_controller(arm, design)
    return close_loop(controller, arm, BasisChoice(kind="modes", order=order))


@pytest.fixture(scope="module")
def loop(make):
    return loop_of(make)


@pytest.fixture(scope="module")
def exact(loop):
    """The run to round-off."""
    times = np.linspace(0, 1.5, 16)
    return simulate(loop, times=times, integrator="explicit", tolerance=Tolerance.of(1e-12))


INTEGRATORS = {
    "esdirk": (1e-6, {}),
    "rk4": (1e-6, {"step": 1e-4}),
    "midpoint": (1e-3, {"step": 1e-4}),
    "bdf": (1e-5, {}),
    "adams": (1e-6, {}),
}


@needs_compiler
@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.slow  # takes long
def test_all_integrators_give_the_same_run(loop, exact, name):
    error, how = INTEGRATORS[name]
    run = simulate(loop, times=exact.t, integrator=name, **how)

    assert np.abs(run.q - exact.q).max() < error
    assert np.abs(run.tau - exact.tau).max() < 100 * error


@pytest.mark.slow
def test_the_energy_account_closes(exact):
    assert exact.energy.imbalance < 1e-9


@pytest.mark.slow
def test_decoupled_rotors_follow_the_reference_exactly(exact):
    moving = exact.t <= 1.0
    driven = exact.q[list(exact.drives)] - exact.desired

    assert np.abs(driven[:, moving]).max() < 1e-8
    assert np.abs(exact.joint_error[[0, 2]][:, moving]).max() > 1e-4


def weight_of(arm, joints):
    """Torques (m, N) of gravity at the joints (m, N) of a planar arm of rigid links, by hand."""
    angle = np.cumsum(joints, axis=0)
    torque = np.zeros_like(joints)
    for j, link in enumerate(arm.links):
        beyond = sum(k.line_mass for k in arm.links[j + 1 :]) + arm.payload.mass
        moment = 9.81 * link.length * np.cos(angle[j]) * (link.line_mass / 2 + beyond)
        torque[: j + 1] += moment
    return torque


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("kind", ["quintic", "bang-bang"])
def test_under_gravity_decoupled_rotors_follow_what_their_springs_ask_for(make, kind):
    # one joint rigid, one rotor fixed, one carried; 2.4e-4 rad off with the joints' acceleration
    rigid = arm_of(make, (0.0, -9.81, 0.0)).rigid
    design = make["design"](
        [0.0, 0.0, 0.0], [0.6, -0.4, 0.9], kind=kind, gains={"Gp": 60.0, "Gv": 16.0}, duration=1.0
    )
    loop = close_loop(design_controller(rigid, design), rigid, BasisChoice(kind="modes", order=1))
    run = simulate(loop, integrator="explicit", tolerance=Tolerance.of(1e-12))
    stiffness = np.array([60.0, np.inf, 60.0])[:, None]
    reference = run.desired + weight_of(rigid, run.desired) / stiffness

    assert np.abs(reference - run.desired).max() > 0.03
    assert np.abs(run.q[list(run.drives)] - reference).max() < 1e-10


def test_the_torques_power_is_that_of_the_rotors(exact):
    power = (exact.tau * exact.v[list(exact.drives)]).sum(axis=0)
    fine = np.gradient(exact.energy.supplied, exact.t, edge_order=2)

    assert np.abs(fine - power)[1:-1].max() < 0.2 * np.abs(power).max()


@pytest.mark.slow  # takes long
# decoupling under slow: its law compiles long
@pytest.mark.parametrize("method", [pytest.param("decoupling", marks=pytest.mark.slow), "joint-pd"])
def test_the_integrators_poles_are_those_of_the_linear_loop(make, method):
    loop = loop_of(make, method, order=3)
    joints = loop.controller.reference.final
    share = float(loop.controller.feedback is not None)
    phase = 2.0 * share
    linear = linearise_loop(loop, joints, share)
    found = local_poles(loop, loop.truth.straight(joints), 1.2, phase)

    assert np.sort_complex(found) == pytest.approx(np.sort_complex(linear.poles), rel=1e-7)


@pytest.mark.slow  # compiles long
def test_under_gravity_the_second_loop_brings_the_joints_to_their_target(make):
    loop = loop_of(make, gravity=(0.0, -9.81, 0.0))
    run = simulate(loop, times=np.array([0.0, 20.0]))
    wind_up = run.q[list(run.drives), -1] - run.q[:3, -1]

    assert np.abs(wind_up[[0, 2]]).min() > 2e-3
    assert np.abs(run.joint_error[:, -1]).max() < 1e-8


@pytest.mark.slow
def test_under_gravity_joint_pd_rests_where_its_springs_bear_what_it_fed_forward(make):
    # the links' sag moves their weight; the PD loop takes the difference as an error of its rotors
    loop = loop_of(make, "joint-pd", gravity=(0.0, -9.81, 0.0))
    run = simulate(loop, times=np.array([0.0, 60.0]))
    q = run.q[:, -1]
    springs = 60.0 * (q[list(run.drives)] - q[:3])[[0, 2]]

    assert run.tau[[0, 2], -1] == pytest.approx(springs, rel=1e-6)
    assert np.abs(run.joint_error[:, -1]).max() < 0.02
