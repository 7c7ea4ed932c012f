"""Misprints of [SM02], each shown by what it does to a number of the paper's own arm."""

from __future__ import annotations

import numpy as np

from examples.papers.claim import Claim, judge, misprint
from examples.papers.subudhi_morris.arm import arm, free_frequencies, linear, plant
from examples.papers.subudhi_morris.links import (
    clamped_frequencies,
    find_roots,
    line,
    link_alone,
    loads,
    right_frequencies,
)
from flexctl.checks import Array


def _pairs(right: Array, printed: Array) -> dict[str, float]:
    """Name two frequencies (2,) [rad/s] as they should be and as printed."""
    both = {"right": right, "printed": printed}
    return {f"{name}_{k}": float(w[k - 1]) for name, w in both.items() for k in (1, 2)}


def equation_19() -> Claim:
    """Compare strain energies with and without the square."""
    found = plant()
    q = found.pose({"link1.y.1": 0.01, "link1.y.2": 0.001})
    rest = np.zeros(found.n)
    energy = [found.energies(factor * q, rest)[1] for factor in (1.0, 2.0)]
    EI = line()[2]
    printed = [EI * found.deflections(factor * q)[1][0] for factor in (1.0, 2.0)]
    return misprint(
        "equation 19",
        "strain energy of a link: integral of EI v'' dx",
        f"a bend twice as large holds {energy[1] / energy[0]:.3g} times the energy; as printed "
        f"{printed[1] / printed[0]:.3g} times, and bent the other way it would be negative",
        "1/2 and the square of v'' are missing; as printed it gives no stiffness at all",
        right_ratio=energy[1] / energy[0],
        printed_ratio=printed[1] / printed[0],
    )


def equation_22() -> Claim:
    """Compare the energy of the springs with what is printed, a matrix."""
    found, springs = plant(), np.array([100.0, 50.0])
    wound = np.array([0.01, 0.02])
    right = float(wound @ np.diag(springs) @ wound) / 2
    printed = 0.5 * np.diag(springs) * (wound @ wound)
    q = found.pose({"rotor1": wound[0], "rotor2": wound[1]})
    own = found.energies(q, np.zeros(found.n))[1]
    equal = 100.0 * float(wound @ wound) / 2
    return misprint(
        "equation 22",
        "energy of the springs: 1/2 K_s (alpha - theta)'(alpha - theta)",
        f"springs of 100 and 50 N m/rad wound up by 10 and 20 mrad hold {1e3 * right:.4g} mJ; as "
        f"printed a matrix with {1e3 * printed[0, 0]:.3g} and {1e3 * printed[1, 1]:.3g} mJ. With "
        f"the paper's two equal springs both readings agree ({1e3 * own:.4g} mJ)",
        "K_s belongs between the two vectors",
        right=right,
        printed=printed[0, 0],
        right_equal=own,
        printed_equal=equal,
    )


def equation_29_30() -> Claim:
    """Swap the terms of M_D in the boundary conditions."""
    M, inertia, D = loads()
    right = right_frequencies()
    printed = clamped_frequencies((0.0, inertia + D), (M + D, 0.0))
    return misprint(
        "equations 29, 30",
        "at the tip EI v'' = -(I_E + M_D) d2v'/dt2, EI v''' = (M_E + M_D) d2v/dt2",
        f"link 1 alone: {right[0]:.4g} and {right[1]:.4g} rad/s; as printed {printed[0]:.4g} and "
        f"{printed[1]:.4g} rad/s",
        "M_D multiplies the other motion: the deflection in the moment, the slope in the force; "
        "as printed even the units differ",
        **_pairs(right, printed),
    )


