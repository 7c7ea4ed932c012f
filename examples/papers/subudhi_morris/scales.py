"""Section 4 of [SM02] and the laws of section 5: claims about the two time scales."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.linalg
from scipy.integrate import solve_ivp

from examples.papers.claim import Claim, judge
from examples.papers.subudhi_morris.arm import arm, free_frequencies, linear, plant
from examples.papers.subudhi_morris.links import line, link_alone
from flexctl.checks import Array
from flexctl.control.reference import make_reference
from flexctl.control.singular_perturbation import TwoTimeScales, separate_time_scales
from flexctl.model.lookup import load_design
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

PRINTED = "subudhi-morris-printed"
TORQUE = np.array([0.2, 0.2])  # N m
SPEED_RATIO = 10.0  # of fast and slow motion, from which on one speaks of two time scales


@cache
def scales(elbow: float = 0.0) -> TwoTimeScales:
    """Split the paper's arm into slow link angles and fast deflections at theta_2 = `elbow`."""
    return separate_time_scales(plant(), np.array([0.0, elbow]), "link")


def fast_state(found: TwoTimeScales) -> Array:
    """State matrix (2 n_z, 2 n_z) of [k_c (z - z_qs); its rate in fast time t/mu].

    It is (67) of [SM02], corrected: springs' rows hold -(H11 + J^-1) K_s / k_c and
    + H12 K_w / k_c, because the links accelerate too.
    """
    K, D = found.H_f @ found.K_z / found.k_c, found.mu * found.H_f @ found.D_z
    return np.block([[np.zeros_like(K), np.eye(len(K))], [-K, -D]])


def small_parameter() -> Claim:
    """Find the small parameter."""
    found, w = scales(), free_frequencies(linear())
    alone = [*link_stiffness_46(), 100.0, 100.0]
    k_c = min(alone)
    gains = load_design(PRINTED).joint_gains
    slow = float(np.sqrt(max(gains.Gp)))
    return Claim(
        id="section 4, epsilon",
        paper="epsilon = 1/k_c with k_c the least of all stiffnesses is a small parameter",
        ours=f"by (46) k_c = {k_c:.3g}, epsilon = {1 / k_c:.2g}, mu = {k_c**-0.5:.2g}; with mode "
        f"shapes of mean square 1 k_c = {found.k_c:.3g}, mu = {found.mu:.2g}. The slowest "
        f"vibration, {w[0]:.3g} rad/s, is {w[0] / slow:.2g} times as fast as the slow loop",
        verdict=judge(bool(w[0] / slow > SPEED_RATIO)),
        why="epsilon has units (m/N and rad/(N m) at once) and changes with the normalisation of "
        "modes; only ratios of frequencies tell time scales apart, and here they lie near",
        numbers={
            "epsilon": 1 / k_c,
            "epsilon_own": found.epsilon,
            "ratio": float(w[0] / slow),
        },
    )


def link_stiffness_46() -> Array:
    """Return w^2 m of the four modes (4,) as (46) has it [N/m]."""
    length, rho, _ = line()
    return link_alone() ** 2 * rho * length


def equation_63() -> Claim:
    """Compare the quasi-steady wind-up with and without the acceleration of the link."""
    found = scales()
    u = np.linalg.solve(found.M_s, TORQUE)
    right = (found.manifold @ u)[:2]
    printed = TORQUE / np.diag(found.K_z)[:2]
    from_64 = (TORQUE - 0.02 * u) / np.diag(found.K_z)[:2]
    return Claim(
        id="equation 63",
        paper="epsilon sigma'' = -J^-1 K_s sigma + J^-1 tau",
        ours=f"0.2 N m on both rotors wind the springs up by {1e3 * right[0]:.3g} and "
        f"{1e3 * right[1]:.3g} mrad, as (64) has it; by (63) by {1e3 * printed[0]:.3g} and "
        f"{1e3 * printed[1]:.3g} mrad",
        verdict=judge(bool(np.allclose(printed, right, rtol=1e-6))),
        why="misprint: - theta'' is missing, so that no torque is left to turn the rotor; (64) "
        "has it again",
        numbers={
            "right_1": right[0],
            "right_2": right[1],
            "printed_1": printed[0],
            "printed_2": printed[1],
            "by_64_1": from_64[0],
            "by_64_2": from_64[1],
        },
    )


