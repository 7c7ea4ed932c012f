"""Stability margins at the actuators: how much gain, phase or delay a loop bears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
import scipy.sparse.csgraph
import slycot

from flexctl.checks import Array, ComplexArray
from flexctl.loop.linear import LinearLoop, sampled_loop

Response = Callable[[Array], ComplexArray]

_LONGEST = 10.0  # period [s] up to which a smallest sampling rate is looked for
_MOST_LATE = 20  # samples that a delay may span: every one is a state more
_INFINITE = 1e9  # a larger loop gain is that of a pole on which round-off fell
_N_BASE = 1500  # frequencies over the whole range, before those around every pole
_AROUND = np.concatenate([[0.0], *(s * np.geomspace(0.03, 30.0, 15) for s in (-1, 1))])


@dataclass(frozen=True, kw_only=True)
class Margins:
    """Margins of a stable loop broken at its m actuators; infinite where nothing limits them.

    Attributes
    ----------
    gain_up_db, gain_down_db
        Gain that one channel bears above and below 1, the others closed, (m,) [dB], both >= 0.
    phase_deg
        Phase that one channel bears, (m,) [deg].
    delay_seconds
        Delay that one channel bears, (m,) [s].
    disk
        Balanced disk margin of all channels at once [-] (for more than three channels a lower
        bound): gains in
        [(2 - d)/(2 + d), (2 + d)/(2 - d)] or phases up to 2 atan(d/2), independently.
    disk_frequency
        Where the disk margin is smallest [rad/s].
    """

    gain_up_db: Array
    gain_down_db: Array
    phase_deg: Array
    delay_seconds: Array
    disk: float
    disk_frequency: float

    @property
    def gain_db(self) -> Array:
        """The nearer of both gain limits, (m,) [dB]."""
        return np.minimum(self.gain_up_db, self.gain_down_db)


def find_margins(loop: LinearLoop) -> Margins:
    """Margins of a stable linear loop at its actuators.

    Frequencies are searched on a grid that is refined around every pole of the open and of the
    closed loop; crossings are then found by root finding between grid points, and the disk margin
    by minimisation. A sampled loop is judged by its exact discrete frequency response.
    Source: [SeilerPackardGahinet20].
    """
    response = _sampled_response(loop) if loop.sampled else _continuous_response(loop)
    w = _frequencies(loop)
    L = response(w)
    ends = _real_ends(loop, response)
    channels = [
        _channel_margins(lambda x, i=i: _one_channel(response(x), i), w, _one_channel(L, i), ends)
        for i in range(L.shape[1])
    ]
    disk, at = _disk_margin(response, w, L)
    up, down, phase, delay = (np.array(values) for values in zip(*channels, strict=True))
    return Margins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=phase,
        delay_seconds=delay,
        disk=disk,
        disk_frequency=at,
    )


def _frequencies(loop: LinearLoop) -> Array:
    """Grid [rad/s] over all poles, refined around each by multiples of its decay rate."""
    poles = np.concatenate([np.linalg.eigvals(loop.A), loop.poles])
    size = np.abs(poles)
    poles, size = poles[size > 1e-6], size[size > 1e-6]
    low, high = size.min() / 100, size.max() * 100
    width = np.maximum(np.abs(poles.real), 1e-7 * size)
    near = (np.abs(poles.imag)[:, None] + width[:, None] * _AROUND).ravel()
    w = np.concatenate([np.geomspace(low, high, _N_BASE), near])
    if loop.sample_time is not None:
        high = np.pi / loop.sample_time
    return np.unique(w[(w >= low) & (w <= high)])


def _real_ends(loop: LinearLoop, response: Response) -> Array:
    """Find the ends of the frequency axis at which the loop gain is finite, and so real."""
    ends = [0.0] if loop.sample_time is None else [0.0, np.pi / loop.sample_time]
    finite = []
    for end in ends:
        try:
            with np.errstate(all="ignore"):
                size = np.abs(response(np.array([end]))).max()
        except np.linalg.LinAlgError:  # a pole at the end: the gain is infinite there
            continue
        if size < _INFINITE:
            finite.append(end)
    return np.array(finite)


def _continuous_response(loop: LinearLoop) -> Response:
    """L(s) = -(K_q + s K_v + L (s - F)^-1 (E_q + s E_v)) (K + s D + s^2 M)^-1 B, (N, m, m)."""
    p = loop.plant
    n, m = p.B.shape
    by_q, by_v = loop.feedback[:, :n], loop.feedback[:, n:]
    E_q, E_v, identity = loop.E[:, :n], loop.E[:, n:], np.eye(len(loop.F))

    def response(w: Array) -> ComplexArray:
        s = 1j * np.atleast_1d(w)[:, None, None]
        X = np.linalg.solve(s**2 * p.M + s * p.D + p.K, np.broadcast_to(p.B, (len(s), n, m)))
        law = by_q + s * by_v
        if len(loop.F):
            law = law + loop.integral_gain @ np.linalg.solve(s * identity - loop.F, E_q + s * E_v)
        return -law @ X

    return response


def _sampled_response(loop: LinearLoop) -> Response:
    """Discrete frequency response of the loop cut where the sampled law's torque leaves it."""
    T = loop.sample_time or 0.0
    m, n = loop.plant.B.shape[1], len(loop.plant.A_state)
    n_z = loop.integral_gain.shape[1]
    closed = sampled_loop(loop, T, loop.delay)
    opened = sampled_loop(_without_law(loop), T, loop.delay)
    C = np.hstack([loop.feedback, loop.integral_gain, np.zeros((m, len(closed) - n - n_z))])
    # closed = opened + B C with C of full row rank, the law being the only feedback
    B = (closed - opened) @ np.linalg.pinv(C)

    def response(w: Array) -> ComplexArray:
        z = np.exp(1j * np.atleast_1d(w) * T)[:, None, None]
        shifted = z * np.eye(len(opened)) - opened
        X = np.linalg.solve(shifted, np.broadcast_to(B, (len(z), *B.shape)))
        return (-C @ X).astype(complex)

    return response


