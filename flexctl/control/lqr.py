"""Linear-quadratic state feedback with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.linalg
import slycot

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.control.least_effort import least_effort_solution
from flexctl.control.path_schedule import GainSchedule
from flexctl.errors import DesignError
from flexctl.model import Solver

_LARGEST_RESIDUAL = 1e-6
_LARGEST_WITH_DECAY = 1e-7
_SMALLEST_PBH = 1e-12  # smallest singular value, relative to the larger norm of A and B
_BEYOND = 1e-7  # of the largest pole: how far right of its line round-off may move a pole


@dataclass(frozen=True, kw_only=True)
class StateFeedback:
    """u = -gain x with the Riccati solution it comes from.

    With a prescribed decay a > 0 the Riccati equation is that of A + a I in place of A.
    """

    gain: Array  # G (m, n)
    cost: Array  # Riccati solution P (n, n), positive semidefinite
    poles: ComplexArray  # eigenvalues of A - B G [rad/s], (n,)
    residual: float  # |A'P + PA - PBR^-1B'P + Q| / |Q|, Frobenius norms; / (|Q| + |2 A'P|) if a > 0
    solver: str  # of the Riccati equation; "least effort" if Q = 0
    decay: float = 0.0  # a [1/s]: no pole is right of -a
    schedule: GainSchedule | None = None  # of gains that follow a path, at whose end the rest holds


@dataclass(frozen=True, kw_only=True)
class GivenFeedback:
    """u = -gain x with a gain that was given: it has no Riccati solution."""

    gain: Array  # G (m, n)
    poles: ComplexArray  # eigenvalues of A - B G [rad/s], (n,)


def given_feedback(A: Array, B: Array, gain: Array) -> GivenFeedback:
    """Close x' = A x + B u, (n, n) and (n, m), by a given gain (m, n), which need not be stable."""
    return GivenFeedback(gain=gain, poles=np.linalg.eigvals(A - B @ gain).astype(complex))


def design_lqr(
    A: Array,
    B: Array,
    state_weight: Array,
    input_weight: Array,
    *,
    decay: float = 0.0,
    solver: Solver = "scipy",
    names: tuple[str, ...] | None = None,
    loop: str = "second loop",
) -> StateFeedback:
    """Minimise the integral of e^(2 a t) (x' Q x + u' R u) over an infinite horizon.

    For x' = A x + B u with a = `decay` [1/s]: the LQR of A + a I, so that no pole of A - B G is
    right of -a. Without a state weight, Q = 0, poles right of that line are mirrored about it, to
    -2 a - conj(lambda), and the others stay: the least effort that moves them.

    A (n, n), B (n, m), Q (n, n) positive semidefinite, R (m, m) positive definite; `names` of the
    n states stand in messages. Sources: [AndersonMoore69], [AndersonMoore90].

    Raises
    ------
    DesignError
        When a mode that is not stable, or decays slower (named), is uncontrollable, or unobservable
        in Q, or the Riccati equation is not solved to a relative residual of 1e-6, and of 1e-7
        with a decay.
    """
    Q = checks.semidefinite("state_weight", state_weight, size=len(A))
    R = checks.definite("input_weight", input_weight, size=B.shape[1])
    require_stabilisable(A, B, names, loop, decay)
    A_s, least = A + decay * np.eye(len(A)), bool(decay) and not Q.any()
    how = "least effort" if least else solver
    if least:
        P = least_effort_solution(A_s, B, R, loop)
    else:
        P = _riccati(solver, A_s, B, Q, R, loop, decay)
    gain: Array = np.linalg.solve(R, B.T @ P)
    rest, size = A_s.T @ P + P @ A_s - gain.T @ R @ gain + Q, np.linalg.norm(Q)
    size += 2 * np.linalg.norm(A_s.T @ P) if decay else 0.0
    residual = float(np.linalg.norm(rest) / size) if size else 0.0
    poles: ComplexArray = np.linalg.eigvals(A - B @ gain).astype(complex)
    if residual > (_LARGEST_WITH_DECAY if decay else _LARGEST_RESIDUAL):
        raise DesignError(
            f"{loop}: the Riccati equation is solved by {how} to a relative residual of "
            f"{residual:.1e} only; {_advice(decay, least=least)}"
        )
    _require_decay(poles, decay, loop, least=least)
    return StateFeedback(gain=gain, cost=P, poles=poles, residual=residual, solver=how, decay=decay)


def _advice(decay: float, *, least: bool) -> str:
    if least:
        return "try a smaller decay"
    other = "a smaller decay, " if decay else ""
    return f"try {other}the other solver, or weights closer in size"


def _require_decay(poles: ComplexArray, decay: float, loop: str, *, least: bool) -> None:
    """Refuse poles (n,) right of -decay: without a state weight, by more than round-off."""
    slack = _BEYOND * float(np.abs(poles).max(initial=0.0)) if decay else 0.0
    worst = poles[poles.real.argmax()]
    if worst.real < slack - decay:
        return
    # without decay an undamped mode that is unobservable in Q stays undamped
    weigh = "give every kind of motion a weight above zero"
    if decay:
        other = "" if least else f", or {weigh}"
        why = f"right of its decay of {decay:g} 1/s; choose a smaller one{other}"
    else:
        why = f"which the weights do not penalise; {weigh}"
    raise DesignError(f"{loop}: the closed loop keeps a pole at {worst:.4g} rad/s, {why}")


