"""Search for the smallest errors that make a loop unstable: an upper bound of its margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

FirstCrossing = Callable[[UncertainLoop], float]

LARGEST = 100.0  # errors beyond 10 000 % are not searched
_FROM_NOTHING = np.geomspace(1e-3, LARGEST, 26)
_FRACTIONS = np.array([0.3, 0.6, 0.9, 0.999])  # of the best size: where a direction is tried
_BELOW = 0.99  # of the best size: smaller errors, among which an unstable one is searched
_VERIFIED = 1e-3  # relative distance from the crossing at which both sides are verified
_RESOLUTION = 1e-14  # of bisection, relative
_N_ROUNDS = 40
_N_RANDOM = 64
_N_LEADING = 5


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """The smallest errors found that bring a pole onto the imaginary axis; smaller ones may exist.

    Attributes
    ----------
    gamma
        Largest of |delta_i| [-]; the loop's margin is not above it.
    names, delta
        Errors (p,) [-]; gamma is the largest |delta_i|.
    eigenvalue
        That pole, in units of the loop's A, with Im >= 0.
    frequency
        Of that pole [rad/s].
    verified
        Whether the loop is unstable at 1.001 delta and stable at 0.999 delta by its eigenvalues,
        each error kept within the range of its parameter.
    tried
        Number of directions tried.
    """

    gamma: float
    names: tuple[str, ...]
    delta: Array
    eigenvalue: complex
    frequency: float
    verified: bool
    tried: int


def bracketed_crossing(loop: UncertainLoop) -> float:
    """Smallest t > 0 found at which a loop of one error t is no longer stable; inf for none.

    Steps of a factor of 1.1 from 1e-4 to 100, within the range of the error, then bisection. Two
    crossings within one step are missed. Used where the exact problem is too large.
    """
    low, end = 0.0, loop.parameters[0].highest
    steps_to_try = np.geomspace(1e-4, LARGEST, 146)
    if end < LARGEST:
        steps_to_try = np.append(steps_to_try[steps_to_try < end], end)
    for steps in np.array_split(steps_to_try, 12):
        if not len(steps):
            continue
        unstable = _growths(loop, steps[:, None]) >= 0
        if unstable.any():
            k = int(np.argmax(unstable))
            low = float(steps[k - 1]) if k else low
            return _first(lambda t: _growths(loop, np.array([[t]])), low, float(steps[k]))
        low = float(steps[-1])
    return np.inf


def _first(growth: Callable[[float], Array], low: float, high: float) -> float:
    """Bisect between a stable and an unstable size of errors; returns the unstable end."""
    while high - low > _RESOLUTION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if growth(middle)[0] >= 0 else (middle, high)
    return float(high)


def find_worst_case(
    loop: UncertainLoop,
    *,
    first_crossing: FirstCrossing = bracketed_crossing,
    known: Array | None = None,
    deadline: Deadline = ENDLESS,
) -> WorstCase | None:
    """Search for the smallest gamma with an unstable delta in [-gamma, gamma]^p, delta >= least.

    First directions: each error alone, all together, the signs that make each mode grow fastest to
    first order (sign of Re dlambda_k/ddelta_i), and random directions, half of them corners and
    half inside the box. The best of these is then improved by the signs of the
    sensitivities at the crossing, as a power iteration, and by raising the largest growth rate
    among smaller errors, one error or one mode at a time, which also finds points inside the box.

    `known` (K, p) are errors at which a pole is known to lie on the axis, such as the ends of exact
    intervals: the result is no larger than the smallest of them. At the deadline the search ends
    with the best errors so far.

    Returns None when no errors within +-100 and the ranges of the parameters were found unstable. A
    search bounds the margin from above only.

    Raises
    ------
    InputError
        When the loop is not stable without errors.
    """
    p = len(loop.parameters)
    require_stable(loop)
    search = _Search(loop=loop, first_crossing=first_crossing, deadline=deadline)
    best = _smallest(loop, np.zeros((0, p)) if known is None else np.atleast_2d(known))
    directions = _directions(loop)
    for direction in directions:
        if deadline.passed:
            break
        best = search.improved(best, direction)
    if not np.isfinite(best.size):
        return None
    starts = directions[np.argsort(_growths(loop, search.cut(directions * best.size)))[-3:]]
    for start in (best.delta, *starts):
        best = search.refined(best, start)
    return record_worst(loop, best.delta, best.tried)


def require_stable(loop: UncertainLoop) -> None:
    """Refuse a loop that is not stable without errors.

    Raises
    ------
    InputError
        When a pole does not decay; the message has its real part.
    """
    growth = float(_growths(loop, np.zeros((1, len(loop.parameters))))[0])
    if growth >= 0:
        raise InputError(
            f"loop: expected stable without errors, got a pole of real part {growth:g}"
        )


def _smallest(loop: UncertainLoop, known: Array) -> _Best:
    """Return the smallest of known errors (K, p) that are physical and not above `LARGEST`."""
    sizes = np.abs(known).max(axis=1)
    sizes[(sizes > LARGEST) | (_cut(loop, known) != known).any(axis=1)] = np.inf
    if not np.isfinite(sizes).any():
        return _Best(delta=np.full(known.shape[1], np.inf), tried=len(known))
    return _Best(delta=known[sizes.argmin()], tried=len(known))


@dataclass(frozen=True, kw_only=True)
class _Best:
    """Smallest unstable errors (p,) so far, infinite for none, and number of directions tried."""

    delta: Array
    tried: int

    @property
    def size(self) -> float:
        return _norm(self.delta)


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Steps from the best errors so far to smaller ones."""

    loop: UncertainLoop
    first_crossing: FirstCrossing
    deadline: Deadline

    def cut(self, delta: Array) -> Array:
        """Errors (..., p) raised to the least value of their parameters where they are below."""
        return _cut(self.loop, delta)

    def improved(self, best: _Best, direction: Array) -> _Best:
        """Return errors along `direction` (p,), if smaller than `best` and unstable; or `best`."""
        best = replace(best, tried=best.tried + 1)
        sizes = best.size * _FRACTIONS if np.isfinite(best.size) else _FROM_NOTHING
        unit = direction / _norm(direction)
        rays = sizes[:, None] * unit
        unstable = np.flatnonzero(_growths(self.loop, self.cut(rays)) >= 0)
        if not len(unstable):
            return best
        k = unstable[0]
        if (self.cut(rays[k]) != rays[k]).any():  # the path bends where an error is cut
            low, high = float(sizes[k - 1]) if k else 0.0, float(sizes[k])
            size = _first(lambda t: _growths(self.loop, self.cut(t * unit[None])), low, high)
            return self.shortened(best, self.cut(size * unit))
        return self.shortened(best, rays[k])

    def shortened(self, best: _Best, unstable: Array) -> _Best:
        """First crossing on the ray to an unstable point (p,), if it is smaller than `best`."""
        ray = unstable / _norm(unstable)
        t = self.first_crossing(self.loop.along(ray))
        if not t <= _norm(unstable):
            return best
        return replace(best, delta=t * ray) if t < best.size else best

    def refined(self, best: _Best, start: Array) -> _Best:
        """Power iteration at the crossing and climb from `start` (p,), while `best` improves."""
        for _ in range(_N_ROUNDS):
            if self.deadline.passed:
                break
            before = best.size
            for row in _leading(self.loop, best.delta, 1):
                best = self.improved(best, _signs(row))
            best = self.climbed(best, start)
            if best.size > before * (1 - 1e-6):
                break
            start = best.delta
        return best

    def climbed(self, best: _Best, start: Array) -> _Best:
        """Raise the largest growth rate within a smaller box until the loop is unstable."""
        size = _BELOW * best.size
        delta = self.cut(size * start / _norm(start))
        growth = float(_growths(self.loop, delta[None])[0])
        for _ in range(_N_ROUNDS):
            if self.deadline.passed:
                break
            moves = self.cut(_moves(self.loop, delta, size))
            best = replace(best, tried=best.tried + len(moves))
            rates = _growths(self.loop, moves)
            k = int(np.argmax(rates))
            if rates[k] <= growth + 1e-9 * abs(growth):
                break
            delta, growth = moves[k], float(rates[k])
            if growth >= 0:
                return self.shortened(best, delta)
        return best


