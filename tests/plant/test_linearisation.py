"""Linear models against differences of the nonlinear one, and as python-control systems."""

import control
import numpy as np
import pytest

from flexctl.errors import FlexctlError, InputError
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of, single_link

CLAMPED_FREE = np.array([1.875104068711961, 4.694091132974174, 7.854757438237612])
POSES = {
    "rrp": {"joint1": 0.3, "joint2": 0.4, "joint3": 0.8},
    "two-link": {"joint1": 0.5, "joint2": -0.9},
    "spatial": {"joint1": 0.2, "joint2": 0.4, "joint3": -0.5},
    "hub-file": {"joint1": 0.3},
}


@pytest.fixture(params=POSES)
def case(request, plant_named):
    plant = plant_named(request.param)
    return plant, linearise(plant, POSES[request.param])


def differences(f, x, h=3e-4):
    """Jacobian of f at x, central differences of order six."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    steps = h * np.eye(len(x))
    columns = [
        sum(w * (f(x + i * e) - f(x - i * e)) / h for i, w in weights.items()) for e in steps
    ]
    return np.array(columns).T


def test_the_equilibrium_is_at_rest_and_the_joints_are_where_they_were_put(case):
    plant, lin = case
    force = plant.gravity(lin.q0) + plant.elastic_force(lin.q0)
    sizes = np.abs(plant.gravity(lin.q0)).max() + np.abs(plant.tangent_stiffness(lin.q0)) @ np.abs(
        lin.q0 * (np.arange(plant.n) >= plant.m)
    )

    assert np.abs((plant.B @ lin.tau0 - force) / (sizes + 1e-30)).max() < 1e-12
    assert dict(zip(plant.joints, lin.q0, strict=False)) in POSES.values()


def test_state_matrix_is_the_jacobian_of_forward_dynamics(case):
    plant, lin = case
    n = plant.n

    def f(x):
        return np.concatenate([x[n:], plant.forward_dynamics(x[:n], x[n:], lin.tau0)])

    A = differences(f, np.concatenate([lin.q0, np.zeros(n)]))
    assert pytest.approx(A, abs=1e-9 * np.abs(A).max()) == lin.A_state


def test_poles_are_those_of_the_differenced_dynamics(case):
    plant, lin = case
    n = plant.n

    def f(x):
        return np.concatenate([x[n:], plant.forward_dynamics(x[:n], x[n:], lin.tau0)])

    poles = np.linalg.eigvals(differences(f, np.concatenate([lin.q0, np.zeros(n)])))
    fast = np.abs(poles) > 1  # rigid-body poles lie at 0, where an error enters by its root
    found = lin.poles()[np.abs(lin.poles()) > 1]
    distance = np.abs(poles[fast][:, None] - found).min(0) / np.abs(found)

    assert fast.sum() == len(found)
    assert distance.max() < 1e-6


def test_outputs_are_the_differences_of_joints_tip_and_deflections(case):
    plant, lin = case

    def outputs(q):
        return np.concatenate([q[: plant.m], plant.tip(q), plant.deflections(q)[0]])

    C = differences(outputs, lin.q0)
    assert lin.outputs[:, : plant.n] == pytest.approx(C, abs=1e-10)
    assert not lin.outputs[:, plant.n :].any()


def test_to_control_has_names_and_the_same_poles(case):
    plant, lin = case
    system = lin.to_control()
    names = [name.replace(".", "_") for name in plant.coordinates]

    assert system.state_labels == [*names, *(f"{name}_rate" for name in names)]
    assert system.input_labels == [f"tau_{joint}" for joint in plant.joints]
    assert system.output_labels[: plant.m] == list(plant.joints)
    assert system.output_labels[plant.m : plant.m + 3] == ["tip_x", "tip_y", "tip_z"]
    assert len(system.output_labels) == plant.m + 3 + len(plant.lines)
    expected = np.linalg.eigvals(lin.A_state)
    assert np.sort_complex(system.poles()) == pytest.approx(np.sort_complex(expected), abs=1e-9)


def test_to_nonlinear_linearises_to_the_same_matrices(case):
    plant, lin = case
    x0 = np.concatenate([lin.q0, np.zeros(plant.n)])
    system = plant.to_nonlinear()
    found = control.linearize(system, x0, lin.tau0, eps=1e-8)

    # one-sided differences: half a step times the second derivatives, which are large
    assert pytest.approx(lin.A_state, abs=1e-5 * np.abs(lin.A_state).max()) == found.A
    assert pytest.approx(lin.B_state, abs=1e-5 * np.abs(lin.B_state).max()) == found.B
    assert pytest.approx(lin.outputs, abs=1e-5) == found.C
    assert system.output_labels == lin.to_control().output_labels


def test_to_nonlinear_rests_at_the_equilibrium(case):
    plant, lin = case
    x0 = np.concatenate([lin.q0, np.zeros(plant.n)])
    rate = plant.to_nonlinear().dynamics(0.0, x0, lin.tau0)
    largest = np.abs(lin.A_state).max() * np.abs(lin.q0).max()

    assert np.abs(rate).max() < 1e-12 * largest + 1e-12


def test_zeros_of_hub_torque_to_hub_angle_are_the_clamped_frequencies(make, plant_of):
    link = {"joint": "revolute", "length": 0.8, "mass_per_length": 0.5, "EI": {"y": 3.0}}
    arm = make["arm"]([link | {"hub": {"inertia": [0.0, 0.0, 0.02]}}])
    system = linearise(plant_of(arm, "modes", 3)).to_control()
    zeros = system["joint1", "tau_joint1"].zeros()
    found = np.sort(zeros.imag[zeros.imag > 0])

    assert np.abs(zeros.real).max() < 1e-6 * found[0]
    assert found == pytest.approx(CLAMPED_FREE**2 * np.sqrt(3.0 / 0.5) / 0.8**2, rel=1e-7)


@pytest.mark.parametrize(
    ("ratio", "exact"),
    [(0.0, [15.4182, 49.9649]), (0.1, [6.9639, 22.9802]), (1.0, [4.0401, 22.1257])],
)
def test_free_frequencies_of_a_hinged_beam_with_a_hub(ratio, exact, make, plant_of):
    # in units sqrt(EI / (rho A l^4)); hub inertia in units of m l^2
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0, "EI": {"y": 1.0}}
    link |= {"foreshortening": False}
    arm = make["arm"]([link | {"hub": {"inertia": [0.0, 0.0, ratio]}}])
    lin = linearise(plant_of(arm, "elements", 24))

    assert lin.frequencies()[1:3] == pytest.approx(exact, rel=2e-5)


@pytest.mark.parametrize("order", [2, 12])
def test_an_equilibrium_is_found_on_fine_meshes_too(order, make, plant_of):
    arm = make["two-link"]((0.0, -9.81, 0.0), EI=4000.0, foreshortening=False)
    lin = linearise(plant_of(arm, "elements", order), {"joint1": 0.3, "joint2": -0.4})

    assert 1e-6 < np.abs(lin.q0[2:]).max() < 0.1


def test_an_equilibrium_without_gravity_is_the_straight_arm(make, plant_of):
    plant = plant_of(make["two-link"](), "elements", 3)
    q = plant.pose({"joint1": 0.3, "joint2": -0.4})
    q[plant.m :] = 0.01

    assert np.abs(linearise(plant, q).q0[plant.m :]).max() < 1e-15


def test_an_impossible_pose_given_as_an_array_is_refused(plant_named):
    plant = plant_named("rrp")
    q = plant.pose()
    q[2] = 2.0  # of 1.3 m

    with pytest.raises(FlexctlError, match="joint3"):
        linearise(plant, q)


STIFF = {"rotor_inertia": 0.02, "stiffness": 1e9, "damping": 0.02}


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, -9.81, 0.0)])
def test_poles_and_frequencies_beside_a_very_stiff_spring_are_those_of_a_rigid_joint(
    gravity, make, plant_of
):
    # w^2 J/k = 1e-8 and less apart; rigid motions came out as poles at +-1.5e-3 rad/s, and the
    # damping of a hanging arm at twice its value
    link = {"joint": "revolute", "length": 0.4, "mass_per_length": 0.3, "EI": {"y": 4.0}}
    link |= {"joint_inertia": 0.01, "damping_ratio": 0.01}
    stiff = make["arm"]([link | {"flexible_joint": STIFF}, link], gravity, {"mass": 0.1})
    rigid = make["arm"]([link | {"joint_inertia": 0.03}, link], gravity, {"mass": 0.1})
    soft, hard = (linearise(plant_of(arm), {"joint1": -np.pi / 2}) for arm in (stiff, rigid))
    poles, expected = (np.sort_complex(lin.poles()) for lin in (soft, hard))
    slow = poles[np.abs(poles) < 1e4]
    data = 1e-6 if any(gravity) else 0.0  # weights beside 1e9 N m/rad

    assert len(slow) == len(expected)
    assert soft.frequencies()[:-1] == pytest.approx(hard.frequencies(), rel=1e-7 + data, abs=0)
    assert slow.real == pytest.approx(expected.real, rel=1e-6, abs=1e-11 + data)
    assert slow.imag == pytest.approx(expected.imag, rel=1e-7 + data, abs=1e-11)


def test_slow_frequencies_beside_a_link_ten_thousand_times_as_stiff_have_all_digits(make, plant_of):
    # nine times as stiff everywhere: w is three times as high, but rounded otherwise
    def locked(scale):
        soft = {
            "joint": "revolute",
            "length": 0.5,
            "mass_per_length": 0.2,
            "EI": {"y": 4.0 * scale},
        }
        hard = soft | {"EI": {"y": 4e4 * scale}}
        plant = plant_of(make["arm"]([hard, soft], payload={"mass": 0.1}), "elements", 4)
        return linearise(plant).frequencies(np.arange(plant.n) >= plant.rigid)

    assert locked(9.0) == pytest.approx(3 * locked(1.0), rel=3e-13)


@pytest.mark.parametrize("model", ["events", "lugre"])
def test_friction_that_q_and_v_do_not_tell_is_no_system_of_them(model):
    friction = {"model": model, "coulomb": 0.2, "viscous": 0.1}
    friction |= {"sigma0": 1e4, "sigma1": 1.0} if model == "lugre" else {}
    plant = plant_of(single_link(friction=friction))
    with pytest.raises(InputError, match=r"friction\.model: expected smoothed"):
        plant.to_nonlinear()
