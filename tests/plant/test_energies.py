"""Energies and equations of motion against sums over moving material points."""

import numpy as np
import pytest

CASES = [
    ("rrp-file", "modes", 2),
    ("rrp-file", "elements", 2),
    ("rrp", "modes", 2),
    ("rrp", "elements", 1),
    ("two-link", "modes", 3),
    ("two-link-file", "modes", 2),
    ("hub-file", "elements", 3),
    ("spatial", "modes", 2),
    ("spatial", "elements", 1),
    ("sliding-first", "modes", 2),
    ("sliding-first", "elements", 2),
    ("rigid-sliding", "modes", 1),
]
SEEDS = [1, 2, 3]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def pair(request, plant_named, witness_of):
    return plant_named(*request.param), witness_of(*request.param)


@pytest.mark.slow_but("rrp-file-elements-2-2", "rrp-file-elements-2-3", "rrp-file-modes-2-3")
@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_is_the_sum_over_moving_material_points(pair, random_state, seed):
    plant, points = pair
    q, v, _ = random_state(plant, seed)

    assert plant.energies(q, v)[0] == pytest.approx(points.kinetic(q, v), rel=1e-9)


@pytest.mark.slow_but("two-link-file-modes-2", "rigid-sliding-modes-1", "hub-file-elements-3")
def test_every_entry_of_the_mass_matrix_is_that_of_the_points(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 4)
    M = points.mass_matrix(q)
    scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))  # units differ from entry to entry

    assert np.abs((plant.mass_matrix(q) - M) / scale).max() < 1e-9


@pytest.mark.slow_but("rigid-sliding-modes-1-2", "rigid-sliding-modes-1-3", "hub-file-elements-3-2")
@pytest.mark.parametrize("seed", SEEDS)
def test_strain_energy_is_that_of_the_curvature(pair, random_state, seed):
    plant, points = pair
    q, v, _ = random_state(plant, seed)

    assert plant.energies(q, v)[1] == pytest.approx(np.real(points.strain(q)), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_gravitational_energy_is_the_sum_over_points(pair, random_state, seed):
    plant, points = pair
    q, v, _ = random_state(plant, seed)

    expected = points.weight_energy(q).real
    assert plant.energies(q, v)[2] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.slow_but("rigid-sliding-modes-1", "hub-file-elements-3", "two-link-file-modes-2")
def test_gravity_forces_are_the_gradient_over_points(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 5)
    c = points.gradient(points.weight_energy, q)

    assert plant.gravity(q) == pytest.approx(c, abs=1e-9 * np.abs(c).max())


def test_elastic_forces_are_the_gradient_of_the_strain_also_on_sliding_joints(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 6)
    k = points.gradient(points.strain, q)
    scale = np.maximum(np.abs(k), 1e-6 * np.abs(k).max())

    assert np.abs((plant.elastic_force(q) - k) / np.where(scale > 0, scale, 1)).max() < 1e-9


def test_tip_is_where_the_points_end(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 7)

    assert plant.tip(q) == pytest.approx(points.tip(q)[1].real, abs=1e-13)


def test_tip_jacobian_is_the_velocity_of_the_tip(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 8)
    velocity = points.tip(q + 1e-30j * v)[1].imag / 1e-30

    assert plant.tip_jacobian(q) @ v == pytest.approx(velocity, abs=1e-12)


def test_line_tips_are_the_ends_of_the_lines(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 9)
    flexible = [j for j, link in enumerate(plant.arm.links) if link.flexible]
    ends = np.array([end[1].real for _, _, end, _, _ in points.walk(q)]).T
    found = plant.line_tips(q).reshape(3, -1)

    assert found[:, flexible] == pytest.approx(ends[:, flexible], abs=1e-13)


def test_deflections_are_those_of_the_shapes_at_the_line_ends(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 10)
    expected = []
    for j, root, end, _, _ in points.walk(q):
        local = (root[0].T @ (end[1] - root[1])).real
        expected += [local["xyz".index(d)] for d in plant.arm.links[j].EI]

    assert plant.deflections(q)[0] == pytest.approx(np.array(expected), abs=1e-13)


@pytest.mark.slow_but("hub-file-elements-3-12", "hub-file-elements-3-13", "hub-file-elements-3-15")
@pytest.mark.parametrize("seed", range(11, 16))
def test_mass_matrix_is_symmetric_and_positive_definite(pair, random_state, seed):
    plant, _ = pair
    M = np.atleast_2d(plant.mass_matrix(random_state(plant, seed)[0]))

    assert pytest.approx(M.T, abs=1e-13 * np.abs(M).max()) == M
    assert np.linalg.eigvalsh(M)[0] > 0


def mass_derivatives(plant, q):
    """dM/dq_k (n, n, n), by central differences of order six: error about 1e-12."""
    h, weights = 2e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}

    def along(k):
        e = h * np.eye(len(q))[k]
        M = plant.mass_matrix
        return sum(w / h * (M(q + i * e) - M(q - i * e)) for i, w in weights.items())

    return np.array([along(k) for k in range(len(q))])


def test_bias_is_that_of_the_christoffel_symbols(pair, random_state):
    plant, _ = pair
    q, v, _ = random_state(plant, 17)
    dM = mass_derivatives(plant, q)
    h = np.einsum("kij,j,k->i", dM, v, v) - np.einsum("ijk,j,k->i", dM, v, v) / 2

    assert plant.bias(q, v) == pytest.approx(h, abs=1e-9 * np.abs(h).max())


def test_coriolis_forces_do_the_work_of_the_changing_mass(pair, random_state):
    # v' (M' - 2 C) v = 0 with h = C v
    plant, _ = pair
    q, v, _ = random_state(plant, 18)
    rate = np.einsum("kij,i,j,k->", mass_derivatives(plant, q), v, v, v)
    scale = np.abs(v) @ np.abs(plant.bias(q, v))

    assert v @ plant.bias(q, v) == pytest.approx(rate / 2, abs=1e-9 * scale)


def test_inverse_dynamics_is_the_sum_of_its_terms(pair, random_state):
    plant, _ = pair
    q, v, a = random_state(plant, 19)
    terms = [plant.mass_matrix(q) @ a, plant.bias(q, v), plant.damping(q) @ v]
    terms += [plant.gravity(q), plant.elastic_force(q)]
    scale = np.abs(terms).sum(0).max()

    assert plant.inverse_dynamics(q, v, a) == pytest.approx(sum(terms), abs=1e-12 * scale)


@pytest.mark.slow_but("two-link-file-modes-2-3", "hub-file-elements-3-2", "rigid-sliding-modes-1-2")
@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_undoes_inverse_dynamics(pair, random_state, seed):
    plant, _ = pair
    q, v, _ = random_state(plant, seed)
    tau = np.random.default_rng(seed).normal(size=plant.m) * 5
    a = plant.forward_dynamics(q, v, tau)
    force = plant.inverse_dynamics(q, v, a)
    sizes = np.abs(plant.mass_matrix(q)) @ np.abs(a)  # what cancels in each row

    assert np.abs((force - plant.B @ tau) / (sizes + 1)).max() < 1e-10


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_undoes_forward_dynamics(pair, random_state, seed):
    # accelerations that joint torques can cause: those of forward dynamics under any torque
    plant, _ = pair
    q, v, _ = random_state(plant, seed)
    tau = np.random.default_rng(seed).normal(size=plant.m) * 5
    a = plant.forward_dynamics(q, v, tau)
    again = plant.forward_dynamics(q, v, plant.inverse_dynamics(q, v, a)[: plant.m])

    assert again == pytest.approx(a, abs=1e-10 * np.abs(a).max())
