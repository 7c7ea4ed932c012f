"""Claims of [TG95]: its verdicts, and the numbers of section 4.3."""

import numpy as np
import pytest

from examples.papers import claims_of
from examples.papers.theodore_ghosal import branches, motion, stiffness
from examples.papers.theodore_ghosal.arm import linear, plant
from flexctl.robustness.stiffness.driven_mass import split_mass

pytestmark = pytest.mark.slow  # half a minute of margins

ELSEWHERE = {branches.__name__, motion.__name__}  # in a file of their own
HOLDS = {
    "abstract and section 6, stiffness",
    "section 1.1, clamped and pinned",
    "section 1.1, equivalence",
    "figure 1, equations 1 to 6",
    "equations 9 to 11",
    "section 2.1.1, configuration",
    "figure 2, equations 12 to 14",
    "equation 36",
    "equation 37",
    "section 4, m elements",
    "section 4, frequencies of elements",
    "section 4.1, banded matrices",
    "section 4.1, convergence of elements",
    "section 4.2, neglecting",
    "equations 40 to 44",
    "section 4.2, solved together",
    "equations 45, 46",
    "equations 49, 50",
    "section 4.3, remark 1",
    "section 4.4, why fewer",
    "section 4.4, equations",
    "section 4.4, first-order equations",
    "sections 4.4 and 5, simulation time",
    "table 3, links",
    "Algorithm 3, S2.1",
    "appendix, definiteness",
}
OPEN = {
    "section 4.3, second loop",
    "section 4.4, Book",
    "section 4.4, Li and Sankar",
}


@pytest.fixture(scope="module")
def claims():
    makers = [make for make in claims_of("theodore-ghosal") if make.__module__ not in ELSEWHERE]
    found = [make() for make in makers]
    return {claim.id: claim for claim in found}


def test_no_claim_has_the_name_of_another(claims):
    assert len(claims) == sum(m.__module__ not in ELSEWHERE for m in claims_of("theodore-ghosal"))


@pytest.mark.parametrize(
    ("verdict", "expected"), [("holds", HOLDS), ("cannot be checked", OPEN), ("differs", None)]
)
def test_every_claim_has_its_verdict(claims, verdict, expected):
    found = {name for name, claim in claims.items() if claim.verdict == verdict}

    assert found == (set(claims) - HOLDS - OPEN if expected is None else expected)


def test_what_differs_says_why(claims):
    assert all(claim.why for claim in claims.values() if claim.verdict != "holds")


@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        ("abstract and section 6, stiffness", "upper", 2.5e-3, 2.6e-3),
        ("abstract and section 6, stiffness", "lower", -1, -1),
        # Table 1 of the paper, 1 and 2 elements beside its exact values
        ("section 4.3, elements", "mode_1_element_1", 209.62 / 208.65, 209.64 / 208.63),
        ("section 4.3, elements", "mode_2_element_1", 2065.3 / 1307.6, 2065.5 / 1307.4),
        ("section 4.3, elements", "mode_2_elements_2", 1318.5 / 1307.6, 1318.7 / 1307.4),
        ("section 4.3, elements", "static", 0, 1e-12),
        ("equation 48", "revolute", 0, 1e-9),
        ("equations 49, 50", "off", 0, 1e-11),
        ("section 4.3, remark 1", "least", 0.01, 0.03),
        ("section 4.3, remark 2", "skew", 0.5, 2),
        ("section 4.3, remark 2", "least_symmetric", -5, -3),
        ("section 4.3, remark 2", "least", -1e-12, 1e-12),
        ("section 4.3, remark 2", "imaginary", 0, 1e-12),
        ("section 4.3, remark 2, rank", "along", 0.1, 0.2),
        ("section 4.3, remark 2, rank", "rigid", 0, 1e-12),
        ("section 4.3, remark 3", "exact", 0.3, 0.35),
        ("section 4.3, lemma", "alpha_star", 0.1479, 0.1480),
        ("section 4.3, lemma", "undamped", 0, 0),
        ("section 4.3, lemma", "damped", 2.5e-3, 2.6e-3),
        ("section 4.3, proof of the lemma", "growth", 5, 7),
        ("section 4.3, proof of the lemma", "determinant", 0, 1e-9),
        ("section 4.3, second loop", "exact", 0.13, 0.14),
        ("section 4.3, second loop", "fine", 0.148, 0.1482),
        ("section 4.3, second loop", "gentler", 0.05, 0.07),
        ("section 4.3, second loop", "bolder", 0.7, 0.9),
        ("section 4.3, care", "gentle", 4.0e-3, 4.2e-3),
        ("section 4.3, tolerance", "exact_1", 3.1e-3, 3.2e-3),
        ("section 4.3, tolerance", "exact_4", 1.5e-3, 1.6e-3),
        ("section 4.3, tolerance", "elements_6", 31.8, 31.9),
    ],
)
def test_the_numbers_behind_a_claim(claims, claim, number, low, high):
    assert low <= claims[claim].numbers[number] <= high


def test_the_force_that_48_lacks_is_the_work_of_the_links_stiffness_as_it_grows(claims):
    own = plant()
    q = own.straight(stiffness.poses()[:, 5])
    q[own.m :: 2] = 0.01
    step = 1e-4 * np.eye(own.n)[2]
    strain = [own.energies(q + x, np.zeros(own.n))[1] for x in (step, -step)]

    expected = (1 + stiffness.ALPHA) * (strain[0] - strain[1]) / 2e-4
    assert claims["equation 48"].numbers["sliding"] == pytest.approx(expected, rel=1e-5)


def test_the_growth_without_damping_is_that_of_the_formula(claims):
    found = claims["section 4.3, lemma"].numbers

    assert found["rate"] == pytest.approx(found["formula"], rel=1e-8)


@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_lambda_max_grows_with_the_order(claims, kind):
    found = [claims["section 4.3, tolerance"].numbers[f"{kind}_{n}"] for n in range(1, 7)]

    assert (np.diff(found) > 0).all()


def test_the_condensed_stiffness_of_a_mesh_is_that_of_a_bar_bent_at_its_end():
    found, link = stiffness.condensed(5), stiffness.arm().links[1]

    compliance = np.linalg.inv(found) * link.EI["y"]
    expected = [[link.length**3 / 3, link.length**2 / 2], [link.length**2 / 2, link.length]]
    assert compliance == pytest.approx(np.array(expected), rel=1e-9)


def test_at_rest_u_accelerates_joints_by_a_gain_that_is_infinite_at_alpha_star(claims):
    # M r'' = tau - ... of the arm held in balance: f follows statically, K f = -M_fr r''
    model, drives = linear(), plant().drives
    mass = split_mass(model.M, drives)
    K = mass.blocks(model.K)[1]
    L = np.linalg.solve(mass.S_r, mass.F.T @ K @ np.linalg.solve(K, mass.M_fr))
    star = claims["section 4.3, lemma"].numbers["alpha_star"]

    singular = np.linalg.svd(np.eye(len(drives)) - star * L, compute_uv=False)
    assert singular[-1] < 1e-9 * singular[0]
