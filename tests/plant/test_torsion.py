"""Links that twist: closed forms, engines against each other, material points, statics."""

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.model.changed_arm import soften_arm
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from tests.arms import wrong_plant
from tests.plant.section_witness import SectionWitness

LENGTH, MASS, EI, GJ, POLAR = 0.6, 0.5, 20.0, 8.0, 2e-3
TORSION = {"GJ": GJ, "polar_inertia": POLAR}
ROD = {"joint": "revolute", "length": LENGTH, "mass_per_length": MASS, "torsion": TORSION}
BAR = ROD | {"EI": {"z": EI}}
STEP = {"x": [0.0, 0.4, 0.4, 1.0], "value": [0.6, 0.5, 0.3, 0.2]}
TAPER = {"x": [0.0, 1.0], "value": [27.0, 3.0], "power": 4}
DISC = {"x": 0.7, "mass": 0.2, "inertia": [3e-3, 2e-3, 2e-3]}
SPACE = {"joint": "revolute", "length": 0.6, "dh": {"alpha": 0.7, "d": 0.1, "theta": 0.4}}
SPACE |= {"mass_per_length": STEP, "EI": {"y": TAPER, "z": 8.0}, "masses": [DISC]}
SPACE |= {"torsion": {"GJ": TAPER, "polar_inertia": STEP | {"value": [6e-3, 4e-3, 2e-3, 1e-3]}}}
SPACE |= {"rotary_inertia": {"y": 2e-3}, "shear_stiffness": {"z": 900.0}, "damping_ratio": 0.01}
UPRIGHT = {"joint": "revolute", "dh": {"alpha": 0.5, "d": -0.4}, "mass_per_length": 0.5}
RIGID = {"joint": "revolute", "dh": {"a": 0.5, "alpha": 0.3}, "mass_per_length": 0.4}
RIGID |= {"torsion": {"polar_inertia": 1e-3}}
PAYLOAD = {"mass": 0.1, "com": [0.02, 0.01, 0.0], "inertia": [0.001, 0.001, 0.0015]}
ARMS = {
    "space": [UPRIGHT, SPACE, RIGID],
    "rod": [ROD | {"dh": {"alpha": 0.9}}, RIGID],
    "two": [BAR, BAR | {"EI": {"y": 9.0, "z": 7.0}, "dh": {"alpha": 1.1}}],
}


@pytest.fixture(
    params=[("space", "elements"), ("rod", "modes"), ("two", "modes")],
    ids="-".join,
)
def pair(request, make):
    name, kind = request.param
    arm = make["arm"](ARMS[name], (2.0, -9.0, 3.0), PAYLOAD)
    plant = assemble_plant(arm, BasisChoice(kind=kind, order=2), interpreted=True)
    return plant, SectionWitness(arm, kind, 2)


def bent_as_far_as_is_exact(plant, q):
    """Straight where lines bend: in space the axes of sections are those of the straight line."""
    if any(body.bent for body in plant.bodies):
        q[plant.m :] = 0.0
    return q


def test_kinetic_energy_is_the_sum_over_material_points_and_sections(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 1)
    q = bent_as_far_as_is_exact(plant, q)
    assert plant.energies(q, v)[0] == pytest.approx(points.kinetic(q, v), rel=1e-9)


@pytest.mark.slow_but("rod-modes")
def test_every_entry_of_the_mass_matrix_is_that_of_the_points(pair, random_state):
    plant, points = pair
    q = bent_as_far_as_is_exact(plant, random_state(plant, 3)[0])
    M = points.mass_matrix(q)
    scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))
    assert np.abs((plant.mass_matrix(q) - M) / scale).max() < 1e-9


def test_strain_energy_is_that_of_bending_shear_and_twist(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 4)
    assert plant.energies(q, v)[1] == pytest.approx(np.real(points.strain(q)), rel=1e-9)


def test_gravity_acts_on_every_point(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 5)
    c = points.gradient(points.weight_energy, q)
    assert plant.gravity(q) == pytest.approx(c, abs=1e-9 * np.abs(c).max())