def _without_law(loop: LinearLoop) -> LinearLoop:
    return replace(loop, feedback=0 * loop.feedback, integral_gain=0 * loop.integral_gain)


def _one_channel(L: ComplexArray, i: int) -> ComplexArray:
    """Loop gain (N,) of channel i with all other channels closed."""
    rest = [j for j in range(L.shape[1]) if j != i]
    if not rest:
        return L[:, i, i]
    others = np.eye(len(rest)) + L[np.ix_(range(len(L)), rest, rest)]
    back = np.linalg.solve(others, L[:, rest, i][..., None])[..., 0]
    return L[:, i, i] - np.einsum("kj,kj->k", L[:, i, rest], back)


def _channel_margins(
    response: Callable[[Array], ComplexArray], w: Array, loop_gain: ComplexArray, ends: Array
) -> tuple[float, float, float, float]:
    """Gain up and down [dB], phase [deg] and delay [s] of one channel; it is real at `ends`."""
    at_real = np.append(_crossings(lambda x: response(x).imag, w, loop_gain.imag), ends)
    real = response(at_real).real if len(at_real) else np.zeros(0)
    critical = -1 / real[real < 0]
    up, down = critical[critical > 1], critical[critical <= 1]
    at_unit = _crossings(lambda x: np.abs(response(x)) - 1, w, np.abs(loop_gain) - 1)
    angle = np.angle(response(at_unit)) if len(at_unit) else np.zeros(0)
    lag = np.mod(angle + np.pi, 2 * np.pi)  # phase lag to the point -1
    phase = np.minimum(lag, 2 * np.pi - lag)
    return (
        float(20 * np.log10(up.min(initial=np.inf))),
        float(-20 * np.log10(down.max(initial=0.0))) if len(down) else np.inf,
        float(np.degrees(phase.min(initial=np.inf))),
        float((lag / at_unit).min(initial=np.inf)) if len(at_unit) else np.inf,
    )


def _crossings(f: Callable[[Array], Array], w: Array, values: Array) -> Array:
    """Frequencies at which f changes sign between grid points, by root finding."""
    found = []
    for k in np.flatnonzero(values[:-1] * values[1:] < 0):
        root = scipy.optimize.brentq(lambda x: float(f(np.array([x]))[0]), w[k], w[k + 1])
        if np.abs(f(np.array([root]))[0]) < 1e-3 * max(abs(values[k]), abs(values[k + 1]), 1e-9):
            found.append(root)  # a sign change across a pole is no crossing
    return np.array(found)