def _cut(loop: UncertainLoop, delta: Array) -> Array:
    """Errors (..., p), at least the least value of their parameters."""
    return np.maximum(delta, [parameter.least for parameter in loop.parameters])


def _moves(loop: UncertainLoop, delta: Array, size: float) -> Array:
    """Neighbours (K, p) of errors: one of them changed, or all moved to the signs of a mode."""
    p = len(delta)
    values = size * np.linspace(-1, 1, 5)
    one = np.repeat(delta[None], 5 * p, axis=0)
    one[np.arange(5 * p), np.repeat(np.arange(p), 5)] = np.tile(values, p)
    goals = [size * _signs(row) for row in _leading(loop, delta, _N_LEADING)]
    steps = (1.0, 0.3, 0.1, 0.03)
    return np.array([*one, *(delta + step * (goal - delta) for goal in goals for step in steps)])


def _directions(loop: UncertainLoop) -> Array:
    """All directions (K, p) that are tried first."""
    p, rng = len(loop.parameters), np.random.default_rng(0)
    axes = np.vstack([np.eye(p), np.ones(p)])
    modes = np.array([_signs(row) for row in sensitivities(loop, np.zeros(p))[1].real])
    corners = rng.choice([-1.0, 1.0], size=(_N_RANDOM // 2, p))
    inside = rng.uniform(-1, 1, size=(_N_RANDOM // 2, p))
    directions = np.vstack([axes, -axes, modes, corners, inside])
    directions = directions[np.abs(directions).max(axis=1) > 0]
    return np.unique(directions / np.abs(directions).max(axis=1, keepdims=True), axis=0)


def sensitivities(loop: UncertainLoop, delta: Array) -> tuple[ComplexArray, ComplexArray]:
    """Eigenvalues (n,) with Im >= 0 and d lambda_k / d delta_i (n, p) at errors delta (p,).

    d lambda = (y* U_i) (V_i x) / (y* x), U and V those of the loop with its errors counted from
    delta; summed over the channels of an error.
    """
    shifted = loop.at(delta)
    spectrum = np.linalg.eig(shifted.A)
    values, X = spectrum.eigenvalues.astype(complex), spectrum.eigenvectors
    try:
        left = np.linalg.solve(X, shifted.U)
    except np.linalg.LinAlgError:  # a defective pole: its sensitivity is not finite
        left = np.linalg.pinv(X) @ shifted.U
    upper = np.imag(values) >= 0
    by_channel = left * (shifted.V @ X).T
    owners = np.arange(len(loop.parameters))[:, None] == loop.owner
    return values[upper], (by_channel @ owners.T)[upper]


def _leading(loop: UncertainLoop, delta: Array, count: int) -> Array:
    """Real parts of the sensitivities (count, p) of the poles that grow fastest."""
    values, by_error = sensitivities(loop, delta)
    return by_error[np.argsort(values.real)[::-1][:count]].real


def _signs(row: Array) -> Array:
    """Signs (p,) of sensitivities, 1 for zero."""
    return np.where(row < 0, -1.0, 1.0)


def _norm(delta: Array) -> float:
    """Largest |delta_i| [-]."""
    return float(np.abs(delta).max())


def _growths(loop: UncertainLoop, deltas: Array) -> Array:
    """Largest real part of the poles under each of errors (K, p); infinite where ill-posed."""
    scaled = np.asarray(deltas, dtype=float)[:, loop.owner]
    inner = np.eye(len(loop.owner)) - loop.D * scaled[:, None]
    V = np.broadcast_to(loop.V, (len(scaled), *loop.V.shape))
    try:
        change = (loop.U * scaled[:, None]) @ np.linalg.solve(inner, V)
    except np.linalg.LinAlgError:
        if len(scaled) == 1:
            return np.array([np.inf])
        return np.concatenate([_growths(loop, delta[None]) for delta in deltas])
    return np.linalg.eigvals(loop.A + change).real.max(axis=1)


def record_worst(loop: UncertainLoop, delta: Array, tried: int) -> WorstCase:
    """Record of errors (p,) that bring a pole onto the axis, after `tried` directions.

    Where I - D Delta is singular there, the pole lies at infinity.
    """
    try:
        values = loop.poles(delta)
    except np.linalg.LinAlgError:
        values = np.array([complex(0.0, np.inf)])
    pole = complex(values[np.real(values).argmax()])
    pole = complex(pole.real, abs(pole.imag))
    sides = np.outer([1 + _VERIFIED, 1 - _VERIFIED], delta)
    outside, inside = _growths(loop, _cut(loop, sides))
    return WorstCase(
        gamma=_norm(delta),
        names=tuple(parameter.name for parameter in loop.parameters),
        delta=delta,
        eigenvalue=pole,
        frequency=loop.frequency(pole),
        verified=bool(outside >= 0 > inside),
        tried=tried,
    )