@pytest.mark.slow_but("rod-modes", "rod-elements")
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", ["rod", "space", pytest.param("two", marks=pytest.mark.slow)])
def test_the_recursion_agrees_with_lagrange(make, random_state, name, kind):
    arm = make["arm"](ARMS[name], (2.0, -9.0, 3.0), PAYLOAD)
    one, other = (
        assemble_plant(arm, BasisChoice(kind=kind, order=2), engine=engine, interpreted=True)
        for engine in ("recursion", "lagrange")
    )
    q, v, _ = random_state(one, 1)
    tau = np.array([1.0, -2.0, 0.5])[: one.m]
    a = other.forward_dynamics(q, v, tau)
    assert one.forward_dynamics(q, v, tau) == pytest.approx(a, abs=1e-9 * np.abs(a).max())


@pytest.mark.parametrize(("kind", "order", "rel"), [("modes", 3, 1e-10), ("elements", 12, 1e-4)])
def test_a_rod_with_an_inertia_at_its_tip_has_its_closed_form(make, plant_of, kind, order, rel):
    J = 0.4 * POLAR * LENGTH
    rod = ROD | {"tip_load": {"include": ["J"]}}
    plant = plant_of(make["arm"]([rod], payload={"inertia": [J, 0, 0]}), kind, order)
    beta = [
        brentq(lambda b: np.cos(b) - 0.4 * b * np.sin(b), k * np.pi, (k + 0.5) * np.pi)
        for k in range(3)
    ]
    # joint1 turns across the rod, which is then rigid: its frequency 0 comes first
    found = linearise(plant, plant.straight([0.0])).frequencies()[1:4]
    assert found == pytest.approx(np.array(beta) * np.sqrt(GJ / POLAR) / LENGTH, rel=rel)


def bending_and_twist(w, m, com, inertia):
    """Frequency determinant of a clamped bar with a body at its tip, bending in z and twisting.

    With W = a (cosh - cos)(k x) + b (sinh - sin)(k x), phi = c sin(p x), and z = W + e phi + f W'
    the lift of the body's centre of mass (f, e, 0) beyond the tip, the tip's conditions are
    EI W''' = -w^2 m z, EI W'' = w^2 (J W' + m f z), GJ phi' = w^2 (J_x phi + m e z).
    """
    k, p = (w**2 * MASS / EI) ** 0.25, w * np.sqrt(POLAR / GJ)
    C, S, c, s = (f(k * LENGTH) for f in (np.cosh, np.sinh, np.cos, np.sin))
    W = np.array([C - c, S - s, 0.0])
    slope = k * np.array([S + s, C - c, 0.0])
    moment = EI * k**2 * np.array([C + c, S + s, 0.0])
    shear = EI * k**3 * np.array([S - s, C + c, 0.0])
    phi = np.array([0.0, 0.0, np.sin(p * LENGTH)])
    torque = GJ * p * np.array([0.0, 0.0, np.cos(p * LENGTH)])
    z = W + com[1] * phi + com[0] * slope
    rows = [
        shear + w**2 * m * z,
        moment - w**2 * (inertia[1] * slope + m * com[0] * z),
        torque - w**2 * (inertia[0] * phi + m * com[1] * z),
    ]
    return np.linalg.det(np.array(rows) / [[S], [S], [1.0]])


def scanned(function, count, step=1.7):
    """The lowest roots of a function, found on a grid that knows nothing of the answer."""
    found, left = [], step
    while len(found) < count:
        if function(left) * function(left + step) < 0:
            found.append(brentq(function, left, left + step, rtol=1e-14))
        left += step
    return np.array(found)


LOAD = {"mass": 0.2, "com": [0.03, 0.1, 0.0], "inertia": [4e-4, 3e-4, 4e-4]}


def locked(plant):
    """Natural frequencies with the joints held."""
    q, m = plant.straight([0.0] * plant.m), plant.m
    model = linearise(plant, q)
    return np.sqrt(np.linalg.eigvals(np.linalg.solve(model.M[m:, m:], model.K[m:, m:])).real)