def _disk_margin(response: Response, w: Array, L: ComplexArray) -> tuple[float, float]:
    """1 / max over w of mu(S - I/2), S = (I + L)^-1, independent complex channels."""
    bound = np.linalg.svd(_half_sensitivity(L), compute_uv=False)[:, 0]
    best, at, where = 0.0, float(w[0]), 0
    for k in np.argsort(bound)[::-1]:
        if bound[k] <= best:
            break  # mu never exceeds the norm: no later frequency can be worse
        value = _structured(L[k])
        if value > best:
            best, at, where = value, float(w[k]), int(k)
    left, right = w[max(where - 1, 0)], w[min(where + 1, len(w) - 1)]
    refined = scipy.optimize.minimize_scalar(
        lambda x: -_structured(response(np.array([x]))[0]), bounds=(left, right), method="bounded"
    )
    if -refined.fun > best:
        best, at = -float(refined.fun), float(refined.x)
    return 1 / best, at


def _half_sensitivity(L: ComplexArray) -> ComplexArray:
    """S - I/2 with S = (I + L)^-1 for every frequency, (N, m, m)."""
    identity = np.eye(L.shape[-1])
    return (np.linalg.inv(identity + L) - identity / 2).astype(complex)


def _structured(L: ComplexArray) -> float:
    """Structured singular value of S - I/2 at one frequency, one complex block per channel."""
    Z = _half_sensitivity(L)
    return max(_of_channels(Z[np.ix_(own, own)]) for own in _coupled(Z))


def _of_channels(Z: ComplexArray) -> float:
    """Structured singular value of Z (n, n), one complex block per channel."""
    n = len(Z)
    if n == 1:
        return float(np.abs(Z[0, 0]))
    return float(slycot.ab13md(Z, np.ones(n, dtype=int), np.full(n, 2))[0])


def _coupled(Z: ComplexArray) -> list[Array]:
    """Channels that act on each other in both directions, set by set.

    The value is the largest of those of the sets; of a matrix that falls apart into them ab13md of
    slycot 0.7.1 may never return.
    """
    acts = np.abs(Z) > np.finfo(float).eps * np.abs(Z).max()
    count, label = scipy.sparse.csgraph.connected_components(acts, connection="strong")
    return [np.flatnonzero(label == k) for k in range(count)]


def smallest_sampling_rate(loop: LinearLoop) -> float | None:
    """Smallest rate [Hz] from which on the sampled and held law keeps the loop stable.

    The period grows until the loop is unstable: in large steps while all modes lie below half the
    sampling rate, then in steps of 1 %, because modes that fold onto each other make it unstable in
    narrow bands; a band narrower than that can be missed. The limit is found by bisection. With a
    delay the shortest period is a twentieth of it. A loop that is stable even at a period of 10 s
    gives 0.1 Hz; one that is unstable at the shortest period, None.

    None for a law with an observer too: a sampled law sums its states by Euler's rule, which asks
    for a rate of its own, and no observer would be made so.
    """
    if loop.F.any():
        return None
    poles = np.concatenate([np.linalg.eigvals(loop.A), loop.poles])
    shortest = max(1e-2 / np.abs(poles).max(), loop.delay / _MOST_LATE)
    folding = np.clip(np.pi / max(np.abs(poles.imag).max(), 1.0), shortest, _LONGEST)
    start = np.geomspace(shortest, folding, 12)
    beyond = folding * 1.01 ** np.arange(1, 1 + np.ceil(np.log(_LONGEST / folding) / np.log(1.01)))
    periods = np.append(start, _thinned(loop, beyond))
    first = _first_unstable(loop, periods)
    if first is None:
        return 1 / _LONGEST
    stable = periods[periods < first]
    if not len(stable):
        return None
    limit = scipy.optimize.bisect(
        lambda T: _multiplier(loop, T) - 1, stable[-1], first, xtol=1e-5 * first
    )
    return 1 / float(limit)  # pyright: ignore[reportArgumentType]


def _thinned(loop: LinearLoop, periods: Array) -> Array:
    """Leave out all periods after one of every 25th at which the loop is already unstable."""
    known = _first_unstable(loop, periods[::25])
    return periods if known is None else periods[periods <= known]


def _first_unstable(loop: LinearLoop, periods: Array) -> float | None:
    """First of ascending periods [s] at which the sampled loop is not stable."""
    return next((float(T) for T in periods if _multiplier(loop, T) >= 1), None)


def _multiplier(loop: LinearLoop, period: float) -> float:
    """Largest multiplier of one sample of the loop, sampled with the design's own delay."""
    return float(np.abs(np.linalg.eigvals(sampled_loop(loop, period, loop.delay))).max())
