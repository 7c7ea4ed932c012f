"""The controller of full order for the H-infinity norm, from two Riccati equations."""

from __future__ import annotations

import numpy as np
from slycot import sb10ad

from flexctl.checks import Array
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.starts import typical_rate

_REGULAR = (0.0, 1e-4, 1e-2)  # of the largest feedthroughs, or of 1: added where there are none
_ABOVE = 1e-3  # of the least norm, which the equations reach with infinite gains
_SMALLEST = 1e-6  # of the given norm: where there may be no least one above zero

_Parts = tuple[Array, Array, Array, Array]  # A, B, C, D


def riccati_gain(loop: Interconnection, norm: float) -> Array | None:
    """Return K = [Dk Ck; Bk Ak] (m + k, p + k) with a norm within 0.1 % of the least.

    Of a plant without feedthrough from u to y, for k of at least its n states; `norm` is one that a
    stable loop has. None where the equations have no solution for it. They ask that every u is
    among z and every y disturbed: where that is not so, a little is added, and the norm may be
    larger. Other states of the controller do nothing. A sampled plant is solved as the continuous
    one with the same norm, by z = (1 + s)/(1 - s). Source: [ZhouDoyleGlover96].
    """
    if loop.order < len(loop.A):
        return None
    for share in _REGULAR:
        plant = _with_weights(loop, share)
        try:  # of singular matrices too: an eigenvalue -1 of a sampled plant
            plant = _mapped(*plant, back=False) if loop.sampled else plant
            found = _nearly_least(plant, loop, norm)
            found = _mapped(*found, back=True) if found and loop.sampled else found
        except (ArithmeticError, ValueError):
            continue
        if found and all(np.isfinite(part).all() for part in found):
            return _padded(loop, *found)
    return None


def _nearly_least(plant: _Parts, loop: Interconnection, norm: float) -> _Parts | None:
    """Bisect the norm for which there is a controller, from a little above the given one.

    SLICOT's own search for the least norm does not return for some plants.
    """
    low, high = 0.0, (1 + _ABOVE) * norm
    best = _controller(plant, loop, high)
    while best is not None and high > (1 + _ABOVE) * low and high > _SMALLEST * norm:
        level = np.sqrt(low * high) if low else high / 2
        found = _controller(plant, loop, level)
        low, high, best = (level, high, best) if found is None else (low, level, found)
    return best


def _controller(plant: _Parts, loop: Interconnection, level: float) -> _Parts | None:
    """Return the central controller whose loop has a norm below a level, None if there is none."""
    A, B, C, _ = plant
    size = len(A), B.shape[1], len(C), loop.B.shape[1], len(loop.C)
    try:
        return sb10ad(*size, level, *plant, job=4)[1:5]
    except ArithmeticError:
        return None


def _with_weights(loop: Interconnection, share: float) -> _Parts:
    """Return (A, B, C, D) of (w, u) -> (z, y): a share of each u is added to z, of new w to y."""
    m, p = loop.B.shape[1], len(loop.C)
    C, D11, D12, D21 = loop.C1, loop.D11, loop.D12, loop.D21
    B = loop.B1
    if share:
        size = [share * (np.abs(part).max(initial=0.0) or 1.0) for part in (D12, D21)]
        C = np.vstack([C, np.zeros((m, C.shape[1]))])
        B = np.hstack([B, np.zeros((len(B), p))])
        D11 = np.pad(D11, ((0, m), (0, p)))
        D12 = np.vstack([D12, size[0] * np.eye(m)])
        D21 = np.hstack([D21, size[1] * np.eye(p)])
    D = np.block([[D11, D12], [D21, np.zeros((p, m))]])
    return loop.A, np.hstack([B, loop.B]), np.vstack([C, loop.C]), D


def _mapped(A: Array, B: Array, C: Array, D: Array, *, back: bool) -> _Parts:
    """Replace z by (1 + s)/(1 - s), or back: values on the circle become those on the axis."""
    identity = np.eye(len(A))
    if back:
        inverse = np.linalg.inv(identity - A)
        return (
            inverse @ (identity + A),
            np.sqrt(2) * inverse @ B,
            np.sqrt(2) * C @ inverse,
            D + C @ inverse @ B,
        )
    inverse = np.linalg.inv(identity + A)
    return (
        inverse @ (A - identity),
        np.sqrt(2) * inverse @ B,
        np.sqrt(2) * C @ inverse,
        D - C @ inverse @ B,
    )


def _padded(loop: Interconnection, A: Array, B: Array, C: Array, D: Array) -> Array:
    """Write (A, B, C, D) of n states into K (m + k, p + k), with k - n states that do nothing."""
    k, n = loop.order, len(A)
    states = np.eye(k) * (0.5 if loop.sampled else -typical_rate(loop.A, sampled=False))
    states[:n, :n] = A
    C, B = np.pad(C, ((0, 0), (0, k - n))), np.pad(B, ((0, k - n), (0, 0)))
    return np.block([[D, C], [B, states]])
