"""Growth under a small error of the stiffness, against closed loops made in two other ways."""

from functools import cache

import numpy as np
import pytest

from examples.papers.theodore_ghosal.stiffness_growth import stiffness_growth
from flexctl.control import design_controller
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import (
    linearise_loop,
)
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.robustness.stiffness.driven_mass import split_mass
from tests.random_arms import random_arm, random_pose

pytestmark = pytest.mark.usefixtures("no_compiler")

GP, GV = 120.0, 16.0
KINDS = ("planar", "spatial", "sliding", "rotors", "carried")
BASES = (("modes", 2), ("elements", 2))
ARMS = [  # a second arm of each kind takes its time
    pytest.param(kind, basis, seed, marks=pytest.mark.slow if seed else ())
    for kind in KINDS
    for basis in BASES
    for seed in (0, 1)
]
RIGID_JOINTS = [arm for arm in ARMS if arm.values[0] in ("planar", "spatial", "sliding")]
ALPHA = 1e-4


@pytest.fixture(scope="module")
def linear_of(plant_of):
    """linear_of(kind, (basis, order), seed): plant and its linear model."""

    @cache
    def build(kind, basis, seed):
        arm = random_arm(kind, seed)
        plant = plant_of(arm, *basis)
        return plant, linearise(plant, plant.straight(random_pose(arm, seed)))

    return build


@pytest.fixture(scope="module")
def designed_poles(make, linear_of):
    """designed_poles(kind, basis, seed, alpha): of flexctl's controller for an arm 1 + alpha as
    stiff, closed around the arm."""

    def build(kind, basis, seed, alpha):
        plant, linear = linear_of(kind, basis, seed)
        pose = linear.q0[: plant.m]
        designed_for = random_arm(kind, seed, scale=1 + alpha)
        gains = {"Gp": [GP], "Gv": [GV]}
        design = make["design"](0.9 * pose, pose, gains=gains)
        choice = BasisChoice(kind=basis[0], order=basis[1])
        controller = design_controller(designed_for, design, choice, interpreted=True)
        loop = linearise_loop(close_around(controller, plant), pose, 0.0)
        return np.linalg.eigvals(loop.A + loop.B @ loop.K)

    return build


def printed_loop(linear, drives, dK, alpha, Gp=GP, Gv=GV, Gi=0.0):
    """Matrix (2n + m, 2n + m) of [r; f; r'; f'; int r] by (49), (50) with all rows of dK, by
    inverses. Without integral action the integrals are left out."""
    r = list(drives)
    f = np.setdiff1d(np.arange(len(linear.M)), r)
    m, n = len(r), len(linear.M)
    named = (("r", r), ("f", f))
    block = {a + b: linear.M[np.ix_(x, y)] for a, x in named for b, y in named}
    S = np.linalg.inv(block["rr"] - block["rf"] @ np.linalg.inv(block["ff"]) @ block["fr"])
    error = dK[r] - block["rf"] @ np.linalg.inv(block["ff"]) @ dK[f]
    order = [*r, *f]
    G = [np.diag(np.broadcast_to(g, m).astype(float)) for g in (Gp, Gv, Gi)]
    by_q = alpha * S @ error[:, order] - np.hstack([G[0], np.zeros((m, n - m))])
    A = np.zeros((2 * n + m, 2 * n + m))
    A[:n, n : 2 * n] = np.eye(n)
    A[n : n + m, :n], A[n : n + m, n : n + m], A[n : n + m, 2 * n :] = by_q, -G[1], -G[2]
    A[2 * n :, :m] = np.eye(m)
    follows = -np.linalg.inv(block["ff"])
    A[n + m : 2 * n] = follows @ (block["fr"] @ A[n : n + m])
    A[n + m : 2 * n, :n] += follows @ linear.K[np.ix_(f, order)]
    return A if np.any(Gi) else A[: 2 * n, : 2 * n]


def nearest(poles, frequencies):
    """The pole nearest to i w of every frequency."""
    return np.array([poles[np.abs(poles - 1j * w).argmin()] for w in frequencies])


# The formula and the closed loop