def equation_31() -> Claim:
    """Exchange the powers of the length in the dimensionless loads."""
    length, _, _ = line()
    M, inertia, D = loads()
    right = right_frequencies()
    printed = clamped_frequencies((D / length, inertia * length), (M, D / length))
    return misprint(
        "equation 31",
        "I_E = I_L/(m l), M_DE = M_D/(m l^2)",
        f"link 1 alone at {printed[0]:.4g} and {printed[1]:.4g} rad/s instead of {right[0]:.4g} "
        f"and {right[1]:.4g}",
        "the powers of l are exchanged: I_L/(m l^2) and M_D/(m l) are numbers without unit",
        **_pairs(right, printed),
    )


def equation_37() -> Claim:
    """Compare phi(0), which the clamp makes zero."""
    shapes = plant().bodies[0].planes["y"]
    length, rho, EI = line()
    b = length * (right_frequencies()[0] * np.sqrt(rho / EI)) ** 0.5
    M, _, D = loads()
    unit = rho * length
    M, D = M / unit, D / (unit * length)
    s, c, sh, ch = np.sin(b), np.cos(b), np.sinh(b), np.cosh(b)
    gamma = (s - sh + M * b * (c - ch) - D * b**2 * (s + sh)) / (
        c + ch - M * b * (s - sh) - D * b**2 * (c - ch)
    )
    tip = c - ch + gamma * (s - sh)
    root = gamma * (0 - 1) / tip
    ours = float(shapes.value(0.0)[0, 0] / shapes.value(1.0)[0, 0])
    return misprint(
        "equation 37",
        "phi = cos - cosh + gamma (sinh - cosh)",
        f"at the clamp phi is {abs(ours):.1g} of its value at the tip; as printed {root:.3g}",
        "gamma multiplies sin - sinh",
        right=ours,
        printed=root,
    )


def equation_38_39() -> Claim:
    """Take beta for beta l in the frequency equation, and its printed last term."""
    length, rho, EI = line()
    M, inertia, D = loads()
    unit = rho * length
    M, inertia, D = M / unit, inertia / (unit * length**2), D / (unit * length)

    def equation(b: float, k: float, last: float) -> float:
        c, s, ch, sh = np.cos(b), np.sin(b), np.cosh(b), np.sinh(b)
        load = M * k * (s * ch - c * sh) + inertia * k**3 * (s * ch + c * sh)
        return 1 + c * ch - load + (M * inertia - D**2) * k**4 * (1 - c * ch) - last

    def right(b: float) -> float:
        return equation(b, b, 2 * D * b**2 * np.sin(b) * np.sinh(b))

    def printed(b: float) -> float:
        k = b / length
        return equation(b, k, 2 * D**2 * k**4 * np.sinh(b))

    scale = np.sqrt(EI / rho) / length**2
    ours, theirs = scale * find_roots(right, 2) ** 2, scale * find_roots(printed, 2) ** 2
    return misprint(
        "equations 38, 39",
        "frequency equation in beta, last term 2 M_DE^2 beta^4 sinh(beta l)",
        f"link 1 alone at {theirs[0]:.4g} rad/s, the right form gives {ours[0]:.4g} (and with it "
        f"{right_frequencies()[0]:.4g} from (29), (30))",
        "all arguments are beta l, and the last term is 2 M_DE (beta l)^2 sin sinh [TG95]; signs "
        "lost in our copy of the paper are taken as right",
        right_1=ours[0],
        printed_1=theirs[0],
    )


def equation_40_46() -> Claim:
    """Compare stiffness with w^2 m where only the beam's mass is normalised."""
    found = plant()
    q = np.zeros(found.n)
    K = found.elastic_stiffness(q)
    elastic = slice(found.rigid, None)
    length, rho, _ = line()
    right, printed = np.diag(K)[elastic], link_alone() ** 2 * rho * length
    wrong = K.copy()
    wrong[elastic, elastic] = np.diag(printed)
    frequencies = _locked(K)[0], _locked(wrong)[0]
    ratios = right / printed
    return misprint(
        "equations 40, 46",
        "shapes with int phi^2 dx = m_i, stiffness k_ij = w_ij^2 m_i",
        "read as rho int phi^2 dx = m, as units want, the stiffness of the modes is "
        f"{', '.join(f'{r:.3g}' for r in ratios)} times that; by (46) the arm with joints held "
        f"rings at {frequencies[1]:.3g} rad/s instead of {frequencies[0]:.3g}",
        "w^2 m holds only where the whole modal mass, tip load included, is normalised to m",
        ratio_11=ratios[0],
        ratio_12=ratios[1],
        ratio_21=ratios[2],
        ratio_22=ratios[3],
        right_frequency=frequencies[0],
        printed_frequency=frequencies[1],
    )


