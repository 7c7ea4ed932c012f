"""Section 4.3 of [TG95]: the law with a wrong stiffness, its closed loop, and H."""

from __future__ import annotations

from functools import cache

import numpy as np

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.arm import (
    STIFF,
    TWO_MODES,
    arm,
    design,
    line,
    linear,
    plant,
    poses,
)
from flexctl.beam.elements import hermite_elements
from flexctl.beam.matrices import assemble_matrices
from flexctl.checks import Array
from flexctl.control import Controller, controller_at, design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import (
    linearise_loop,
)
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import Plant, assemble_plant
from flexctl.robustness.stiffness.driven_mass import DrivenMass, split_mass

ALPHA = 0.1  # overestimate at which the law and the loop are compared
_SAME = 1e-9
_TIP = 0.01  # m: first modal coordinate of every line where the law is compared


def _wrong_controller(alpha: float) -> Controller:
    """Design the controller that computes with K_hat = (1 + alpha) K."""
    free = ("stiffness_error",)
    controller = design_controller(
        arm(), design(STIFF), TWO_MODES, interpreted=True, parameters=free
    )
    return controller_at(controller, {"stiffness_error": alpha})


@cache
def _law() -> tuple[Array, Array]:
    """Torques (m,) of flexctl's law and of (48), arm bent and moving, stiffness overestimated.

    Of (48) with h_r, c_r, h_f and c_f as they are, and K_hat q_f in the rows of q_f alone.
    """
    controller = _wrong_controller(ALPHA)
    own, m = plant(), plant().m
    q = own.straight(poses()[:, 5])
    q[m::2] = _TIP
    v = np.linspace(-1, 1, own.n)
    expected = (q[:m] + 0.01, 0.9 * v[:m], np.ones(m))
    found = controller.law(0.0, np.zeros(0), *expected, q, v)[0]
    u = expected[2] + STIFF[1] * (expected[1] - v[:m]) + STIFF[0] * (expected[0] - q[:m])
    mass, h = split_mass(own.mass_matrix(q), own.drives), own.bias(q, v)
    force = h[m:] + (1 + ALPHA) * own.elastic_force(q)[m:]
    return np.array(found).ravel(), mass.S_r @ u + h[:m] - mass.F.T @ force


def equation_48() -> Claim:
    """Compare the law with K_hat, of an arm that is bent and moves."""
    ours, printed = _law()
    gap = ours - printed
    return Claim(
        id="equation 48",
        paper="law with h_r + c_r - M_rf M_ff^-1 (h_f + c_f + K_hat q_f)",
        ours=f"the torques of the revolute joints are the same (to {np.abs(gap[:2]).max():.0e} "
        f"N m of {np.abs(ours[:2]).max():.3g}); the printed force of joint 3 lacks "
        f"{gap[2]:.3g} N where the first modal coordinates are {1e3 * _TIP:g} mm",
        verdict=judge(bool(np.abs(gap).max() <= _SAME * np.abs(ours).max())),
        why="the stiffness of link 3 depends on its length: the row of joint 3 has "
        "1/2 q_f' (dK/dl) q_f too, with K_hat in the law; at rest and straight both agree",
        numbers={"revolute": float(np.abs(gap[:2]).max()), "sliding": float(gap[2])},
    )


def printed_loop(alpha: float) -> Array:
    """Matrix (2n, 2n) of [e; q_f; e'; q_f'] by (49), (50) as printed, about rest."""
    model, (Gp, Gv) = linear(), STIFF
    m, n = model.B.shape[1], len(model.M)
    M_rr, M_rf, M_ff = model.M[:m, :m], model.M[:m, m:], model.M[m:, m:]
    K, dK = model.K[m:, m:], alpha * model.K[m:, m:]
    inner = np.linalg.inv(M_ff - M_rf.T @ np.linalg.solve(M_rr, M_rf))
    H = M_rf.T @ np.linalg.solve(M_rr, M_rf) @ inner
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:] = np.eye(n)
    A[n : n + m, :m], A[n : n + m, n : n + m] = -Gp * np.eye(m), -Gv * np.eye(m)
    A[n : n + m, m:n] = -np.linalg.solve(M_rr, M_rf) @ inner @ dK
    u = np.hstack([-Gp * np.eye(m), np.zeros((m, n - m)), -Gv * np.eye(m), np.zeros((m, n - m))])
    stiffness = np.hstack([np.zeros((n - m, m)), K - H @ dK, np.zeros((n - m, n))])
    A[n + m :] = -np.linalg.solve(M_ff, stiffness + M_rf.T @ u)
    return A


