"""Section 4.4 of Theodore and Ghosal: their algorithm, its counts and the claims about them."""

import casadi as ca
import numpy as np
import pytest

from examples.papers.theodore_ghosal import counts, equations
from examples.papers.theodore_ghosal.algorithm import (
    element_matrices,
    lay_chain,
    link_matrix,
    payload_matrix,
)
from examples.papers.theodore_ghosal.writings import (
    PAYLOAD,
    bare_arm,
    expanded,
    in_planes,
    shaped,
    writings,
)
from flexctl.model.record import BasisChoice
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import assemble_plant
from flexctl.plant.recursion import Recursion

HOLDS = {
    "section 4.4, why fewer",
    "section 4.4, equations",
    "section 4.4, first-order equations",
    "sections 4.4 and 5, simulation time",
}
OPEN = {"section 4.4, Book", "section 4.4, Li and Sankar"}


def mass_matrix(name, kind, q, payload=0.0):
    """Lower triangle of the recursion's mass matrix, and that of Algorithm 1."""
    arm = bare_arm(name)
    bodies = shaped(arm, kind, 2)
    arm = arm.model_copy(update={"payload": arm.payload.model_copy(update={"mass": payload})})
    chain = lay_chain(bodies)
    exact = Recursion(arm=arm, bodies=bodies, q=chain.q, v=chain.v).mass_matrix()
    exact = np.array(ca.Function("M", [chain.q], [exact])(q))
    small = np.array(link_matrix(chain)(q)).ravel()
    if payload:
        small = small + np.array(payload_matrix(chain, payload)(q)).ravel()
    return exact[np.tril_indices(len(q))], small


def joints(name, kind):
    """A straight arm at joints that no entry of M is zero for by accident."""
    n = sum(len(body.coordinates) for body in shaped(bare_arm(name), kind, 2))
    at = {"rr": [0.3, 0.7], "rrr": [0.3, 0.7, -0.4], "rp": [0.3, 0.7], "rrp": [0.3, 0.7, 0.9]}
    return np.array(at[name] + [0.0] * n)


@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize("name", ["rr", "rrr", "rp", "rrp"])
@pytest.mark.slow_but("rr-*", "rp-modes")
def test_algorithm_1_of_a_straight_arm_is_the_mass_matrix_of_the_recursion(name, kind):
    exact, small = mass_matrix(name, kind, joints(name, kind), PAYLOAD)

    assert small == pytest.approx(exact, rel=1e-10, abs=1e-12)


def test_small_rotations_are_wrong_in_the_first_order_of_a_bent_arm():
    # the tip's second-order shift has a first-order derivative by the coordinate itself
    q = joints("rr", "modes")
    sizes = []
    for bent in (1e-3, 2e-3):
        q[2] = bent
        sizes.append(np.abs(np.subtract(*mass_matrix("rr", "modes", q))).max())

    assert sizes[1] / sizes[0] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("name", ["rr", "rp"])
def test_the_elements_of_the_lines_add_up_to_them(name):
    chain = lay_chain(shaped(bare_arm(name), "elements", 2))
    q = joints(name, "elements") + 0.01
    whole = np.array(link_matrix(chain)(q)).ravel()
    parts = sum(np.array(one(q)).ravel() for one in element_matrices(chain, 2))
    hinge = np.zeros(len(whole))
    hinge[0] = bare_arm(name).links[0].joint_inertia

    assert parts + hinge == pytest.approx(whole, rel=1e-12, abs=1e-14)


def test_tip_coordinates_span_what_the_modes_span():
    (modes, tip), xi = (shaped(bare_arm("rr"), kind, 2) for kind in ("modes", "tip")), np.ones(1)
    ours, theirs = tip[0].planes["y"], modes[0].planes["y"]
    at = np.linspace(0, 1, 9)
    C = np.linalg.lstsq(theirs.value(at).T, ours.value(at).T, rcond=None)[0]

    assert C.T @ theirs.value(at) == pytest.approx(ours.value(at), abs=1e-12)
    assert ours.value(xi)[:, 0].tolist() == [1, 0]
    assert ours.slope(xi)[:, 0].tolist() == [0, 1]


