"""Section 4.2 of [TG95]: the frequency equation where it varies, and its differential form."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.carried_roots import carry_roots
from examples.papers.theodore_ghosal.mode_rates import sliding
from examples.papers.theodore_ghosal.root_rate import root_rate
from flexctl.beam.frequency_equation import (
    clamped_mass_roots,
    count_roots_below,
    equation_terms,
    roots_along,
)
from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.checks import Array
from flexctl.model.lookup import load_model

RRP = "theodore-ghosal-rrp"
LINE = SlidingLine(mass_per_length=0.331, mass=0.0828)  # link 3 of the RRP arm and its payload
START, END, DURATION = 0.3, 1.0, 0.5  # the paper's slide [m], [s]
LOAD = TipLoad(mass=1.2, inertia=0.5, offset=0.4)  # a body of links, all three numbers at work
EQUAL = 1e-10  # relative error below which two ways to the same number agree


def slide(t: float) -> tuple[float, float]:
    """Free length [m] and its rate [m/s] along the paper's cycloid."""
    s = 2 * np.pi * t / DURATION
    way = END - START
    return START + way * (s - np.sin(s)) / (2 * np.pi), way / DURATION * (1 - np.cos(s))


def printed_mode(beta: float, xi: Array, load: TipLoad) -> Array:
    """Evaluate (9) with (10) as they are printed, C_i left out."""
    M, D = load.mass, load.offset
    s, c, sh, ch = np.sin(beta), np.cos(beta), np.sinh(beta), np.cosh(beta)
    above = s - sh + M * beta * (c - ch) - D * beta**2 * (s + sh)
    below = c + ch - M * beta * (s - sh) - D * beta**2 * (c - ch)
    x = beta * xi
    return np.cos(x) - np.cosh(x) + above / below * (np.sin(x) - np.sinh(x))


def printed_rates(beta: float, load: TipLoad) -> Array:
    """Evaluate (41) to (44) as they are printed: by M, J, D and beta."""
    M, J, D = load.mass, load.inertia, load.offset
    s, c, sh, ch = np.sin(beta), np.cos(beta), np.sinh(beta), np.cosh(beta)
    free, H = 1 - ch * c, D**2 - M * J
    return np.array(
        [
            beta * (sh * c - ch * s + beta**3 * J * free),
            -(beta**3) * (sh * c + ch * s - beta * M * free),
            -2 * beta**2 * (sh * s + beta**2 * D * free),
            sh * c * (1 + M - beta**2 * (2 * D + 3 * J) + beta**4 * H)
            - ch * s * (1 + M + beta**2 * (2 * D + 3 * J) + beta**4 * H)
            - 2 * beta**3 * ch * c * (J - 2 * H)
            - 2 * beta * sh * s * (M + 2 * D)
            - 4 * beta**3 * H,
        ]
    )


def equations_9_11() -> Claim:
    """Compare the printed modes with those of an independent eigenvalue count and energy."""
    load = LoadPath.through(LOAD)
    modes, xi = find_moving_modes(4, load), np.linspace(0, 1, 41)
    off = []
    for i, exact in enumerate(modes.evaluate(xi)[0]):
        printed = printed_mode(modes.beta[0, i], xi, LOAD)
        printed *= exact[-1] / printed[-1]
        off.append(np.abs(printed - exact).max() / np.abs(exact).max())
    left = np.abs(equation_terms(modes.beta, load.parts)[0]).max()
    worst = float(max(off))
    return Claim(
        id="equations 9 to 11",
        paper="modes (9) with nu (10) and beta from (11), D > 0 for a mass beyond the tip",
        ours=f"with M = {LOAD.mass:g}, J = {LOAD.inertia:g}, D = {LOAD.offset:g} the four lowest "
        f"are ours within {worst:.1g}; roots counted by Wittrick and Williams leave {left:.1g} of "
        "(11) / cosh",
        verdict=judge(worst < 1e-8 and left < 1e-11),
        why="right as printed; (10) is 0/0 where the shear at the tip vanishes for every wave, and "
        "(9) is the difference of growing waves: from the tenth mode on its digits are gone",
        numbers={"shapes": worst, "residual": float(left)},
    )