def rebuilt_loop(alpha: float) -> Array:
    """Compute the same matrix of flexctl's controller with K_hat, closed around the arm."""
    loop = linearise_loop(close_around(_wrong_controller(alpha), plant()), poses()[:, -1], 0.0)
    return loop.A + loop.B @ loop.K


def equations_49_50() -> Claim:
    """Compare the closed loop with K_hat at rest."""
    printed, ours = printed_loop(ALPHA), rebuilt_loop(ALPHA)
    # rows of accelerations differ by many powers of ten, each is judged by its own size
    size = np.abs(ours).max(axis=1, keepdims=True)
    off = float((np.abs(printed - ours) / size).max())
    return Claim(
        id="equations 49, 50",
        paper="closed loop with K_hat: -M_rr^-1 M_rf (M_ff - P)^-1 dK q_f drives e, and K becomes "
        "K - H dK, P = M_rf' M_rr^-1 M_rf",
        ours=f"about rest the loop of flexctl's controller with {1 + ALPHA:g} K is that, to "
        f"{max(off, 1e-16):.0e} of every row",
        verdict=judge(off < _SAME),
        why="right with these signs, u_I being -Gv e' - Gp e, at rest; with velocities or bent "
        "links (50) has the terms of (48) too",
        numbers={"off": off},
    )


def _masses() -> list[DrivenMass]:
    own = plant()
    return [split_mass(own.mass_matrix(own.straight(q)), own.drives) for q in poses().T]


def scaled(A: Array) -> Array:
    """Return A (n, n), of positive diagonal, in units that make this 1."""
    d = np.sqrt(np.diag(A))
    return A / np.outer(d, d)


def remark_1() -> Claim:
    """Look at the eigenvalues of M_ff along the motion."""
    least = min(float(np.linalg.eigvalsh(scaled(mass.M_ff))[0]) for mass in _masses())
    return Claim(
        id="section 4.3, remark 1",
        paper="M_ff is symmetric and positive definite",
        ours=f"along the motion its least eigenvalue is {least:.2g}, scaled to a unit diagonal",
        verdict=judge(least > 0),
        why="",
        numbers={"least": least},
    )


def remark_2() -> Claim:
    """Look at H, at its symmetric part, and at its eigenvalues."""
    mass = _masses()[-1]
    root = np.linalg.cholesky(mass.M_ff)  # in modes' units: H is the same map in f = L^-T y
    H = np.linalg.solve(root, mass.H @ root)
    tilted = scaled_H(mass)
    skew = float(np.abs(tilted - tilted.T).max() / np.abs(tilted).max())
    least = float(np.linalg.eigvalsh((tilted + tilted.T) / 2)[0])
    values = np.linalg.eigvals(H)
    return Claim(
        id="section 4.3, remark 2",
        paper="H is positive semidefinite",
        ours=f"H is not symmetric (H - H' is {skew:.2g} of its largest entry) and its symmetric "
        f"part has the eigenvalue {least:.3g}; its own are real and at least 0, "
        f"{_listed(np.sort(values.real)[-3:])} and zeros",
        verdict=judge(least > -_SAME and skew < _SAME),
        why="a product of two semidefinite matrices need not be symmetric; it is similar to one "
        "that is, so that its eigenvalues are real and not negative, which is all that is used",
        numbers={
            "skew": skew,
            "least_symmetric": least,
            "least": float(values.real.min()),
            "imaginary": float(np.abs(values.imag).max()),
        },
    )


def scaled_H(mass: DrivenMass) -> Array:
    """H (n_f, n_f) in units in which the masses of M_ff are one: coordinates of one kind."""
    d = np.sqrt(np.diag(mass.M_ff))
    return mass.H / d[:, None] * d