@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
@pytest.mark.slow_but("planar-*", "sliding-basis8-*", "rotors-basis12-*")
def test_h_is_that_of_the_lemma_or_the_torques_that_hold_the_drives(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    found, mass = (
        stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV),
        split_mass(linear.M, plant.drives),
    )
    w, phi = found.frequencies, found.shapes
    b = mass.blocks(linear.K)[0] @ phi - (mass.M_fr.T @ phi) * w**2
    held = (b * np.linalg.solve(mass.S_r, b)).sum(axis=0) / w**4
    # that of (50) where joints are rigid: no spring on the rows of the drives
    of_H = (phi * (mass.H @ mass.M_ff @ phi)).sum(axis=0) if kind in KINDS[:3] else held

    assert found.coupling == pytest.approx(held, rel=1e-8, abs=1e-12 * held.max())
    assert found.coupling == pytest.approx(of_H, rel=1e-8, abs=1e-9 * held.max())


@pytest.mark.slow_but("planar-basis0-0", "planar-basis2-0", "rotors-basis12-0")
@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
def test_the_rate_is_the_scalar_formula(linear_of, kind, basis, seed):
    plant, linear = linear_of(kind, basis, seed)
    found = stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV)
    w, h = found.frequencies, found.coupling

    expected = h * GV * w**4 / (2 * ((w**2 - GP) ** 2 + GV**2 * w**2))
    assert found.rate == pytest.approx(expected, rel=1e-12)
    assert (found.rate > 0).all()


@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
@pytest.mark.parametrize("alpha", [-ALPHA, ALPHA])
def test_modes_of_the_printed_equations_grow_at_the_rate(linear_of, kind, basis, seed, alpha):
    plant, linear = linear_of(kind, basis, seed)
    found = stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV)
    poles = np.linalg.eigvals(printed_loop(linear, plant.drives, linear.K, alpha))
    # eigenvalues of a matrix of size w_max^2 are off by some 1e-16 of that
    round_off = 1e-13 * found.frequencies.max()

    grown = nearest(poles, found.frequencies).real
    assert grown == pytest.approx(alpha * found.rate, rel=0.01, abs=round_off)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
@pytest.mark.parametrize("alpha", [-ALPHA, ALPHA])
def test_modes_under_the_controller_of_a_stiffer_arm_grow_at_the_rate(
    linear_of, designed_poles, kind, basis, seed, alpha
):
    plant, linear = linear_of(kind, basis, seed)
    found = stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV)
    poles = designed_poles(kind, basis, seed, alpha)
    round_off = 1e-13 * found.frequencies.max()

    grown = nearest(poles, found.frequencies).real
    assert grown == pytest.approx(alpha * found.rate, rel=0.01, abs=round_off)


@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
@pytest.mark.parametrize("alpha", [-ALPHA, ALPHA])
@pytest.mark.slow_but("*-planar-*", "*-sliding-basis8-*", "*-rotors-basis12-*")
def test_any_overestimate_is_unstable_and_any_underestimate_stable(
    designed_poles, kind, basis, seed, alpha
):
    poles = designed_poles(kind, basis, seed, alpha)
    # rotors hardly feel the highest modes of the links: their decay is below round-off
    round_off = 0.0 if kind in KINDS[:3] else 1e-14 * np.abs(poles).max()

    assert (poles.real.max() > round_off) == (alpha > 0)