def _locked(K: Array) -> Array:
    """Frequencies [rad/s] of the arm with joints and rotors held, with another stiffness."""
    elastic = slice(plant().rigid, None)
    M = linear().M[elastic, elastic]
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, K[elastic, elastic])).real))


def equation_42() -> Claim:
    """Count the equations."""
    n, modes = 2, 2
    count = plant().n
    return misprint(
        "equation 42",
        "a set of 4n + 2 n_m differential equations",
        f"{count} for two links with two modes each, not {4 * n + 2 * modes}",
        "n rotor angles, n link angles and n n_m modal coordinates",
        right=count,
        printed=4 * n + 2 * modes,
    )


def equation_47() -> Claim:
    """Compare link 1 at a right angle of the joint with M_D = 0 and as printed."""
    length, rho, _ = line()
    M, inertia, _ = loads()
    left = rho * length * length / 2  # m_2 l_c2, which (47) keeps at a right angle
    right = clamped_frequencies((0.0, inertia), (M, 0.0))
    printed = clamped_frequencies((left, inertia), (M, left))
    return misprint(
        "equation 47",
        "M_DE1 = m_2 l_c2 + M_P l_2 cos(theta_2)",
        f"at theta_2 = 90 degrees link 1 alone at {right[0]:.4g} rad/s, as printed "
        f"{printed[0]:.4g}; at theta_2 = 0, where the paper takes its shapes, both are the same",
        "cos(theta_2) multiplies the whole bracket, so that M_D vanishes at a right angle",
        right_1=right[0],
        printed_1=printed[0],
    )


def equation_48() -> Claim:
    """Compare link 2 with the payload's inertia at the tip and a length away."""
    length, _, _ = line()
    payload = arm().payload
    right = clamped_frequencies((0.0, payload.inertia[2]), (payload.mass, 0.0))
    moved = payload.inertia[2] + payload.mass * length**2
    printed = clamped_frequencies((0.0, moved), (payload.mass, 0.0))
    return misprint(
        "equation 48",
        "I_E2 = I_P + M_P l^2",
        f"link 2 alone at {right[0]:.4g} and {right[1]:.4g} rad/s, as printed {printed[0]:.4g} "
        f"and {printed[1]:.4g}",
        "the payload sits at the tip: its inertia there is I_P",
        **_pairs(right, printed),
    )


def equation_53_55() -> Claim:
    """Compare the limit of stiff joints with rigid joints that have J and have not."""
    limit = free_frequencies(linear("links.flexible_joint.stiffness=1e8"))[:4]
    with_J = free_frequencies(linear(rigid_joints=True))[:4]
    without = free_frequencies(linear("links.joint_inertia=0", rigid_joints=True))[:4]
    return Claim(
        id="equations 53 to 55",
        paper="as k_s grows, (53) and (54) reduce to (55), M with the links' terms alone",
        ours=f"the first frequency tends to {limit[0]:.4f} rad/s; with J on the joint rows "
        f"{with_J[0]:.4f}, without, as printed, {without[0]:.4f}",
        verdict=judge(bool(np.abs(without / limit - 1).max() < 1e-3)),
        why="misprint: the torque turns the rotor too, so J must be added to the joint rows of M",
        numbers={
            "limit": float(limit[0]),
            "with_J": float(with_J[0]),
            "without_J": float(without[0]),
        },
    )