def _listed(values: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _least_coupling(own: Plant, q: Array) -> float:
    """Smallest singular value of M_rf, coordinates scaled to unit masses."""
    return float(np.linalg.svd(scaled(own.mass_matrix(q))[: own.m, own.m :], compute_uv=False)[-1])


def rank() -> Claim:
    """Look at the rank of M_rf along the motion, and where link 2 is rigid."""
    own = plant()
    along = min(_least_coupling(own, own.straight(q)) for q in poses().T)
    links = list(arm().links)
    links[1] = links[1].model_copy(update={"EI": {}, "tip_load": None})
    stiff = assemble_plant(
        arm().model_copy(update={"links": tuple(links)}), TWO_MODES, interpreted=True
    )
    rigid = _least_coupling(stiff, stiff.straight(poses()[:, -1]))
    return Claim(
        id="section 4.3, remark 2, rank",
        paper="the rank of M_rf, and so that of H, is n, the number of joints",
        ours=f"for this arm it is: along the motion the least singular value of M_rf is "
        f"{along:.2g}, coordinates scaled to unit masses; were link 2 rigid it would be "
        f"{max(rigid, 1e-17):.0e}, and the rank 2",
        verdict=judge(along > _SAME and rigid > _SAME),
        why="it does not follow from M_rr being definite: joint 3, along link 3, moves no mode of "
        "link 3, and any joint whose motion bends nothing takes a rank; lambda_max needs none",
        numbers={"along": along, "rigid": rigid},
    )


@cache
def _table_1() -> tuple[Array, Array]:
    """Frequencies of link 2 clamped and free over the exact ones: 1 element (2,), 2 (4,)."""
    exact = (np.array([1.87510407, 4.69409113, 7.85475744, 10.99554073])) ** 2
    link = arm().links[1]
    unit = np.sqrt(link.EI["y"] / link.mass_per_length) / link.length**2
    found = [
        assemble_matrices(line(), "y", hermite_elements(order=n)).frequencies() for n in (1, 2)
    ]
    return found[0] / (exact[:2] * unit), found[1] / (exact * unit)


def condensed(elements: int) -> Array:
    """Stiffness (2, 2) of deflection and slope of link 2's tip, the nodes between left free."""
    K = assemble_matrices(line(), "y", hermite_elements(order=elements)).stiffness
    return np.linalg.inv(np.linalg.inv(K)[-2:, -2:])


def overestimate() -> Claim:
    """Compare frequencies and stiffness of coarse elements with the exact ones."""
    one, two = _table_1()
    EI, length = arm().links[1].EI["y"], arm().links[1].length
    exact = EI / length**3 * np.array([[12, -6 * length], [-6 * length, 4 * length**2]])
    off = max(float(np.abs(condensed(n) / exact - 1).max()) for n in (1, 2, 4))
    return Claim(
        id="section 4.3, elements",
        paper="finite elements usually overestimate the structure stiffness matrix (see Table 1)",
        ours=f"frequencies of Table 1 are {100 * (one[0] - 1):.2g} % and {100 * (one[1] - 1):.3g} "
        f"% too high with 1 element, {100 * (two[0] - 1):.1g} %, {100 * (two[1] - 1):.2g} % and "
        f"more with 2; the stiffness that loads at the tip feel is exact with any number, to "
        f"{max(off, 1e-16):.0e}",
        verdict=judge(off > 1e-6),
        why="Hermite elements of a uniform beam are statically exact; what is too high is the "
        "frequency of modes that they cannot follow, not a common factor 1 + alpha of K. What "
        "overestimates K by 1.5 to 2.7 on real arms is EI itself, and clamps that give",
        numbers={
            "mode_1_element_1": float(one[0]),
            "mode_2_element_1": float(one[1]),
            "mode_2_elements_2": float(two[1]),
            "static": off,
        },
    )


BASES = tuple(
    BasisChoice.model_validate({"kind": kind, "order": order})
    for kind in ("modes", "elements")
    for order in range(1, 7)
)
