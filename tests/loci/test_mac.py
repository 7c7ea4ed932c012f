"""Branches of one discretisation beside those of another that move alike."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.beam.matrices import assemble_matrices
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loci.family import trace_loci
from flexctl.loci.mac import match_branches, match_fields
from flexctl.loci.sources import at_rest, motion_fields
from flexctl.loop.closed_loop import close_around
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant

TORSION = "link2.torsion={ GJ = 876.3, polar_inertia = 9.12e-5 }"
JOINTS = np.array([0.3, -0.4, 0.7])


@pytest.mark.parametrize("basis", [("modes", 2), ("elements", 1)])
@pytest.mark.parametrize(
    ("body", "direction"), [(1, "y"), (1, "z"), (1, "twist"), (2, "x"), (2, "y")]
)
def test_the_square_of_a_field_is_that_in_the_mass_matrix_of_the_line(basis, body, direction):
    choice = BasisChoice.model_validate(dict(zip(("kind", "order"), basis, strict=True)))
    arm = apply_settings(load_model("theodore-ghosal-rrp"), [TORSION])
    plant = assemble_plant(arm, choice, interpreted=True)
    own = [f"link{body + 1}.{direction}." in name for name in plant.coordinates]
    at = np.flatnonzero(own)
    F = motion_fields(plant, JOINTS, 2 * plant.n + 3)
    beam = plant.bodies[body].beam(JOINTS[2] if body == 2 else 1.0)
    shapes = plant.bodies[body].planes[direction]
    expected = assemble_matrices(beam, direction, shapes).mass

    assert F.shape[1] == 2 * plant.n + 3
    assert F[:, at].T @ F[:, at] == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert not F[:, plant.n :].any()


@pytest.mark.parametrize("basis", [("modes", 2), ("elements", 1)])
def test_a_line_that_twists_counts_with_its_polar_inertia(basis):
    bar = {"GJ": 300.0, "polar_inertia": {"x": [0.0, 1.0], "value": [2e-3, 1e-3]}}
    table = load_model("theodore-ghosal-rrp").table()
    links = [table["link"][0], table["link"][1] | {"torsion": bar}, table["link"][2]]
    choice = BasisChoice.model_validate(dict(zip(("kind", "order"), basis, strict=True)))
    plant = assemble_plant(
        Arm.model_validate(table | {"name": "x", "link": links}), choice, interpreted=True
    )
    at = [k for k, name in enumerate(plant.coordinates) if "twist" in name]
    F = motion_fields(plant, JOINTS, 2 * plant.n)
    body = plant.bodies[1]
    xi, w = np.polynomial.legendre.leggauss(12)
    psi = body.planes["twist"].rotation((xi + 1) / 2)  # at an angle of 1 rad, power 1
    r = 2e-3 - 1e-3 * (xi + 1) / 2

    assert F[:, at].T @ F[:, at] == pytest.approx(body.link.length * (psi * w / 2 * r) @ psi.T)


def test_joints_count_with_the_inertia_that_they_see():
    arm = load_model("theodore-ghosal-rrp")
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    F = motion_fields(plant, JOINTS, 2 * plant.n)
    seen = np.diag(plant.mass_matrix(plant.straight(JOINTS)))[:3]

    assert np.diag(F.T @ F)[:3] == pytest.approx(seen)


def test_what_is_permuted_and_turned_is_found_again():
    rng = np.random.default_rng(6)
    first = rng.standard_normal((9, 5)) + 1j * rng.standard_normal((9, 5))
    order = np.array([3, 0, 4, 1, 2])
    second = np.exp(1j * np.arange(5)) * (2 * first)[:, order]
    columns, mac = match_fields(first, second)

    assert columns.tolist() == np.argsort(order).tolist()
    assert mac == pytest.approx(np.ones(5))


def test_what_has_no_counterpart_is_left_alone():
    columns, mac = match_fields(np.eye(3), np.eye(3)[:, [2]])

    assert columns.tolist() == [-1, -1, 0]
    assert mac.tolist() == [0, 0, 1]


def traced(kind, order, *, poses=3):
    basis = BasisChoice.model_validate({"kind": kind, "order": order})
    arm = load_model("planar-two-link")
    controller = design_controller(arm, load_design("two-link-decoupling"), basis, interpreted=True)
    closed = close_around(controller, controller.plant)
    end = controller.reference.duration
    return trace_loci(at_rest(closed), np.linspace(0, end, poses), fields=True)


@pytest.fixture(scope="module")
def coarse():
    return traced("elements", 1)


@pytest.fixture(scope="module")
def fine():
    return traced("elements", 2)


def test_a_discretisation_is_alike_to_itself(fine):
    matches = match_branches(fine, fine)

    assert matches
    assert all((match.ratio == 1).all() for match in matches)
    assert all(match.mac == pytest.approx(np.ones(3)) for match in matches)


def test_a_finer_mesh_has_the_slow_branches_a_little_lower(coarse, fine):
    matches = match_branches(coarse, fine)
    slow = [match.ratio for match in matches[:2]]

    assert len(matches) == 4  # two lines of one element: four pairs that swing
    assert np.max(slow) < 1  # stiffer by Rayleigh and Ritz, under a law that decouples the joints
    assert np.min(slow) > 0.98


@pytest.mark.parametrize("k", [0, 2])
def test_the_values_are_those_of_the_branches_named(coarse, fine, k):
    for_each = [
        (fine.branches[m.index[k]].values[k], m.values[k]) for m in match_branches(coarse, fine)
    ]
    expected, values = zip(*for_each, strict=True)

    assert values == expected


def test_a_branch_that_nothing_is_alike_has_no_ratio(coarse, fine):
    noise = np.random.default_rng(3).standard_normal(fine.fields.shape)
    matches = match_branches(coarse, replace(fine, fields=noise.astype(complex)))

    assert all(np.isnan(match.ratio).all() for match in matches)
    assert all((match.index == -1).all() and (match.mac < 0.5).all() for match in matches)


def test_another_grid_is_refused(coarse):
    with pytest.raises(InputError, match="the same values of the parameter"):
        match_branches(coarse, traced("elements", 1, poses=2))


def test_missing_fields_are_refused(coarse):
    with pytest.raises(InputError, match="branches with their fields"):
        match_branches(coarse, replace(coarse, fields=None))