def equation_66() -> Claim:
    """Compare M11 + J with the mass of the arm with links and joints that are rigid."""
    found = plant()
    q = found.pose({"joint2": 0.7, "rotor2": 0.7})
    M = found.mass_matrix(q)
    S = found.straight(np.eye(2))
    error = float(np.abs(M[:2, :2] + M[2:4, 2:4] - S.T @ M @ S).max())
    return Claim(
        id="equation 66",
        paper="slow subsystem (M11 + J) theta'' + f1 = tau",
        ours=f"that is the rigid arm with its rotors: equal to {max(error, 1e-17):.0e} kg m^2",
        verdict=judge(error < 1e-12),
        why="",
        numbers={"error": error},
    )


def fast_stiffness() -> tuple[Array, Array]:
    """Return A of z'' = -A z, z = [wind-ups (2); modes (4)], as (67) prints it and corrected."""
    K, r = scales().K_z, 2
    M = linear().M  # theta, alpha, q: rotors are coupled to nothing by inertia
    links = [0, 1, *range(4, 8)]
    H, J = np.linalg.inv(M[np.ix_(links, links)]), M[2:4, 2:4]
    Ks, Kw = K[:r, :r], K[r:, r:]
    lower = np.hstack([-H[2:, :2] @ Ks, H[2:, 2:] @ Kw])
    printed = np.hstack([np.linalg.solve(J, Ks), np.zeros((2, 4))])
    right = np.hstack([(H[:2, :2] + np.linalg.inv(J)) @ Ks, -H[:2, 2:] @ Kw])
    return np.vstack([printed, lower]), np.vstack([right, lower])


def equation_67() -> Claim:
    """Compare the frequencies of the fast subsystem as printed, corrected, and of the arm."""
    squares = [np.linalg.eigvals(A).real for A in fast_stiffness()]
    printed, right = (np.sqrt(np.sort(w2)) for w2 in squares)
    own = free_frequencies(linear())
    return Claim(
        id="equation 67",
        paper="fast subsystem with - J^-1 K_s alone in the rows of sigma",
        ours=f"as printed its frequencies are {_listed(printed)} rad/s; corrected they are "
        f"{_listed(right)}, those of the arm ({_listed(own)})",
        verdict=judge(bool(np.abs(printed / own - 1).max() < 1e-6)),
        why="misprint: the links accelerate too; the rows are + H12 K_w and - (H11 + J^-1) K_s",
        numbers={f"printed_{k}": float(w) for k, w in enumerate(printed, 1)}
        | {f"right_{k}": float(w) for k, w in enumerate(right, 1)}
        | {f"arm_{k}": float(w) for k, w in enumerate(own, 1)},
    )


