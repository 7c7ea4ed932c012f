"""Arms whose links vary along themselves, carry masses, shear and turn."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from flexctl.catalogue import BasisChoice
from flexctl.plant import assemble_plant

CourseWitness = runpy.run_path(str(Path(__file__).with_name("course_witness.py")))["CourseWitness"]
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


@pytest.fixture(params=CASES, ids="-".join)
def pair(request, build):
    name, kind = request.param
    arm = build["arm"](ARMS[name], (2.0, -9.0, 3.0), PAYLOAD)
    order = 2 if kind == "modes" else 3
    plant = assemble_plant(arm, BasisChoice(kind=kind, order=order), interpreted=True)
    return plant, CourseWitness(arm, kind, order)


@pytest.mark.parametrize("seed", [1, 2])
def test_kinetic_energy_is_the_sum_over_moving_material_points(pair, random_state, seed):
    plant, points = pair
    q, v, _ = random_state(plant, seed)
    assert plant.energies(q, v)[0] == pytest.approx(points.kinetic(q, v), rel=1e-9)


def test_every_entry_of_the_mass_matrix_is_that_of_the_points(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 3)
    M = points.mass_matrix(q)
    scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))
    assert np.abs((plant.mass_matrix(q) - M) / scale).max() < 1e-9


def test_strain_energy_is_that_of_bending_and_shear(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 4)
    assert plant.energies(q, v)[1] == pytest.approx(np.real(points.strain(q)), rel=1e-9)


def test_gravity_acts_on_every_point(pair, random_state):
    plant, points = pair
    q, v, _ = random_state(plant, 5)
    c = points.gradient(points.weight_energy, q)
    assert plant.energies(q, v)[2] == pytest.approx(points.weight_energy(q).real, rel=1e-9)
    assert plant.gravity(q) == pytest.approx(c, abs=1e-9 * np.abs(c).max())


def test_tip_is_where_the_points_end(pair, random_state):
    plant, points = pair
    q, _, _ = random_state(plant, 6)
    assert plant.tip(q) == pytest.approx(points.tip(q)[1].real, abs=1e-13)
