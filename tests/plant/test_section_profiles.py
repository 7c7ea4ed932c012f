"""Arms whose links vary along themselves, carry masses, shear and turn."""

import casadi as ca
import numpy as np
import pytest

from flexctl.model.changed_arm import soften_arm
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.plant.stiffness_error import part_energies
from tests.plant.section_witness import SectionWitness

TAPER = {"x": [0.0, 1.0], "value": [0.9, 0.3], "power": 2}
STIFF = {"x": [0.0, 1.0], "value": [27.0, 3.0], "power": 4}
STEP = {"x": [0.0, 0.4, 0.4, 1.0], "value": [0.6, 0.5, 0.3, 0.2]}
MOTOR = {"x": 0.55, "mass": 0.3, "inertia": [0.0, 0.0, 2e-3]}
SENSOR = {"x": 0.2, "mass": 0.05}
PLANAR = {"joint": "revolute", "length": 0.6, "EI": {"y": 9.0}, "mass_per_length": 0.4}
LINKS = {
    "taper": PLANAR | {"mass_per_length": TAPER, "EI": {"y": STIFF}},
    "step": PLANAR | {"mass_per_length": STEP, "EI": {"y": STEP | {"value": [9, 9, 4, 4]}}},
    "masses": PLANAR | {"masses": [MOTOR, SENSOR]},
    "Rayleigh": PLANAR | {"rotary_inertia": {"y": 3e-3}},
    "Timoshenko": PLANAR
    | {"rotary_inertia": {"y": 3e-3}, "shear_stiffness": {"y": 800.0}, "damping_ratio": 0.02},
    "all": PLANAR
    | {"mass_per_length": TAPER, "EI": {"y": STIFF}, "masses": [MOTOR]}
    | {"rotary_inertia": {"y": {"x": [0, 1], "value": [4e-3, 1e-3]}}}
    | {"shear_stiffness": {"y": {"x": [0, 0.5, 1], "value": [900.0, 800.0, 500.0]}}},
}
SPACE = {"joint": "revolute", "length": 0.6, "dh": {"alpha": 0.7, "d": 0.1, "theta": 0.4}}
SPACE |= {"mass_per_length": STEP, "EI": {"y": STIFF, "z": 8.0}, "masses": [SENSOR]}
SPACE |= {"damping_ratio": 0.01}
RIGID = {"joint": "revolute", "dh": {"a": 0.5, "alpha": 0.3}, "mass_per_length": STEP}
RIGID |= {"masses": [MOTOR | {"inertia": [1e-3, 2e-3, 2e-3]}], "rotary_inertia": {"y": 1e-3}}
UPRIGHT = {"joint": "revolute", "dh": {"alpha": 0.5, "d": -0.4}, "mass_per_length": TAPER}
PAYLOAD = {"mass": 0.1, "com": [0.02, 0.01, 0.0], "inertia": [0.001, 0.001, 0.0015]}
ARMS = {
    **{name: [link, PLANAR | {"length": 0.4}] for name, link in LINKS.items()},
    "second": [PLANAR, LINKS["all"]],
    "space": [UPRIGHT, SPACE, RIGID],
    "rigid": [UPRIGHT, RIGID],
}
CASES = [(name, kind) for name in ARMS for kind in ("modes", "elements")]
CASES += [("second", "pinned-modes")]
LONG = [("space", "modes"), ("space", "free-modes")]
PARAMS = [case for case in CASES if case not in LONG]
PARAMS += [pytest.param(case, marks=pytest.mark.slow) for case in LONG]


@pytest.fixture(scope="module", params=PARAMS, ids="-".join)
def pair(request, make):
    name, kind = request.param
    arm = make["arm"](ARMS[name], (2.0, -9.0, 3.0), PAYLOAD)
    order = 3 if kind == "elements" else 2
    plant = assemble_plant(arm, BasisChoice(kind=kind, order=order), interpreted=True)
    return plant, SectionWitness(arm, kind, order)


@pytest.mark.slow_but("Timoshenko-modes-2", "taper-modes-2")
@pytest.mark.parametrize("seed", [1, 2])
def test_kinetic_energy_is_the_sum_over_moving_material_points(pair, random_state, seed):
    plant, points = pair
    q, v, _ = random_state(plant, seed)
    assert plant.energies(q, v)[0] == pytest.approx(points.kinetic(q, v), rel=1e-9)