def equations_40_44() -> Claim:
    """Compare the printed derivatives with differences, and integrated roots with found ones."""
    beta, h = 4.1, 1e-5
    names = ("mass", "inertia", "offset")

    def value(at: float, **change: float) -> float:
        numbers = {name: getattr(LOAD, name) + change.get(name, 0.0) for name in names}
        load = LoadPath.through(TipLoad(**numbers))
        return float(equation_terms(np.array([[at]]), load.parts)[0][0, 0] * np.cosh(at))

    found = [(value(beta, **{n: h}) - value(beta, **{n: -h})) / (2 * h) for n in names]
    found.append((value(beta + h) - value(beta - h)) / (2 * h))
    off = float(np.abs(np.array(found) / printed_rates(beta, LOAD) - 1).max())
    error = integrated_error(1.0)
    return Claim(
        id="equations 40 to 44",
        paper="d(beta)/dt = -(f_M M' + f_J J' + f_D D') / f_beta",
        ours=f"(41) to (44) agree with differences of (38) within {off:.1g}; integrated along the "
        f"slide of 0.5 s at a tolerance of 1e-13, (40) ends within {error:.1g} of the roots",
        verdict=judge(off < 1e-7 and error < 1e-11),
        why="right as printed; it is -lambda (M' w^2 + 2 D' w w' + J' w'^2) of lambda = beta^4, "
        "with the mode's deflection and slope at the tip",
        numbers={"derivatives": off, "drift": error},
    )


@cache
def integrated_error(power: float) -> float:
    """Largest relative error of two roots after the slide by (45) to (47), m_p^power in (47)."""
    return float(np.abs(_integrated(power) / sliding_roots(END) - 1).max())


def sliding_roots(length: float) -> Array:
    """Return two wave numbers (2,) of the RRP arm's link 3 at one length [m]."""
    return roots_along(2, LINE.loads([length]))[0]


@cache
def _integrated(power: float) -> Array:
    """Integrate (45) to (47) over cosh."""

    def rate(t: float, beta: Array) -> Array:
        length, speed = slide(t)
        m, unit = LINE.mass, LINE.mass_per_length * length
        s, c, th = np.sin(beta), np.cos(beta), np.tanh(beta)
        above = m / (unit * length) * beta * (th * c - s)
        below = (1 + m**power / unit) * (th * c - s) - 2 * m / unit * beta * th * s
        return above / below * speed

    run = solve_ivp(
        rate, (0, DURATION), sliding_roots(START), method="DOP853", rtol=1e-13, atol=1e-15
    )
    return run.y[:, -1]


def equations_45_46() -> Claim:
    """Compare (45) and (46) with the general form."""
    off = []
    for length in (0.1, 0.3, 1.0):
        path, beta = LINE.loads([length]), sliding_roots(length)
        M = path.mass[0, 0]
        s, c, th = np.sin(beta), np.cos(beta), np.tanh(beta)
        ratio = M / length * beta * (th * c - s) / ((1 + M) * (th * c - s) - 2 * M * beta * th * s)
        off.append(np.abs(ratio * length / root_rate(beta[None], sliding(path))[0] - 1).max())
    worst = float(max(off))
    return Claim(
        id="equations 45, 46",
        paper="of a point mass on the sliding link d(beta)/dt = f_1 / f_2 l', f_1 by (46)",
        ours=f"(40) is f_1 / f_2 with (46) and m_p in (47), within {worst:.1g}",
        verdict=judge(worst < EQUAL),
        why="M' = -M l'/l turns the sign of (41) into that of (46)",
        numbers={"off": worst},
    )


