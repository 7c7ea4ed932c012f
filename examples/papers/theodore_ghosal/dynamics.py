"""Section 2.2 and appendix of [TG95]: energies, equations of motion, inverse of the mass matrix."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np

from examples.papers.claim import Claim, judge, misprint
from examples.papers.theodore_ghosal.arm import TWO_MODES, arm, plant, poses
from flexctl.checks import Array
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import assemble_plant

BEND = 0.01  # m: first modal coordinate of every line of an arm that is bent
_SAME = 1e-9


@cache
def bent_and_moving() -> tuple[Array, Array]:
    """Coordinates and rates (n,) in the middle of the motion, every line bent, all moving."""
    own = plant()
    q = own.straight(poses()[:, 5])
    q[own.m :: 2] = BEND
    return q, np.linspace(-1, 1, own.n)


def sliding_inertia() -> Claim:
    """Compare the inertia that joint 3 moves, by which points of the beam are held."""
    own, m_p = plant(), arm().payload.mass if arm().payload else 0.0
    q = own.straight(poses()[:, 5])
    line, length = arm().links[2], float(q[2])
    right = float(own.mass_matrix(q)[2, 2])
    stretched = m_p + line.mass_per_length * length / 3  # points x/l move at l' x/l
    return misprint(
        "equations 19 to 21, Algorithm 1",
        "kinetic energy of link 3 from dr/dt and dr/dq, r = p + R (u(x, t), v(x, t), x)",
        f"joint 3 moves {right:.4f} kg, all of link 3 and the payload; with x held as it is "
        f"written the payload alone ({m_p:.4f} kg), with x/l held, as (7) suggests, "
        f"{stretched:.4f} kg",
        "every point of the beam moves at l' along it, Du/Dt = u_t + l' u_x: x is where it is now. "
        "The upper limit of (21) is l_j",
        right=right,
        printed=m_p,
        stretched=stretched,
    )


def strain_energy() -> Claim:
    """Bend a link that is four times as stiff in y, one way and the other."""
    stiff = apply_settings(arm(), ["link2.EI.y=*4"])
    own = assemble_plant(stiff, BasisChoice(kind="elements", order=1), interpreted=True)
    y, z = (
        own.energies(own.pose({f"link2.{d}.node2.deflection": BEND}), np.zeros(own.n))[1]
        for d in "yz"
    )
    right = y / z
    return misprint(
        "equation 23",
        "strain energy 1/2 int (EI_y v''^2 + EI_z w''^2), I about the axes y and z",
        f"a section that is four times as stiff against bending to y holds {right:.3g} times the "
        f"energy bent that way; as printed {1 / right:.3g} times",
        "v bends about z and needs I_z, w needs I_y; flexctl's EI go by the direction of "
        "deflection. The paper's own sections are the same both ways",
        right=right,
        printed=1 / right,
    )


def gravity() -> Claim:
    """Let the arm hang: the torque of joint 2, as printed without payload and with its sign."""
    down = apply_settings(arm(), ["gravity=[0, 0, -9.81]"])
    own = assemble_plant(down, TWO_MODES, interpreted=True)
    bare = assemble_plant(apply_settings(down, ["payload.mass=0.0"]), TWO_MODES, interpreted=True)
    q = own.straight(poses()[:, 5])
    right, printed = float(own.gravity(q)[1]), -float(bare.gravity(q)[1])
    return misprint(
        "equations 24, 25, Algorithm 3 S2.2",
        "V = int rho A g'r, g_i = sum int rho A g' dr/dq_i, g the gravity vector",
        f"in the middle of the motion, g = 9.81 m/s^2 down, holding joint 2 takes {right:.3f} N m; "
        f"as printed {printed:.3f} N m",
        "V = -int rho A g'r where g is the acceleration of gravity; g_i leaves out the payload, "
        "which V has, and the part of link 3 in its hub; in (26) it is called c",
        right=right,
        printed=printed,
    )


def row_of_the_sliding_joint() -> Claim:
    """Differentiate the strain energy of the bent arm by the length of link 3."""
    own, (q, _) = plant(), bent_and_moving()
    step, rest = 1e-5 * np.eye(own.n)[2], np.zeros(own.n)
    energies = [own.energies(q + sign * step, rest)[1] for sign in (1, -1)]
    right, slope = float(own.elastic_force(q)[2]), (energies[0] - energies[1]) / 2e-5
    return misprint(
        "equations 26, 27",
        "K q_f in the rows of q_f alone, [0 0; 0 K]",
        f"first modal coordinates at {1e3 * BEND:g} mm, the beam pushes joint 3 out with "
        f"{-right:.4g} N (the strain energy falls by {-slope:.4g} J/m)",
        "EI/l^3 depends on the joint variable: its row has 1/2 q_f' (dK/dl) q_f, in plant and law",
        right=right,
        printed=0.0,
        slope=slope,
    )


def coriolis() -> Claim:
    """Compute h_i of Algorithm 3 from the mass matrix and compare it with the recursion."""
    own, (q, v) = plant(), bent_and_moving()
    M, x = own.casadi_functions["mass_matrix"], ca.SX.sym("x", own.n)
    slopes = ca.Function("slopes", [x], [ca.jacobian(ca.vec(M(x)), x)])(q)
    dM = np.reshape(np.array(slopes), (own.n, own.n, own.n), order="F")  # [i, j, k]: dM_ij/dq_k
    printed = np.einsum("ijk,j,k->i", dM, v, v) - np.einsum("jki,j,k->i", dM, v, v) / 2
    ours = own.bias(q, v)
    off = float(np.abs(printed - ours).max() / np.abs(ours).max())
    return Claim(
        id="Algorithm 3, S2.1",
        paper="h_i = sum_jk (dM_ij/dq_k - 1/2 dM_jk/dq_i) q_j' q_k'",
        ours="bent and moving, flexctl's forces (which know no derivative of M) are these, to "
        f"{max(off, 1e-16):.0e}",
        verdict=judge(off < _SAME),
        why="",
        numbers={"off": off},
    )


def inverse() -> Claim:
    """Multiply the mass matrix by its inverse of the appendix, as printed and with + M_ff."""
    own, (q, _) = plant(), bent_and_moving()
    M, m = own.mass_matrix(q), plant().m
    d = np.sqrt(np.diag(M))
    M = M / np.outer(d, d)
    M_rr, M_rf, M_ff = M[:m, :m], M[:m, m:], M[m:, m:]
    S_r = np.linalg.inv(M_rr - M_rf @ np.linalg.solve(M_ff, M_rf.T))
    S_f = np.linalg.inv(M_ff - M_rf.T @ np.linalg.solve(M_rr, M_rf))
    corner = -np.linalg.solve(M_rr, M_rf) @ S_f
    right, printed = (
        float(np.abs(M @ np.block([[S_r, corner], [corner.T, sign * S_f]]) - np.eye(own.n)).max())
        for sign in (1, -1)
    )
    return Claim(
        id="appendix, inverse",
        paper="inverse of the mass matrix by blocks, -(M_ff - M_rf' M_rr^-1 M_rf)^-1 below right",
        ours=f"M times it differs from 1 by {printed:.2g} (scaled to a unit diagonal); with + "
        f"there by {right:.0e}",
        verdict=judge(printed < _SAME),
        why="misprint of a sign, in both forms: a block on the diagonal of a positive definite "
        "matrix is positive definite",
        numbers={"right": right, "printed": printed},
    )


def definite() -> Claim:
    """Look at the eigenvalues of M and of its two complements along the motion."""
    own = plant()
    least = np.inf
    for pose in poses().T:
        M = own.mass_matrix(own.straight(pose))
        d = np.sqrt(np.diag(M))
        least = min(least, float(np.linalg.eigvalsh(M / np.outer(d, d))[0]))
    return Claim(
        id="appendix, definiteness",
        paper="M and the Schur complements of M_rr and M_ff are positive definite",
        ours=f"along the motion the least eigenvalue of M is {least:.2g}, scaled to a unit "
        "diagonal; the complements are inverses of blocks of its inverse, and so definite too",
        verdict=judge(least > 0),
        why="",
        numbers={"least": least},
    )
