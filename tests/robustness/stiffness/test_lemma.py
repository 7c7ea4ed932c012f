"""The lemma on overestimated stiffness, against eigenvalues, closed forms and limits of meshes."""

from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from flexctl.errors import ComputationError, InputError
from flexctl.model.link import RigidBody
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import LinearPlant, linearise
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.driven_mass import split_mass
from flexctl.robustness.stiffness.lemma import (
    lemma_along,
    lemma_of,
    lemma_of_true_arm,
    stiffness_lemma,
)
from tests.random_arms import random_arm, random_pose

pytestmark = pytest.mark.usefixtures("no_compiler")

RIGID_JOINTS = [
    (kind, basis, seed)
    for kind in ("planar", "spatial", "sliding")
    for basis in (("modes", 2), ("elements", 2))
    for seed in (0, 1)
]
RIGID_JOINTS = [
    pytest.param(*one, marks=[pytest.mark.slow] * (one[2] == 1)) for one in RIGID_JOINTS
]
HUB, LINE, PAYLOAD = 0.1, 0.54, 0.25  # of the single link: inertia, kg/m at 1 m, mass


@pytest.fixture(scope="module")
def linear_of(plant_of):
    """linear_of(kind, (basis, order), seed): plant and its linear model, made once."""

    @cache
    def build(kind, basis, seed):
        arm = random_arm(kind, seed)
        plant = plant_of(arm, *basis)
        return plant, linearise(plant, plant.straight(random_pose(arm, seed)))

    return build


@pytest.fixture(scope="module")
def lambda_of(make, plant_of):
    """lambda_of(hub, basis, order): lambda_max of one link with a payload, hub inertia `hub`."""

    @cache
    def build(hub, basis, order, payload=PAYLOAD):
        arm = make["single"](hub=hub).model_copy(update={"payload": RigidBody(mass=payload)})
        return stiffness_lemma(plant_of(arm, basis, order)).lambda_max

    return build


def blocks(linear, drives):
    """M_rr, M_rf, M_ff, K_ff as [TG95] writes them."""
    f = np.setdiff1d(np.arange(len(linear.M)), drives)
    r, M = list(drives), linear.M
    grids = [(r, r), (r, f), (f, f)]
    return (*(M[np.ix_(*grid)] for grid in grids), linear.K[np.ix_(f, f)])


def printed_H(linear, drives):
    """H of (50) by inverses."""
    M_rr, M_rf, M_ff, _ = blocks(linear, drives)
    P = M_rf.T @ np.linalg.inv(M_rr) @ M_rf
    return P @ np.linalg.inv(M_ff - P)


# The plain lemma