@pytest.fixture(scope="module")
def coupled(make, plant_of):
    """Exact frequencies of a bar with an offset payload, and errors on 4, 8 and 16 elements."""
    arm = make["arm"]([BAR | {"foreshortening": False}], payload=LOAD)
    exact = scanned(lambda w: bending_and_twist(w, LOAD["mass"], LOAD["com"], LOAD["inertia"]), 4)
    found = [np.sort(locked(plant_of(arm, "elements", n)))[:4] for n in (4, 8, 16)]
    return exact, np.array(found) / exact - 1


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_an_offset_payload_couples_bending_and_twist_as_the_determinant_says(coupled, mode):
    # the errors of 16 elements, 1e-8 to 2e-6 of these modes, fall from those of 4 as h^4
    error = coupled[1][:, mode]
    assert (error > 0).all()
    assert error[-1] < 1e-5
    assert -np.polyfit(np.log([4, 8, 16]), np.log(error), 1)[0] == pytest.approx(4, abs=0.15)


def test_an_elbow_of_a_light_bar_is_two_springs_and_a_mass(make, plant_of):
    # link 2, rigid, at a right angle to link 1: a mass that rides on the bar's bending (its force
    # and its twist) alone; K of the mass by Castigliano's compliance l^3/3EI + a^2 l/GJ
    arm_length, m = 0.4, 0.3
    light = BAR | {"mass_per_length": 1e-9, "torsion": {"GJ": GJ, "polar_inertia": 1e-12}}
    elbow = {"joint": "revolute", "dh": {"a": arm_length}}
    plant = plant_of(make["arm"]([light, elbow], payload={"mass": m}), "elements", 1)
    model = linearise(plant, plant.straight([0.0, np.pi / 2]))
    Phi = np.linalg.inv(model.K[2:, 2:])
    lift = plant.tip_jacobian(model.q0)[2, 2:]
    compliance = LENGTH**3 / (3 * EI) + arm_length**2 * LENGTH / GJ
    assert lift @ Phi @ lift == pytest.approx(compliance, rel=1e-12)
    w = 1 / np.sqrt(np.linalg.eigvals(Phi @ model.M[2:, 2:]).real.max())
    assert w == pytest.approx(1 / np.sqrt(m * compliance), rel=1e-6)


def test_an_offset_weight_twists_the_bar_and_lowers_what_is_beyond(make, plant_of):
    weak, load = 1e-4, {"mass": 0.2, "com": [0.0, 0.1, 0.0]}
    plant = plant_of(make["arm"]([BAR], (0.0, 0.0, -weak), load), "elements", 2)
    q = linearise(plant, {"joint1": 0.0}).q0
    angle = -0.2 * weak * 0.1 * LENGTH / GJ
    sag = weak * (MASS * LENGTH**4 / 8 + 0.2 * LENGTH**3 / 3) / EI
    assert plant.lines == ("link1.z", "link1.twist")
    assert plant.deflections(q)[0] == pytest.approx([-sag, angle], rel=1e-7)
    assert plant.deflections(q)[1][1] == plant.deflections(q)[0][1]


@pytest.mark.parametrize("foreshortening", [True, False])
def test_the_twist_shortens_nothing(make, plant_of, foreshortening):
    plant = plant_of(make["arm"]([BAR | {"foreshortening": foreshortening}]))
    q = plant.straight([0.0])
    q[plant.coordinates.index("link1.twist.1")] = 0.3
    assert plant.tip(q) == pytest.approx([LENGTH, 0.0, 0.0], abs=1e-15)


@pytest.mark.slow_but("rod-elements", "rod-modes")
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", ARMS)
def test_the_straight_arm_has_the_inertia_of_its_rigid_twin(make, plant_of, name, kind):
    arm = make["arm"](ARMS[name], payload=PAYLOAD)
    flexible, rigid = plant_of(arm, kind), plant_of(arm.rigid)
    q = flexible.straight(np.linspace(0.4, -0.9, flexible.m))
    M = flexible.mass_matrix(q)[: flexible.m, : flexible.m]
    assert pytest.approx(rigid.mass_matrix(q[: rigid.n]), rel=1e-12) == M