def design_scaled_lqr(
    A: Array,
    B: Array,
    state_weight: Array,
    input_weight: Array,
    scaling: tuple[Array, Array],
    *,
    positions: tuple[str, ...],
    others: tuple[str, ...] = (),
    loop: str,
    decay: float = 0.0,
    solver: Solver = "scipy",
) -> StateFeedback:
    """Solve `design_lqr` for y with x = T y, `scaling` being T (n, n) and its inverse.

    `positions` names the entries of y whose rates follow, and then `others`.
    """
    T, inverse = scaling
    Q = T.T @ state_weight @ T
    names = positions + tuple(f"rate of {name}" for name in positions) + others
    A, B = inverse @ A @ T, inverse @ B
    found = design_lqr(
        *(A, B, (Q + Q.T) / 2, input_weight), decay=decay, solver=solver, names=names, loop=loop
    )
    P = inverse.T @ found.cost @ inverse
    return replace(found, gain=found.gain @ inverse, cost=(P + P.T) / 2)


def require_stabilisable(
    A: Array,
    B: Array,
    names: tuple[str, ...] | None = None,
    loop: str = "second loop",
    decay: float = 0.0,
) -> None:
    """Refuse a pair (A, B) with a mode that no input moves and that is not stable.

    With a decay [1/s] above 0 also one that decays slower.

    By the Popov-Belevitch-Hautus test: [A - lambda I, B] loses rank at such a mode's lambda. The
    rank of the controllability matrix would refuse flexible arms that are perfectly stabilisable.
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    found = _unmoved(A.tobytes(), B.tobytes(), len(A), decay) if len(A) else None
    if found is None:
        return
    value, state = found
    label = names[state] if names else f"state {state + 1}"
    slow = value.real < -1e-12 * max(abs(value), 1.0)
    how = (
        f"decays at {-value.real:.4g} 1/s, slower than {decay:g} 1/s," if slow else "is not stable"
    )
    out = "a smaller decay" if slow else "damping"
    raise DesignError(
        f"{loop}: the mode at {abs(value):.4g} rad/s ({label}) {how} and "
        f"the joints cannot move it; give it {out} or another pose"
    )


@lru_cache(maxsize=64)  # other weights have the same plant
def _unmoved(A: bytes, B: bytes, n: int, decay: float) -> tuple[complex, int] | None:
    """Return an eigenvalue that no input moves, and the state that moves most in its mode."""
    plant, inputs = (np.frombuffer(part).reshape(n, -1) for part in (A, B))
    values, right = np.linalg.eig(plant)
    size = max(float(np.linalg.norm(plant, 2)), float(np.linalg.norm(inputs, 2)))
    for value, x in zip(values, right.T, strict=True):
        if value.real + decay < -1e-12 * max(abs(value), 1.0):
            continue
        pencil = np.hstack([plant - value * np.eye(n), inputs])
        if scipy.linalg.svdvals(pencil)[-1] <= _SMALLEST_PBH * size:
            return complex(value), int(np.abs(x).argmax())
    return None


def _riccati(
    solver: Solver, A: Array, B: Array, Q: Array, R: Array, loop: str, decay: float
) -> Array:
    """Stabilising solution P (n, n); DesignError where the solver finds none."""
    try:
        return _SOLVERS[solver](A, B, Q, R)
    except (np.linalg.LinAlgError, ArithmeticError, ValueError) as error:
        raise DesignError(
            f"{loop}: {solver} finds no stabilising solution of the Riccati equation "
            f"({' '.join(str(error).split())}); "
            + ("choose a smaller decay, or " if decay else "")
            + "give every kind of motion a weight above zero"
        ) from error


def _slycot_riccati(A: Array, B: Array, Q: Array, R: Array) -> Array:
    G = B @ np.linalg.solve(R, B.T)
    return slycot.sb02md(len(A), A, (G + G.T) / 2, Q, "C")[0]


def _scipy_riccati(A: Array, B: Array, Q: Array, R: Array) -> Array:
    try:
        return scipy.linalg.solve_continuous_are(A, B, Q, R)
    except (
        np.linalg.LinAlgError,
        ValueError,
    ):  # its scaling may spoil the order of eigenvalues that is needed
        return scipy.linalg.solve_continuous_are(A, B, Q, R, balanced=False)


_SOLVERS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "scipy": _scipy_riccati,
    "slycot": _slycot_riccati,
}


def modal_scaling(M: Array, K: Array, slowest: float = 0.0) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: [q; q'] = T y, with y of one size in modes of equal energy.

    Deflections and rates of fine meshes differ by 1e5 in size, with which no Riccati solver
    copes; modal displacements times their frequency and modal rates are of one size.
    M (n, n) is positive definite, K (n, n) symmetric; `slowest` [rad/s] scales slower motions, such
    as rigid ones.
    """
    w_squared, Phi = scipy.linalg.eigh(K, M)
    w = np.sqrt(np.maximum(np.abs(w_squared), max(slowest**2, np.finfo(float).tiny)))
    to_modes, none = Phi.T @ M, np.zeros_like(Phi)
    T = np.block([[Phi / w, none], [none, Phi]])
    return T, np.block([[w[:, None] * to_modes, none], [none, to_modes]])