def _listed(values: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def controllable() -> Claim:
    """Test by Popov, Belevitch and Hautus, along theta_2."""
    elbows = np.linspace(0, np.pi, 13)
    least = [distance_from_uncontrollable(scales(float(e))) for e in elbows]
    return Claim(
        id="section 5, controllability",
        paper="the fast subsystem is completely controllable",
        ours=f"over theta_2 = 0 .. 180 degrees the least singular value of [lambda - A, B] is "
        f"{min(least):.2g}, in modes of unit energy and in units of the strongest mode's input",
        verdict=judge(min(least) > 1e-6),
        why="test of Popov, Belevitch and Hautus; 0 would be a mode that no torque reaches",
        numbers={"least": min(least)},
    )


def distance_from_uncontrollable(found: TwoTimeScales) -> float:
    """Return the smallest PBH singular value, with modes of unit energy, over the largest input.

    In modal coordinates x = [w eta; eta'] the system is lightly damped rotations, and what
    [lambda - A, B] lacks in rank is what the inputs lack.
    """
    w2, Phi = scipy.linalg.eigh(found.K_z, found.M_f)
    w, n = np.sqrt(w2), len(w2)
    inputs = Phi.T @ found.M_f @ found.b_f
    A = np.block([[np.zeros((n, n)), np.diag(w)], [-np.diag(w), np.zeros((n, n))]])
    B = np.vstack([np.zeros_like(inputs), inputs]) / np.abs(inputs).max()
    tested = (np.hstack([1j * x * np.eye(2 * n) - A, B]) for x in w)
    return float(min(np.linalg.svd(pencil, compute_uv=False)[-1] for pencil in tested))


def equation_69() -> Claim:
    """Track with the printed slow law, without f1, and with it, on the rigid arm."""
    errors = {f1: _slow_error(f1) for f1 in (False, True)}
    return Claim(
        id="equation 69",
        paper="slow law (M11 + J) (theta_d'' + K_vs e' + K_ps e)",
        ours=f"on the rigid arm joints are off by up to {1e3 * errors[False]:.3g} mrad; with f1 "
        f"added by {1e3 * errors[True]:.1g} mrad",
        verdict=judge(errors[False] < 1e-6),
        why="misprint: computed torque needs the Coriolis and centrifugal torques f1 of (66)",
        numbers={"without": errors[False], "with": errors[True]},
    )


@cache
def _slow_error(f1: bool) -> float:
    """Largest joint error [rad] of the rigid arm under (69), with or without f1."""
    design = load_design(PRINTED)
    reference, gains = make_reference(design), design.joint_gains
    rigid = assemble_plant(arm(rigid_joints=True).rigid, BasisChoice(order=1), interpreted=True)

    def rates(t: float, x: Array) -> Array:
        expected, rate, acceleration = (w[:, 0] for w in reference.sample(np.array([t])))
        e, de = x[:2] - expected, x[2:] - rate
        u = acceleration - np.array(gains.Gv) * de - np.array(gains.Gp) * e
        h = np.zeros(2) if f1 else rigid.bias(x[:2], x[2:])
        return np.concatenate([x[2:], u - np.linalg.solve(rigid.mass_matrix(x[:2]), h)])

    times = np.linspace(0, 4, 201)
    run = solve_ivp(rates, (0, 4), np.zeros(4), t_eval=times, rtol=1e-9, atol=1e-12)
    return float(np.abs(run.y[:2] - reference.sample(times)[0]).max())


def equation_70() -> Claim:
    """Count the columns of the printed gains."""
    loop = load_design(PRINTED).fast_loop
    columns = len(loop.columns or ()) if loop else 0
    states = len(fast_state(scales()))
    return Claim(
        id="equation 70",
        paper="tau_f = K_pf x_f + K_vf dx_f/dt_f",
        ours=f"the printed gains have {columns} columns, x_f has {states} entries",
        verdict=judge(columns == states),
        why="read as K_pf on the six fast positions and K_vf on their rates",
        numbers={"columns": columns, "states": states},
    )


def equation_71() -> Claim:
    """Look at the ends of the reference."""
    reference = make_reference(load_design(PRINTED))
    position, rate, acceleration = reference.sample(np.array([0.0, reference.duration]))
    jump, end = float(max(np.abs(rate).max(), np.abs(acceleration).max())), position[:, 1]
    return Claim(
        id="equation 71",
        paper="quintic from 0 to pi/2 and pi/6 in 2 s",
        ours=f"rates and accelerations vanish at both ends (to {max(jump, 1e-17):.0e}); it ends at "
        f"{end[0]:.4f} and {end[1]:.4f} rad",
        verdict=judge(jump < 1e-9),
        why="",
        numbers={"jump": jump, "end_1": end[0], "end_2": end[1]},
    )