def test_two_modes_in_tip_coordinates_cost_what_one_element_costs():
    assert writings("rr", "tip") == writings("rr", "elements", 1)


def test_the_writings_of_an_arm_are_counts_of_its_mass_matrix():
    plant = assemble_plant(bare_arm("rr"), BasisChoice(order=2), interpreted=True)
    found = count_operations(plant.casadi_functions["mass_matrix"])

    assert writings("rr", "modes").shared == (found.mul, found.add)


def test_the_planes_of_the_catalogues_arm_are_its_own():
    assert expanded(in_planes("rp", "z", "x")) == writings("rp", "modes").expanded


@pytest.fixture(scope="module")
def claims():
    found = [make() for make in (*counts.CLAIMS, *equations.CLAIMS)]
    return {claim.id: claim for claim in found}


@pytest.mark.slow  # the spatial arm in all writings and its laws: ten seconds
def test_no_claim_has_the_name_of_another(claims):
    assert len(claims) == len(counts.CLAIMS) + len(equations.CLAIMS)


@pytest.mark.slow  # the spatial arm in all writings and its laws: ten seconds
@pytest.mark.parametrize(
    ("verdict", "expected"), [("holds", HOLDS), ("cannot be checked", OPEN), ("differs", None)]
)
def test_every_claim_has_its_verdict(claims, verdict, expected):
    found = {name for name, claim in claims.items() if claim.verdict == verdict}

    assert found == (set(claims) - HOLDS - OPEN if expected is None else expected)


@pytest.mark.slow  # the spatial arm in all writings and its laws: ten seconds
@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        ("table 2, RRR", "modes_add", 0.99 * 376, 1.01 * 376),
        # elements beside modes: more where shared or multiplied out, fewer where written out
        ("table 2 and section 6, fewer operations", "shared_rrp", 1.2, 1.4),
        ("table 2 and section 6, fewer operations", "lagrange_rrp", 1.2, 1.3),
        ("table 2 and section 6, fewer operations", "expanded_rrp", 1.5, 1.6),
        ("table 2 and section 6, fewer operations", "tree_rrp", 0.2, 0.3),
        ("table 2 and section 6, fewer operations", "lagrange_tree_rrp", 0.2, 0.3),
        ("sections 4.4 and 5, simulation time", "frequency", 9, 10),
        ("sections 4.4 and 5, simulation time", "work", 14, 15),
        ("sections 4.4 and 6, real time", "law", 1.5, 1.6),
    ],
)
def test_the_numbers_behind_a_claim(claims, claim, number, low, high):
    assert low <= claims[claim].numbers[number] <= high


@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        # the paper's 405/168 and 909/366 of modes, which multiplying out comes near
        (counts.row_rr, "modes_mul", 0.96 * 405, 1.04 * 405),
        (counts.row_rr, "modes_add", 0.97 * 168, 1.03 * 168),
        (counts.payload, "modes_mul", 0.98 * 909, 1.02 * 909),
        (counts.payload, "modes_add", 0.97 * 366, 1.03 * 366),
        (counts.payload, "added_mul", 0.98 * 504, 1.02 * 504),
        (counts.row_rr, "elements_mul", 482, 482),
        (counts.row_rr, "pieces_mul", 160, 160),
        (counts.tip_sums, "tip_mul", 234, 234),
        (counts.tip_sums, "shared_tip_mul", 32, 32),
        (equations.equations, "off", 0, 0),
        (equations.frequency_equations, "equations", 3, 3),
        (equations.frequency_equations, "further", 0, 0),
        (equations.first_order, "more", 8, 8),
        (equations.first_order, "without", 16, 16),
    ],
)
def test_the_numbers_behind_a_claim_of_the_planar_arm(claim, number, low, high):
    assert low <= claim().numbers[number] <= high