def equation_47() -> Claim:
    """Integrate (45) with (47) as printed and as it must be."""
    off = _integrated(2.0) / sliding_roots(END) - 1
    right, frequency = integrated_error(1.0), (1 + off[0]) ** 2 - 1
    return Claim(
        id="equation 47",
        paper="f_2 holds 1 + m_p^2 / (rho_3 A_3 l_3)",
        ours=f"with m_p the roots end right within {right:.1g}; as printed beta_1 ends "
        f"{100 * off[0]:.3g} % and beta_2 {100 * off[1]:.2g} % too high, the first frequency "
        f"{100 * frequency:.3g} %",
        verdict=judge(bool(np.abs(off).max() < EQUAL)),
        why="misprint: m_p^2 / (rho A l) is no number, m_p / (rho A l) is",
        numbers={"beta_1": float(off[0]), "beta_2": float(off[1]), "frequency": float(frequency)},
    )


def double_root(beta: float) -> TipLoad:
    """Return the load under which beta is a double root: its tip balances every deflection."""
    s, c, sh, ch = np.sin(beta), np.cos(beta), np.sinh(beta), np.cosh(beta)
    clamped = 1 - ch * c
    return TipLoad(
        mass=(ch * s + sh * c) / (beta * clamped),
        inertia=(ch * s - sh * c) / (beta**3 * clamped),
        offset=-sh * s / (beta**2 * clamped),
    )


def distinct() -> Claim:
    """Look for two equal roots."""
    beta = 1.5
    load = double_root(beta)
    count = int(count_roots_below(np.array([beta + 1e-6]), load)[0])
    gap = float(np.ptp(clamped_mass_roots(2, load)))
    slope = float(equation_terms(np.array([[beta]]), LoadPath.through(load).parts)[1][0, 0])
    sliding = np.diff(roots_along(3, LINE.loads(np.linspace(START, END, 29))), axis=1).min()
    return Claim(
        id="section 4.2, distinct roots",
        paper="the roots of the frequency equation are all distinct, so that (40) holds",
        ours=f"M = {load.mass:.4g}, J = {load.inertia:.4g}, D = {load.offset:.4g} is a body (M J - "
        f"D^2 = {load.determinant:.2g}) and has {count} roots at {beta:g}, {gap:.1g} apart, where "
        f"f_beta = {slope:.1g}. Along the paper's slide they stay {sliding:.3g} apart",
        verdict=judge(count < 2),
        why="a body that reaches back over the link (D < 0, the next link folded in) can balance "
        "force and moment of every deflection of the tip. There M + beta^2 J and -D "
        "have one sign, so that with D >= 0 it cannot",
        numbers={"count": count, "gap": gap, "slope": slope, "sliding": float(sliding)},
    )


def solved_together() -> Claim:
    """Compare the arm's accelerations with carried and with found wave numbers."""
    carried = carry_roots(load_model(RRP), 1)
    rng = np.random.default_rng(0)
    q, v = 0.01 * rng.normal(size=(2, carried.plant.n)) * [[1.0], [100.0]]
    q[2] = 0.5
    beta = carried.roots(0.5)
    a = np.array(carried.motion(q, v, np.ones(3), beta)[0]).ravel()
    expected = carried.plant.forward_dynamics(q, v, np.ones(3))
    off = float(np.abs(a - expected).max() / np.abs(expected).max())
    drift = integrated_error(1.0)
    return Claim(
        id="section 4.2, solved together",
        paper="(40) can be solved together with the equations of motion",
        ours=f"as further states the wave numbers give the accelerations of root finding within "
        f"{off:.1g}; after 0.5 s at a tolerance of 1e-13 they are off by {drift:.1g}",
        verdict=judge(off < EQUAL),
        why="nothing brings a wave number back to its root, so errors add up (benchmarks/"
        "sliding_bases.py: in proportion to tolerance and number of slides), and beta depends on "
        "the length alone: as a state it says nothing that the pose does not",
        numbers={"accelerations": off, "drift": drift},
    )