@pytest.mark.parametrize("engine", ["recursion", "lagrange"])
def test_one_rigid_link_alone_has_the_inertia_of_its_sections(make, engine):
    link = {"joint": "revolute", "length": LENGTH, "mass_per_length": MASS}
    link |= {"rotary_inertia": {"y": 1e-3}, "torsion": {"polar_inertia": POLAR}}
    basis = BasisChoice(order=1)
    plant = assemble_plant(make["arm"]([link]), basis, engine=engine, interpreted=True)
    expected = MASS * LENGTH**3 / 3 + 1e-3 * LENGTH
    assert plant.mass_matrix([0.3]) == pytest.approx(expected, rel=1e-12)
    assert plant.energies([0.3], [2.0])[0] == pytest.approx(2 * expected, rel=1e-12)


def test_a_stiff_twist_is_none(make, plant_of):
    stiff = BAR | {"torsion": TORSION | {"GJ": 8e6}}
    none = BAR | {"torsion": {"polar_inertia": POLAR}}
    one, other = (plant_of(make["arm"]([x], payload=LOAD), "modes", 3) for x in (stiff, none))
    assert np.sort(locked(one))[:3] == pytest.approx(np.sort(locked(other)), rel=1e-4)


def test_damping_is_by_mode_of_the_clamped_rod(make, plant_of):
    plant = plant_of(make["arm"]([BAR | {"damping_ratio": [0.02, 0.03]}]))
    q, own = plant.straight([0.0]), slice(3, 5)
    M, D = plant.mass_matrix(q)[own, own], plant.damping(q)[own, own]
    w = np.pi * np.array([0.5, 1.5]) * np.sqrt(GJ / POLAR) / LENGTH
    assert plant.coordinates[own] == ("link1.twist.1", "link1.twist.2")
    expected = np.diag(2 * np.array([0.02, 0.03]) * w * np.diag(M))
    assert pytest.approx(expected, abs=1e-9 * expected.max()) == D


@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_parts_of_a_stiffness_are_modes_of_the_twist_too(make, kind):
    arm, basis = make["arm"]([BAR], payload=LOAD), BasisChoice(kind=kind, order=1)
    exact = assemble_plant(arm, basis, interpreted=True)
    assert next(p for p in exact.stiffness_parts if "twist" in p) == "link1.twist.1"
    wrong = wrong_plant(arm, basis, {k: 0.3 for k in exact.stiffness_parts if "twist" in k})
    q = exact.pose() + np.linspace(0.01, 0.02, exact.n)
    stiffer = assemble_plant(
        apply_settings(arm, ["link1.torsion.GJ=*1.3"]), basis, interpreted=True
    )
    assert wrong.elastic_force(q) == pytest.approx(stiffer.elastic_force(q), rel=1e-10)


def test_a_softer_arm_twists_more_easily(make):
    arm = make["arm"]([BAR])
    assert soften_arm(arm, 0.25).links[0].rigidities == {"z": EI / 4, "twist": GJ / 4}


@pytest.mark.parametrize("include", [[], ["M", "D"], ["J"], ["M", "J", "D", "R"]])
def test_of_a_tip_load_twist_has_the_inertia_about_the_line_alone(make, include):
    elbow = RIGID | {"dh": {"a": 0.5}}
    link = BAR | {"tip_load": {"reference_pose": {"joint2": np.pi / 2}, "include": include}}
    plant = assemble_plant(make["arm"]([link, elbow]), BasisChoice(order=1), interpreted=True)
    J = 0.4 * 0.5**3 / 3 if "J" in include else 0.0
    shapes, ratio = plant.bodies[0].planes["twist"], J / (POLAR * LENGTH)
    b = shapes.beta[0]
    assert np.cos(b) - ratio * b * np.sin(b) == pytest.approx(0, abs=1e-9 * (1 + ratio))


@pytest.mark.parametrize("kind", ["pinned-modes", "free-modes"])
def test_the_roots_of_loose_lines_do_not_turn_about_themselves(make, plant_of, kind):
    arm = make["arm"]([BAR])
    loose, clamped = (plant_of(arm, k).bodies[0].planes["twist"] for k in (kind, "modes"))
    assert loose is clamped
