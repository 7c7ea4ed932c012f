"""Section 3 of [TG95]: the decoupling law, what it leaves of the arm, the second loop."""

from __future__ import annotations

import numpy as np

from examples.papers.claim import Claim, judge, misprint
from examples.papers.theodore_ghosal.arm import (
    STIFF,
    TWO_MODES,
    arm,
    held_squares,
    linear,
    plant,
)
from examples.papers.theodore_ghosal.dynamics import bent_and_moving
from flexctl.control import design_controller
from flexctl.model.lookup import load_design
from flexctl.robustness.stiffness.driven_mass import split_mass

_SAME = 1e-9


def decoupling() -> Claim:
    """Drive the arm with (31), its row of joint 3 as printed and as it should be."""
    own, (q, v), u = plant(), bent_and_moving(), np.ones(plant().m)
    mass, h = split_mass(own.mass_matrix(q), own.drives), own.bias(q, v)
    k = own.elastic_force(q)
    torque = mass.S_r @ u + h[: own.m] - mass.F.T @ (h + k)[own.m :]
    right = own.forward_dynamics(q, v, torque + k[: own.m])[: own.m] - u
    printed = own.forward_dynamics(q, v, torque)[: own.m] - u
    return Claim(
        id="equations 30, 31, 35",
        paper="with (31) the joints are double integrators, q_r'' = u_I",
        ours=f"bent and moving, to {max(np.abs(right).max(), 1e-16):.0e} with the force of the "
        f"length-dependent stiffness in the row of joint 3; as printed joint 3 is off by "
        f"{printed[2]:.3g} m/s^2, the revolute ones by {printed[0]:.2g} and {printed[1]:.2g} "
        "rad/s^2",
        verdict=judge(float(np.abs(printed).max()) < _SAME),
        why="the term that (26) leaves out couples the joints again wherever a sliding link bends",
        numbers={
            "right": float(np.abs(right).max()),
            **{f"printed_{j + 1}": float(printed[j]) for j in range(own.m)},
        },
    )


def joint_errors() -> Claim:
    """Compare the poles of (34) with those of (32) as our copy prints it."""
    Gp, Gv = STIFF
    right = float(np.roots([1, Gv, Gp]).real.max())
    printed = float(np.roots([1, Gv, Gv]).real.max())
    return misprint(
        "equations 32 to 34",
        "u_I = -G_v q_r - G_v q_r' + r, so that e'' + G_v e' + G_p e = 0",
        f"with Gp = {Gp:g}, Gv = {Gv:g} the slowest pole of a joint is {right:.4g} 1/s; with G_v "
        f"in both places {printed:.3g} 1/s, and r, which has G_p, asks for another place",
        "-G_p q_r - G_v q_r' + r; the accents of (33), the desired motion, are lost in our copy",
        right=right,
        printed=printed,
    )


def bounded_response() -> Claim:
    """Look at what oscillates behind the decoupled joints, frozen along the motion."""
    squares = held_squares(plant())
    least, most = (float(np.sign(w) * np.sqrt(abs(w))) for w in (squares.min(), squares.max()))
    return Claim(
        id="equation 36",
        paper="behind the decoupled joints q_f gives a bounded oscillatory response",
        ours="frozen at any pose of the motion, without damping, the roots of M_ff^-1 K are "
        f"real ({least:.3g} to {most:.3g} rad/s): so it oscillates. On an arm with more "
        "modes than the law knows it may grow: findings.md",
        verdict=judge(least > 0),
        why="of the model that the law is made of, and frozen; the paper quotes it",
        numbers={"least": least, "most": most},
    )


def second_loop() -> Claim:
    """Design the LQR of rrp-gentle at the end of the motion and look at its loop."""
    controller = design_controller(arm(), load_design("rrp-gentle"), TWO_MODES, interpreted=True)
    gain = controller.feedback.gain if controller.feedback else np.zeros((0, 0))
    model, m = linear(), plant().m
    n = len(model.M)
    M_rf, M_ff, K = model.M[:m, m:], model.M[m:, m:], model.K[m:, m:]
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, m))
    A[:n, n:], B[n : n + m] = np.eye(n), np.eye(m)
    A[n + m :, m:n], B[n + m :] = -np.linalg.solve(M_ff, K), -np.linalg.solve(M_ff, M_rf.T)
    before, after = (float(np.linalg.eigvals(F).real.max()) for F in (A, A - B @ gain))
    return Claim(
        id="equation 37",
        paper="u_II = -G_LQR dx, an n by 2(n + N) gain for (35), (36) linearised at the end, damps "
        "the flexible vibrations actively",
        ours=f"a gain of {gain.shape[0]} by {gain.shape[1]}; of the arm without damping the "
        f"largest real part goes from {abs(before):.1g} to {after:.3g} 1/s",
        verdict=judge(gain.shape == (m, 2 * n) and after < 0),
        why="weights are not printed: those of rrp-gentle; see findings.md for the arm with "
        "more modes than the law knows",
        numbers={"rows": gain.shape[0], "columns": gain.shape[1], "after": after},
    )