@pytest.mark.slow_but("rigid-elements", "masses-modes")
def test_every_entry_of_the_mass_matrix_is_that_of_the_points(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 3)
    M = points.mass_matrix(q)
    scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))
    assert np.abs((plant.mass_matrix(q) - M) / scale).max() < 1e-9


@pytest.mark.slow_but("taper-modes", "masses-modes", "second-modes")
def test_strain_energy_is_that_of_bending_and_shear(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 4)
    assert plant.energies(q, v)[1] == pytest.approx(np.real(points.strain(q)), rel=1e-9)


@pytest.mark.slow_but(
    "taper-modes", "step-modes", "masses-modes", "Rayleigh-modes", "rigid-elements"
)
def test_gravity_acts_on_every_point(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 5)
    c = points.gradient(points.weight_energy, q)
    assert plant.energies(q, v)[2] == pytest.approx(points.weight_energy(q).real, rel=1e-9)
    assert plant.gravity(q) == pytest.approx(c, abs=1e-9 * np.abs(c).max())


@pytest.mark.slow_but("rigid-elements", "step-modes", "taper-modes")
def test_tip_is_where_the_points_end(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 6)
    assert plant.tip(q) == pytest.approx(points.tip(q)[1].real, abs=1e-13)


TURNING = SPACE | {"rotary_inertia": {"y": 2e-3, "z": 1e-3}, "shear_stiffness": {"z": 900.0}}
TURNING |= {"masses": [{"x": 0.7, "mass": 0.2, "inertia": [1e-3, 2e-3, 2e-3]}]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_the_recursion_agrees_with_lagrange_in_space(make, random_state, kind):
    arm = make["arm"]([UPRIGHT, TURNING, RIGID], (2.0, -9.0, 3.0), PAYLOAD)
    basis = BasisChoice(kind=kind, order=2)
    one, other = (
        assemble_plant(arm, basis, engine=engine, interpreted=True)
        for engine in ("recursion", "lagrange")
    )
    tau = np.array([1.0, -2.0, 0.5])
    for seed in (1, 2, 3):
        q, v, _ = random_state(one, seed)
        a = other.forward_dynamics(q, v, tau)
        assert one.forward_dynamics(q, v, tau) == pytest.approx(a, abs=1e-9 * np.abs(a).max())


@pytest.mark.slow_but("Timoshenko-modes")
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", LINKS)
def test_the_straight_arm_has_the_inertia_of_its_rigid_twin(make, plant_of, name, kind):
    arm = make["arm"](ARMS[name], (0.0, 0.0, 0.0), PAYLOAD)
    flexible, rigid = plant_of(arm, kind), plant_of(arm.rigid)
    q = flexible.straight([0.4, -0.9])
    M = flexible.mass_matrix(q)[:2, :2]
    assert pytest.approx(rigid.mass_matrix(q[:2]), rel=1e-12) == M


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", LINKS)
def test_forward_dynamics_undoes_inverse_dynamics(make, plant_of, random_state, name, kind):
    plant = plant_of(make["arm"](ARMS[name], (0.0, -9.81, 0.0), PAYLOAD), kind)
    q, v, _ = random_state(plant, 1)
    tau = np.array([3.0, -1.0])
    a = plant.forward_dynamics(q, v, tau)
    force = plant.inverse_dynamics(q, v, a)
    sizes = np.abs(plant.mass_matrix(q)) @ np.abs(a)
    assert np.abs((force - plant.B @ tau) / (sizes + 1)).max() < 1e-10


@pytest.mark.slow_but("Rayleigh", "taper")
@pytest.mark.parametrize("name", LINKS)
def test_damping_is_by_mode_of_the_clamped_line(make, plant_of, name):
    # D of modes is diagonal: 2 zeta w times their mass
    link = LINKS[name] | {"damping_ratio": [0.02, 0.03]}
    plant = plant_of(make["arm"]([link]))
    q = plant.straight([0.0])
    M, D = plant.mass_matrix(q)[1:, 1:], plant.damping(q)[1:, 1:]
    K = np.array([plant.elastic_force(e)[1:] for e in np.eye(3)[1:]])
    w = np.sqrt(np.diag(K) / np.diag(M))
    expected = np.diag(2 * np.array([0.02, 0.03]) * w * np.diag(M))
    assert pytest.approx(expected, abs=1e-8 * expected.max()) == D


@pytest.mark.slow_but("modes")
@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_frequencies_of_a_carried_mass_at_the_end_are_those_of_a_payload(make, plant_of, kind):
    load = {"mass": 0.3, "inertia": [0.0, 0.0, 2e-3]}
    tip = {"tip_load": {"include": ["M", "J"]}} if kind == "modes" else {}
    carried = plant_of(make["arm"]([PLANAR | {"masses": [load | {"x": 1.0}]}]), kind, 4)
    payload = plant_of(make["arm"]([PLANAR | tip], payload=load), kind, 4)
    found, expected = (
        linearise(plant, plant.straight([0.0])).frequencies() for plant in (carried, payload)
    )
    assert found[1:4] == pytest.approx(expected[1:4], rel=1e-8)


@pytest.mark.slow_but("modes")
@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_a_uniform_line_written_in_pieces_moves_as_one_written_as_a_number(
    make, plant_of, random_state, kind
):
    same = {"mass_per_length": {"x": [0, 0.5, 1], "value": [0.4, 0.4, 0.4]}}
    written = plant_of(make["arm"]([PLANAR | same, PLANAR], payload=PAYLOAD), kind)
    plain = plant_of(make["arm"]([PLANAR, PLANAR], payload=PAYLOAD), kind)
    q, v, _ = random_state(plain, 3)
    a = plain.forward_dynamics(q, v, np.ones(2))
    assert written.forward_dynamics(q, v, np.ones(2)) == pytest.approx(
        a, abs=1e-8 * np.abs(a).max()
    )


@pytest.mark.slow_but("Rayleigh-modes", "Timoshenko-modes", "Rayleigh-elements")
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", LINKS)
def test_parts_of_the_stiffness_add_up(make, plant_of, random_state, name, kind):
    plant = plant_of(make["arm"](ARMS[name], (0.0, 0.0, 0.0), PAYLOAD), kind)
    q, v, _ = random_state(plant, 7)
    x = ca.SX.sym("q", plant.n)
    parts = ca.Function("parts", [x], [part_energies(plant.bodies, x)])(q)
    assert float(ca.sum1(parts)) == pytest.approx(plant.energies(q, v)[1], rel=1e-9)


@pytest.mark.parametrize("name", LINKS)
def test_softening_scales_bending_and_shear(make, plant_of, random_state, name):
    arm = make["arm"](ARMS[name], (0.0, 0.0, 0.0), PAYLOAD)
    plant, stiff = plant_of(arm, "elements"), plant_of(soften_arm(arm, 2.0), "elements")
    q, _, _ = random_state(plant, 8)
    force = 2 * plant.elastic_force(q)
    assert stiff.elastic_force(q) == pytest.approx(force, abs=1e-11 * np.abs(force).max())


def test_total_mass_and_inertia_of_a_tapered_link_are_integrals(make, plant_of):
    # (a + (b - a) x)^2 with a, b the roots of the values
    plant = plant_of(make["arm"]([LINKS["taper"]]))
    a, b = np.sqrt(TAPER["value"])
    x = np.polynomial.Polynomial([a, b - a]) ** 2 * np.polynomial.Polynomial([0, 0, 1])
    inertia = 0.6**3 * (x.integ()(1) - x.integ()(0))
    assert plant.mass_matrix(np.zeros(plant.n))[0, 0] == pytest.approx(inertia, rel=1e-12)


def test_in_space_turning_lacks_parts_of_the_relative_size_of_a_slope(make, plant_of):
    # against sections that turn as rigid bodies do, at deflections that shrink to nothing
    # (the first link makes the second turn about its own line too, or the parts would be squares)
    arm = make["arm"]([RIGID, TURNING], (0.0, 0.0, 0.0), PAYLOAD)
    plant, points = plant_of(arm), SectionWitness(arm)
    v = np.array([3.0, 2.0, 0.3, -0.2, 0.4, 0.1])
    q = np.array([0.3, 0.7, 0.02, 0.01, -0.015, 0.01])

    def missing(scale):
        at = np.append(q[:2], scale * q[2:])
        return abs(plant.energies(at, v)[0] - points.kinetic(at, v))

    assert missing(1.0) < 1e-3 * plant.energies(q, v)[0]
    assert missing(1.0) / missing(0.5) == pytest.approx(2.0, abs=0.3)
    assert missing(0.0) < 1e-12 * plant.energies(q, v)[0]