@pytest.mark.slow_but("planar-basis0-0", "planar-basis2-0")
@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
def test_H_is_that_of_the_paper(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    printed = printed_H(linear, plant.drives)

    H = lemma_of(linear, plant.drives).H
    assert np.abs(H - printed).max() < 1e-9 * np.abs(printed).max()


@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
def test_eigenvalues_are_those_of_P_and_its_schur_complement(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    M_rr, M_rf, M_ff, _ = blocks(linear, plant.drives)
    P = M_rf.T @ np.linalg.solve(M_rr, M_rf)
    expected = scipy.linalg.eigh(P, M_ff - P, eigvals_only=True)[-plant.m :]

    assert split_mass(linear.M, plant.drives).eigenvalues == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
def test_H_M_is_H_times_the_mass_of_the_links_symmetric_and_semidefinite(
    linear_of, kind, basis, seed
):
    plant, linear = linear_of(kind, basis, seed)
    M_ff = blocks(linear, plant.drives)[2]
    product = printed_H(linear, plant.drives) @ M_ff
    mass = split_mass(linear.M, plant.drives)
    H_M = mass.M_fr @ np.linalg.solve(mass.S_r, mass.M_fr.T)
    d = np.sqrt(np.diag(H_M))

    assert np.abs(H_M - product).max() < 1e-9 * np.abs(product).max()
    assert np.linalg.eigvalsh((H_M + H_M.T) / 2 / np.outer(d, d))[0] > -1e-13 * len(H_M)


@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
def test_alpha_star_is_where_the_block_diverges(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    K = blocks(linear, plant.drives)[3]
    H = printed_H(linear, plant.drives)
    L = np.linalg.cholesky(K)  # (I - alpha H) K is similar to I - alpha L^-1 H L in any scaling
    similar = scipy.linalg.solve_triangular(L, H @ L, lower=True)

    def lowest(alpha):
        return np.linalg.eigvals(np.eye(len(K)) - alpha * similar).real.min()

    found = lemma_of(linear, plant.drives)
    exact = scipy.optimize.bisect(lowest, 0.1 * found.alpha_star, 3 * found.alpha_star, rtol=1e-12)
    assert found.loss == "divergence"
    assert found.alpha_star == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
@pytest.mark.parametrize("side", [-1, 1])
def test_the_block_itself_changes_sides_at_alpha_star(linear_of, kind, basis, seed, side):
    plant, linear = linear_of(kind, basis, seed)
    _, _, M_ff, K = blocks(linear, plant.drives)
    alpha = (1 + 1e-6 * side) * lemma_of(linear, plant.drives).alpha_star
    squares = np.linalg.eigvals(
        np.linalg.solve(M_ff, K - alpha * printed_H(linear, plant.drives) @ K)
    )

    assert np.abs(squares.imag).max() < 1e-9 * np.abs(squares).max()
    assert (squares.real > 0).all() == (side < 0)


def test_coordinates_of_very_different_size_change_nothing(linear_of):
    plant, linear = linear_of("sliding", ("modes", 2), 0)
    d = np.geomspace(1e-3, 1e3, plant.n)
    scaled = split_mass(linear.M * np.outer(d, d), plant.drives)

    expected = split_mass(linear.M, plant.drives).eigenvalues
    assert scaled.eigenvalues == pytest.approx(expected, rel=1e-11)


def test_assumptions_say_what_does_not_hold(make, plant_of):
    lemma = stiffness_lemma(plant_of(make["two-link"]((0.0, -9.81, 0.0)), "modes", 2))
    held = {assumption.text.split(",")[0]: assumption.holds for assumption in lemma.assumptions}

    assert held["gravity adds no stiffness"] is False
    assert held["the error is proportional to the stiffness"] is True
    assert held["no stiffness is underestimated"] is True
    assert held["joint errors stay zero: the flexible block is considered alone"] is False


# Hub mass and meshes


def root_inertia():
    """Inertia [of rho h^3] of an infinite mesh that turns at its root with all else following.

    A cubic element cannot bend within: Hermite's mass of the unit element, passed from element to
    element until it is stationary.
    """
    A, B = np.array([[156, 22], [22, 4]]), np.array([[54, -13], [13, -3]])
    C = np.array([[156, -22], [-22, 4]])
    X = np.zeros((2, 2))
    for _ in range(100):
        X = (A - B @ np.linalg.solve(C + 420 * X, B.T)) / 420
    return X[1, 1]


def inertia_of_the_link(payload=PAYLOAD):
    return LINE / 3 + payload


@pytest.mark.parametrize("payload", [0.0, PAYLOAD])
@pytest.mark.parametrize("hub", [0.0, 1e-3, HUB, 10.0])
@pytest.mark.parametrize("order", [4, 7, 12])
@pytest.mark.slow_but("4-*")
def test_of_elements_lambda_is_that_of_a_hub_heavier_by_what_the_first_cannot_follow(
    lambda_of, hub, order, payload
):
    # what the end of the mesh changes falls by 0.08 per element; 1e-9: round-off of a massless hub
    stays = hub + root_inertia() * LINE / order**3
    expected = (hub + inertia_of_the_link(payload)) / stays - 1

    found = lambda_of(hub, "elements", order, payload)
    assert found == pytest.approx(expected, rel=8 * 0.08**order + 1e-9)


def test_with_a_massless_hub_lambda_grows_as_the_cube_of_the_elements(lambda_of):
    # from 6 on past the coarse end, and far below the 1e13 at which round-off would show
    n = np.array([6, 8, 16, 32])
    found = [1 + lambda_of(0.0, "elements", k) for k in n.tolist()]

    assert np.polyfit(np.log(n), np.log(found), 1)[0] == pytest.approx(3, abs=1e-5)


@pytest.mark.slow_but("modes")
@pytest.mark.parametrize("basis", ["elements", "modes"])
def test_with_a_hub_lambda_tends_to_the_ratio_of_inertias_with_the_third_power(lambda_of, basis):
    # from 4 on past the coarse end; errors of 1e-2 to 1e-5 of the limit are above round-off
    n, limit = np.array([4, 8, 16, 24]), inertia_of_the_link() / HUB
    off = limit - np.array([lambda_of(HUB, basis, k) for k in n.tolist()])

    assert (off > 0).all()
    assert -np.polyfit(np.log(n), np.log(off), 1)[0] == pytest.approx(3, abs=0.03)


@pytest.mark.parametrize("order", [1, 3, 8])
def test_of_modes_what_cannot_follow_is_the_rest_of_a_series(lambda_of, order):
    # clamped and free, int xi psi_k = 2/b_k^2 with cos b cosh b = -1; the squares sum up to 1/3
    brackets = [(k * np.pi, (k + 1) * np.pi) for k in range(order)]
    b = np.array(
        [scipy.optimize.brentq(lambda b: np.cos(b) + 1 / np.cosh(b), *x) for x in brackets]
    )
    stays = HUB + LINE * (1 / 3 - 4 * (b**-4.0).sum())

    expected = (HUB + inertia_of_the_link(0.0)) / stays - 1
    assert lambda_of(HUB, "modes", order, 0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(
    ("second_hub", "J"), [(0.0, (0.3, 0.1)), (0.2, (0.3, 0.1)), (0.2, (0.05, 0.4))]
)
def test_of_two_planar_links_only_what_turns_with_the_joints_alone_is_left(
    make, plant_of, second_hub, J
):
    # link 2's hub follows the end of link 1, whatever its inertia; the first hub has nothing before
    links = [
        {"joint": "revolute", "length": 0.7, "mass_per_length": 0.4, "EI": {"y": 9.0}}
        | {"joint_inertia": J[k], "hub": {"inertia": [0, 0, (0.02, second_hub)[k]]}}
        for k in range(2)
    ]
    plant = plant_of(make["arm"](links, payload={"mass": 0.2}), "elements", 12)
    S_r = split_mass(plant.mass_matrix(plant.straight(np.array([0.3, 0.9]))), plant.drives).S_r

    # what the first element of every link cannot follow is 4e-7
    assert S_r == pytest.approx(np.diag([J[0] + 0.02, J[1]]), abs=2e-6)


# The general form


def hand_made(M, K, K_elastic=None):
    """Linear plant of one drive, in row 0."""
    n = len(M)
    return LinearPlant(
        q0=np.zeros(n),
        tau0=np.zeros(1),
        M=M,
        D=np.zeros((n, n)),
        K=K,
        K_elastic=K if K_elastic is None else K_elastic,
        B=np.eye(n)[:, :1],
        outputs=np.zeros((1, 2 * n)),
        coordinates=tuple(f"x{k}" for k in range(n)),
        actuators=("joint1",),
        output_names=("joint1",),
    )


TWO_MASSES = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.0], [0.4, 0.0, 1.0]])


def two_modes_and_error(d):
    """Two masses at one drive with stiffness 1 and 2, and errors d (2,)."""
    return hand_made(TWO_MASSES, np.diag([0.0, 1.0, 2.0])), np.diag([0.0, *d])


def roots_of_discriminant(d):
    """Real t at which K - t H dK of the two masses has a double eigenvalue: a quadratic in t."""
    H = printed_H(hand_made(TWO_MASSES, np.diag([0.0, 1.0, 2.0])), (0,))
    G = H * np.asarray(d)
    trace, determinant = np.poly1d([-np.trace(G), 3.0]), np.poly1d([0])
    entries = [[np.poly1d([-G[i, j], (i == j) * (1.0 + i)]) for j in (0, 1)] for i in (0, 1)]
    determinant = entries[0][0] * entries[1][1] - entries[0][1] * entries[1][0]
    return np.roots(trace * trace - 4 * determinant), np.roots(determinant)


@pytest.mark.parametrize("d", [(-1.0, 1.0), (-2.0, 0.7), (-0.3, 3.0), (-5.0, 5.0)])
def test_flutter_of_two_modes_is_where_the_discriminant_vanishes(d):
    linear, dK = two_modes_and_error(d)
    doubles, zeros = roots_of_discriminant(d)
    first = min(t.real for t in doubles if t.real > 0 and abs(t.imag) < 1e-12)
    lemma = lemma_of(linear, (0,), dK)

    assert lemma.loss == "flutter"
    assert lemma.alpha_star == pytest.approx(first, rel=1e-9)
    assert not [t for t in zeros if abs(t.imag) < 1e-12 and 0 < t.real < first]


@pytest.mark.parametrize("d", [(1.0, 0.2), (0.1, 1.0), (1.0, -0.1), (2.0, 4.0)])
def test_divergence_of_two_modes_is_where_the_determinant_vanishes(d):
    linear, dK = two_modes_and_error(d)
    _, zeros = roots_of_discriminant(d)
    lemma = lemma_of(linear, (0,), dK)

    assert lemma.loss == "divergence"
    assert lemma.alpha_star == pytest.approx(min(t.real for t in zeros if t.real > 0), rel=1e-12)
    assert lemma.alpha_star == pytest.approx(1 / lemma.lambda_max)


def test_stiffness_that_is_underestimated_alone_is_never_lost():
    linear, dK = two_modes_and_error((-1.0, -1.0))
    lemma = lemma_of(linear, (0,), dK)

    assert (lemma.loss, lemma.alpha_star, lemma.lambda_max) == ("none", np.inf, 0.0)


def harmless(linear, drives, dK, t):
    """Whether all eigenvalues of the block are real and positive, by the closed equations."""
    f, r = np.setdiff1d(np.arange(len(linear.M)), drives), list(drives)
    accelerated = np.linalg.solve(linear.M, dK[:, f])[r]  # the force dK q on the free arm
    block = linear.K[np.ix_(f, f)] + t * linear.M[np.ix_(f, r)] @ accelerated
    d = np.diag(linear.K)[f]
    squares = np.linalg.eigvals(np.linalg.solve(linear.M[np.ix_(f, f)], block) * d / d[:, None])
    return bool((squares.real > 0).all() and (np.abs(squares.imag) < 1e-6 * np.abs(squares)).all())


def random_error(linear, seed):
    """Symmetric dK of both signs, coupled."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=len(linear.M))
    return e[:, None] * linear.K_elastic * e + np.diag(np.diag(linear.K_elastic)) * rng.normal()


@pytest.mark.slow_but("0-basis0-spatial", "0-basis0-sliding", "0-basis1-planar")
@pytest.mark.parametrize("kind", ["planar", "spatial", "sliding", "carried"])
@pytest.mark.parametrize("basis", [("modes", 2), ("elements", 2)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])
def test_any_error_is_harmless_up_to_the_limit_and_not_beyond(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    dK = random_error(linear, seed)
    lemma = lemma_of(linear, plant.drives, dK)
    limit = min(lemma.alpha_star, 100.0)

    below = [harmless(linear, plant.drives, dK, t) for t in limit * np.linspace(0, 0.999999, 400)]
    assert all(below)
    if lemma.loss != "none":
        assert not harmless(linear, plant.drives, dK, 1.00001 * lemma.alpha_star)


@pytest.mark.parametrize(("link", "seed"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_an_error_of_one_link_alone(linear_of, link, seed):
    plant, linear = linear_of("planar", ("modes", 2), seed)
    own = np.array([name.startswith(f"link{link + 1}") for name in plant.coordinates])
    dK = linear.K_elastic * np.outer(own, own)
    lemma = lemma_of(linear, plant.drives, dK)

    assert own.sum() == 2
    assert not lemma.assumptions[0].holds
    assert lemma.assumptions[1].holds
    assert lemma.alpha_star >= lemma_of(linear, plant.drives).alpha_star * (1 - 1e-12)


def test_gravity_takes_part_of_the_limit_away(make, plant_of):
    # hanging: gravity holds the link, so more error is needed; standing: less
    def limit(g):
        plant = plant_of(make["arm"]([LINK], (g, 0.0, 0.0), {"mass": 0.25}), "modes", 2)
        return stiffness_lemma(plant).alpha_star

    LINK = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "EI": {"y": 18.4}}
    LINK |= {"joint_inertia": 0.1}
    assert limit(-9.81) < limit(0.0) < limit(9.81)


def test_of_rotors_that_ride_on_nothing_the_lemma_sees_nothing(linear_of):
    plant, linear = linear_of("rotors", ("modes", 2), 0)
    lemma = lemma_of(linear, plant.drives)

    assert (lemma.lambda_max, lemma.alpha_star, lemma.loss) == (0.0, np.inf, "none")
    assert not lemma.assumptions[2].holds


def test_an_error_of_a_buckled_block_has_no_limit():
    linear = hand_made(TWO_MASSES, np.diag([0.0, 1.0, -2.0]), np.diag([0.0, 1.0, 2.0]))

    with pytest.raises(ComputationError, match="buckles"):
        lemma_of(linear, (0,))


def test_a_rigid_arm_is_refused(make, plant_of):
    with pytest.raises(InputError, match="flexible link or joint"):
        stiffness_lemma(plant_of(make["rigid"]()))


def test_an_error_that_is_not_symmetric_is_refused(linear_of):
    plant, linear = linear_of("planar", ("modes", 2), 0)

    with pytest.raises(InputError, match="dK: expected a symmetric matrix"):
        lemma_of(linear, plant.drives, np.triu(np.ones((plant.n, plant.n))))


# Along a trajectory


@pytest.mark.slow_but("planar", "rotors")
@pytest.mark.parametrize("kind", ["planar", "sliding", "rotors", "carried"])
def test_along_a_path_it_is_that_of_every_pose(linear_of, kind):
    plant, linear = linear_of(kind, ("modes", 2), 1)
    near = linear.q0[: plant.m, None] * [1.0, 0.9, 0.8]
    path = lemma_along(plant, near)

    expected = [stiffness_lemma(plant, plant.straight(q)) for q in near.T]
    assert path.lambda_max == pytest.approx([lemma.lambda_max for lemma in expected], rel=1e-9)
    assert path.alpha_star == pytest.approx([lemma.alpha_star for lemma in expected], rel=1e-9)


def test_bent_poses_are_taken_as_they_are(linear_of):
    plant, linear = linear_of("planar", ("modes", 2), 0)
    q = linear.q0 + 0.02 * np.arange(plant.n)

    expected = split_mass(plant.mass_matrix(q), plant.drives).lambda_max
    assert lemma_along(plant, q[:, None]).lambda_max == pytest.approx([expected], rel=1e-13)


def test_a_hundred_poses_of_the_spatial_arm_at_once_are_those_one_by_one(plant_of):
    plant = plant_of(load_model("theodore-ghosal-rrp"), "elements", 4)
    s = np.linspace(0, 1, 100)
    poses = np.array([np.pi * s, np.pi / 2 * s, 0.3 + 0.7 * s])
    path = lemma_along(plant, poses)
    single = [stiffness_lemma(plant, plant.straight(poses[:, k])).lambda_max for k in (0, 37, 99)]

    assert path.lambda_max[[0, 37, 99]] == pytest.approx(single, rel=1e-12)
    assert path.lambda_max.shape == path.alpha_star.shape == (100,)


def test_poses_of_a_wrong_size_are_refused(linear_of):
    plant, _ = linear_of("planar", ("modes", 2), 0)

    with pytest.raises(InputError, match="poses: expected 6 coordinates or 2 joint variables"):
        lemma_along(plant, np.zeros((3, 5)))


def test_a_heavier_true_arm_of_the_same_stiffness_has_no_error_of_it():
    # modes of links assume the load at their tip: they stay those of the model
    arm = load_model("theodore-ghosal-rrp")
    basis = BasisChoice(kind="modes", order=2)
    plant = assemble_plant(arm, basis, interpreted=True)
    heavier = apply_settings(arm, ["payload.mass=*3"])
    q = plant.straight(np.array([0.3, 0.4, 0.8]))

    assert any(link.tip_load for link in arm.links)
    assert lemma_of_true_arm(plant, heavier, q) is None
    softer = lemma_of_true_arm(plant, apply_settings(heavier, ["link2.EI=*0.8"]), q)
    assert softer is not None
    assert softer.alpha_star < np.inf
