"""The curve of a branch of eigenvalues, through all points at which it is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from flexctl.checks import Array, ComplexArray
from flexctl.loci import Loci

_EDGE = 1e-5  # |Im| beside |lambda|: below it an eigenvalue is as good as real
_JUMP = 0.1  # of |lambda|: what leaves the real axis by more than that in a step jumps
_POINTS = 300  # of a curve, about
_APART = 1e-12  # of its range: what is closer is one point


def drawn(values: ComplexArray) -> ComplexArray:
    """Eigenvalues (k,) of the upper half plane and the real axis; NaN below and where infinite."""
    shown = np.isfinite(values) & (values.imag >= -_EDGE * np.abs(values))
    return np.where(shown, values.real + 1j * np.maximum(values.imag, 0.0), np.nan + 0j)


def curve_of(
    loci: Loci, k: int, design_value: float | None = None, *, below: bool = False
) -> tuple[Array, ComplexArray]:
    """Parameter and eigenvalues (p,) of the curve of a branch, NaN where it breaks.

    It goes through all points of `points_of`. Between them real and imaginary part are
    interpolated by cubics that are monotone between neighbours (PCHIP), so that no curve crosses
    the imaginary axis where its branch does not. Where a pair and two real eigenvalues meet, at
    s0, a branch is analytic in sqrt(|s - s0|) and no longer in s; up to there it is interpolated
    over that root. Below the real axis it is drawn only if `below`, and if the branch is
    somewhere above it or on it.
    """
    s, values, met = points_of(loci, k, design_value)
    above = drawn(values)
    if not below or not np.isfinite(above).any():
        values = above
    pieces = [_smooth(s[part], values[part], met[part]) for part in _pieces(values, met)]
    return (
        np.concatenate([own for own, _ in pieces]),
        np.concatenate([own for _, own in pieces]),
    )


def points_of(
    loci: Loci, k: int, design_value: float | None = None
) -> tuple[Array, ComplexArray, NDArray[np.bool_]]:
    """Parameter, eigenvalues (p,) at which a branch is known, and whether it meets another there.

    Beside the values followed are those at the design value, on the imaginary axis, and where a
    pair becomes two real eigenvalues or these a pair. A branch that leaves the real axis elsewhere
    jumps, as the rate of a sampled law does whose multiplier passes zero: between two entries of
    the same parameter its line breaks, and one of them is NaN.
    """
    own = (loci.nodes, loci.node_values[:, k]) if len(loci.nodes) else None
    known_s, known_values = own or (loci.s, loci.branches[k].values)
    meetings = [
        (event.start, event.value)
        for event in loci.events
        if event.kind in ("break-in", "break-away") and k in event.branches
    ]
    more = [*meetings, *((one.s, one.value) for one in loci.crossings if one.branch == k)]
    if design_value is not None and loci.at_design is not None:
        more.append((design_value, complex(loci.at_design[k])))
    low, high = known_s[0], known_s[-1]
    more = [(s, value) for s, value in more if low < s < high and s not in known_s]
    s = np.append(known_s, [at for at, _ in more])
    values: ComplexArray = np.append(known_values, [value for _, value in more])
    order = np.argsort(s, kind="stable")
    s, values = s[order], values[order]
    met = np.isin(s, [at for at, _ in meetings])
    values = _unmirrored(values)
    jumps = _jumps(values, met)
    values = np.insert(np.where(np.isfinite(values), values, np.nan), jumps, np.nan)
    return np.insert(s, jumps, s[jumps]), values, np.insert(met, jumps, np.zeros(len(jumps), bool))


def _unmirrored(values: ComplexArray) -> ComplexArray:
    """Values (p,) of a branch that stays in its half plane where it would jump to the other.

    The rates log(z)/T of a pair of multipliers are conjugate, and at the Nyquist frequency each
    jumps to the conjugate of the other: from pi/T to -pi/T.
    """
    im, size = values.imag, np.abs(values)
    flips = (im[1:] * im[:-1] < 0) & (np.abs(im[1:]) > _JUMP * size[1:])
    flips &= np.abs(im[:-1]) > _JUMP * size[:-1]
    turned = np.append(False, np.cumsum(flips) % 2 == 1)
    return np.where(turned, values.conj(), values)


def _jumps(values: ComplexArray, met: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Find where a branch leaves the real axis or comes onto it: indices (j,) of values (p,).

    Not where either is a point in which a pair and two real eigenvalues meet, `met` (p,).
    """
    real = np.abs(values.imag) <= _EDGE * np.abs(values)
    leaves = (real[1:] != real[:-1]) & ~(met[1:] | met[:-1])
    size = np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.flatnonzero(leaves & (np.abs(np.diff(values.imag)) > _JUMP * size)) + 1


def _pieces(values: ComplexArray, met: NDArray[np.bool_]) -> Iterator[slice]:
    """Parts of a branch from one meeting, or break, to the next; both have the meeting itself."""
    first = 0
    for k in range(1, len(values)):
        known, before = np.isfinite(values[k]), np.isfinite(values[k - 1])
        if known != before:
            yield slice(first, k)
            first = k
        elif known and met[k] and k < len(values) - 1:
            yield slice(first, k + 1)
            first = k
    yield slice(first, len(values))


def _smooth(s: Array, values: ComplexArray, met: NDArray[np.bool_]) -> tuple[Array, ComplexArray]:
    """Points of a curve through values (p,) that are known, or p that are not, as they are."""
    if len(s) < 2 or not np.isfinite(values).all() or not s[-1] > s[0]:
        return s, values
    x = (s - s[0]) / (s[-1] - s[0])
    u = _root(x, start=bool(met[0]), end=bool(met[-1]))
    apart = np.append(True, np.diff(u) > _APART)
    u, values = u[apart], values[apart]
    if len(u) < 2:
        return s, values
    count = max(1, round(_POINTS / (len(u) - 1)))
    steps = np.arange(count) / count
    fine = np.append((u[:-1, None] + np.diff(u)[:, None] * steps).ravel(), u[-1])
    parts = [PchipInterpolator(u, part)(fine) for part in (values.real, values.imag)]
    at = _square(fine, start=bool(met[0]), end=bool(met[-1]))
    return s[0] + (s[-1] - s[0]) * at, parts[0] + 1j * parts[1]


def _root(x: Array, *, start: bool, end: bool) -> Array:
    """Parameter (p,) from 0 to 1 that behaves as the root of the distance from ends that meet."""
    if start and end:
        return np.arccos(1 - 2 * x) / np.pi
    if start:
        return np.sqrt(x)
    return 1 - np.sqrt(1 - x) if end else x


def _square(u: Array, *, start: bool, end: bool) -> Array:
    """Invert `_root`."""
    if start and end:
        return (1 - np.cos(np.pi * u)) / 2
    if start:
        return u**2
    return 1 - (1 - u) ** 2 if end else u