@pytest.mark.slow_but("carried--0.3", "carried-0.3", "carried-30.0")
@pytest.mark.parametrize("alpha", [-0.9, -0.3, 0.01, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_its_size(linear_of, kind, alpha):
    plant, linear = linear_of(kind, ("modes", 2), 2)
    poles = np.linalg.eigvals(printed_loop(linear, plant.drives, linear.K, alpha))

    # every mode is coupled: beyond 0 all of them grow
    assert (poles.real > 0).sum() == (2 * (plant.n - plant.m) if alpha > 0 else 0)


@pytest.mark.parametrize("alpha", [-0.9, 0.3, 30.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_no_error_makes_the_loop_diverge_as_the_lemma_has_it(linear_of, kind, alpha):
    plant, linear = linear_of(kind, ("modes", 2), 2)
    f, r = np.setdiff1d(np.arange(plant.n), plant.drives), list(plant.drives)
    sign, size = np.linalg.slogdet(printed_loop(linear, plant.drives, linear.K, alpha))

    # the product of all eigenvalues, gp^m det(M_ff^-1 K_ff), does not know of alpha: none is zero
    held = (
        np.linalg.slogdet(linear.K[np.ix_(f, f)])[1] - np.linalg.slogdet(linear.M[np.ix_(f, f)])[1]
    )
    assert sign == 1
    assert size == pytest.approx(len(r) * np.log(GP) + held, abs=1e-6)


@pytest.mark.parametrize(("kind", "seed"), [("planar", 0), ("sliding", 1), ("rotors", 0)])
def test_gains_of_their_own_per_joint_and_integrals(linear_of, kind, seed):
    plant, linear = linear_of(kind, ("modes", 2), seed)
    gains = {"Gp": np.array([90.0, 250.0]), "Gv": np.array([14.0, 40.0])}
    gains["Gi"] = np.array([100.0, 500.0])
    found = stiffness_growth(linear, plant.drives, **gains)
    alpha = ALPHA / found.coupling.max()
    poles = np.linalg.eigvals(printed_loop(linear, plant.drives, linear.K, alpha, **gains))

    moved = (nearest(poles, found.frequencies) - 1j * found.frequencies) / alpha
    assert moved == pytest.approx(found.shift, rel=0.01, abs=1e-3 * np.abs(found.shift).max())


@pytest.mark.parametrize(("kind", "seed"), [("planar", 0), ("sliding", 1), ("carried", 0)])
def test_an_error_of_one_link(linear_of, kind, seed):
    plant, linear = linear_of(kind, ("modes", 2), seed)
    own = np.array([name.startswith("link1") for name in plant.coordinates])
    dK = linear.K_elastic * np.outer(own, own)
    found = stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV, dK=dK)
    poles = np.linalg.eigvals(printed_loop(linear, plant.drives, dK, 1e-6))

    moved = (nearest(poles, found.frequencies) - 1j * found.frequencies) / 1e-6
    assert moved == pytest.approx(found.shift, rel=0.01, abs=1e-3 * np.abs(found.shift).max())


def test_two_modes_of_one_frequency_are_told_apart_by_the_error(make, plant_of):
    # a beam that is the same in both planes on a joint that turns about one of them only
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.5, "joint_inertia": 0.2}
    link |= {"EI": {"y": 20.0, "z": 20.0}, "dh": {"alpha": 0.7}}
    plant = plant_of(make["arm"]([link]), "modes", 1)
    linear = linearise(plant)
    found = stiffness_growth(linear, plant.drives, Gp=GP, Gv=GV)
    poles = np.linalg.eigvals(printed_loop(linear, plant.drives, linear.K, 1e-5))
    grown = np.sort(poles[poles.imag > found.frequencies[0] / 2].real) / 1e-5

    assert np.ptp(found.frequencies) < 1e-9 * found.frequencies[0]
    assert np.sort(found.rate) == pytest.approx(grown, rel=0.01, abs=1e-6 * grown[-1])
    assert found.rate.min() == pytest.approx(0, abs=1e-9 * found.rate.max())


@pytest.mark.parametrize(("share", "stable"), [(0.97, True), (1.03, False)])
def test_light_damping_that_the_law_knows_bears_the_first_margin(make, plant_of, share, stable):
    arm = make["single"](damping=1e-4, hub=1.0)
    plant = plant_of(arm)
    margin = stiffness_growth(linearise(plant), plant.drives, Gp=GP, Gv=GV).first_margin
    design = make["design"]([0.0], [1.0], gains={"Gp": [GP], "Gv": [GV]})
    # damping ratios stay those of the arm, D of the stiffer one is larger by margin/2 only
    stiffer = make["single"](damping=1e-4, hub=1.0, EI=18.4 * (1 + share * margin))
    controller = design_controller(stiffer, design, BasisChoice(order=2), interpreted=True)
    loop = linearise_loop(close_around(controller, plant), np.array([1.0]), 0.0)

    assert 0 < margin < 1e-2
    assert (np.linalg.eigvals(loop.A + loop.B @ loop.K).real.max() < 0) == stable


def test_a_buckled_arm_has_no_modes(linear_of):
    plant, linear = linear_of("planar", ("modes", 2), 0)
    held = type(linear)(**{**vars_of(linear), "K": -linear.K})

    with pytest.raises(ComputationError, match="buckles"):
        stiffness_growth(held, plant.drives, Gp=GP, Gv=GV)


def vars_of(linear):
    return {name: getattr(linear, name) for name in linear.__dataclass_fields__}


# The quartic of every eigenpair


def quotients(linear, drives, q):
    """m and k of a closed-loop shape q (n,), complex: Rayleigh quotients, real by their symmetry.

    With y = M^-1 K q the plant gives s^2 q + y = p with (M p)_f = 0, so that (M p)_r = S_r p_r, and
    the law c(s) q_r = alpha y_r with c = s^2 + gv s + gp, so that p_r = (1 + alpha s^2/c) y_r. Then
    y*M p in two ways is s^2 q*K q + y*M y = (1 + alpha s^2/c) y_r*S_r y_r, and
    y*M y - y_r*S_r y_r = (K q)_f* M_ff^-1 (K q)_f, or, divided by q*K q and times c,

        c (s^2 + m) = alpha s^2 k,   m = (Kq)_f* M_ff^-1 (Kq)_f / q*Kq,   k = y_r*S_r y_r / q*Kq.

    For rigid joints (K q)_f = K f: m = f*K M_ff^-1 K f / f*K f, k = f*K M_ff^-1 H K f / f*K f.
    """
    mass = split_mass(linear.M, drives)
    force = linear.K @ q
    y_r, force_f = np.linalg.solve(linear.M, force)[list(drives)], force[list(mass.passive)]
    energy = np.vdot(q, force)
    m = np.vdot(force_f, np.linalg.solve(mass.M_ff, force_f)) / energy
    return m, np.vdot(y_r, mass.S_r @ y_r) / energy


def eigenpairs(linear, drives, alpha):
    """Eigenvalues and shapes q (n,) of the printed loop in the order of q, strained ones only."""
    values, vectors = np.linalg.eig(printed_loop(linear, drives, linear.K, alpha))
    order = [*drives, *np.setdiff1d(np.arange(len(linear.M)), drives)]
    shapes = np.empty((len(order), len(values)), dtype=complex)
    shapes[order] = vectors[: len(order)]
    return values, shapes


@pytest.mark.parametrize("alpha", [-0.5, 1e-4, 0.05, 2.0])
@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
def test_every_eigenpair_satisfies_the_quartic(linear_of, kind, basis, seed, alpha):
    plant, linear = linear_of(kind, basis, seed)
    values, shapes = eigenpairs(linear, plant.drives, alpha)
    m, k = np.transpose([quotients(linear, plant.drives, q) for q in shapes.T])
    s = values
    terms = np.array([s**4, GV * s**3, (GP + m - alpha * k) * s**2, GV * m * s, GP * m])
    largest = np.abs(terms).max(axis=0)

    assert np.abs(m.imag / m.real).max() < 1e-9
    assert np.abs(k.imag).max() < 1e-9 * np.abs(k).max()
    assert (m.real > 0).all()
    assert (k.real >= 0).all()
    assert (np.abs(terms.sum(axis=0)) / largest).max() < 1e-5


@pytest.mark.parametrize("alpha", [-0.5, 0.05])
@pytest.mark.parametrize(("kind", "basis", "seed"), RIGID_JOINTS)
def test_of_rigid_joints_the_quotients_are_those_of_H(linear_of, kind, basis, seed, alpha):
    plant, linear = linear_of(kind, basis, seed)
    _, shapes = eigenpairs(linear, plant.drives, alpha)
    mass = split_mass(linear.M, plant.drives)
    K, shapes_f = mass.blocks(linear.K)[1], shapes[list(mass.passive)]
    forces = K @ shapes_f
    y, energy = np.linalg.solve(mass.M_ff, forces), (shapes_f.conj() * forces).sum(axis=0)
    m, k = np.transpose([quotients(linear, plant.drives, q) for q in shapes.T])

    assert m == pytest.approx((y.conj() * forces).sum(axis=0) / energy, rel=1e-9)
    of_H = (y.conj() * (mass.H @ forces)).sum(axis=0) / energy
    assert k == pytest.approx(of_H, rel=1e-7, abs=1e-9 * np.abs(k).max())


@pytest.mark.parametrize("alpha", [-0.5, 1e-4, 0.05, 2.0])
@pytest.mark.parametrize(("kind", "basis", "seed"), ARMS)
def test_the_hurwitz_determinant_has_the_sign_against_alpha(linear_of, kind, basis, seed, alpha):
    plant, linear = linear_of(kind, basis, seed)
    _, shapes = eigenpairs(linear, plant.drives, alpha)
    m, k = np.transpose([quotients(linear, plant.drives, q) for q in shapes.T]).real
    one, zero = np.ones(len(m)), np.zeros(len(m))
    a = [one, GV * one, GP + m - alpha * k, GV * m, GP * m]
    hurwitz = np.array([[a[1], a[3], zero], [a[0], a[2], a[4]], [zero, a[1], a[3]]])
    found = np.linalg.det(np.moveaxis(hurwitz, 2, 0))

    scale = GV**2 * m * (GP + m)
    assert found / scale == pytest.approx(-alpha * GV**2 * k * m / scale, abs=1e-12, rel=1e-9)
