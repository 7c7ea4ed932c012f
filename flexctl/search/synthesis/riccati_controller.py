"""The controller of full order that two Riccati equations give for the H-infinity norm."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array
from flexctl.search.synthesis.interconnection import Interconnection

_REGULAR = (0.0, 1e-4, 1e-2)  # of the largest feedthroughs, or of 1: added where there are none
_LARGE = 1e100  # a norm that any stable loop has
_ABOVE = 1e-3  # of the least norm, which the equations reach with infinite gains


def riccati_gain(loop: Interconnection) -> Array | None:
    """Return K = [Dk Ck; Bk Ak] (m + k, p + k) with a norm within 0.1 % of the least.

    Of a plant without feedthrough from u to y, for k of at least its n states; None where SLICOT's
    routine fails. The Riccati equations ask that every u is among z and every y disturbed: where
    that is not so, a little is added, and the norm may be larger. Other states of the controller do
    nothing. A sampled plant is solved as the continuous one with the same norm, by
    z = (1 + s)/(1 - s). Source: [ZhouDoyleGlover96].
    """
    from slycot import sb10ad  # takes a while to import

    n, (m, p) = len(loop.A), (loop.B.shape[1], len(loop.C))
    if loop.order < n:
        return None
    for share in _REGULAR:
        A, B, C, D = _with_weights(loop, share)
        if loop.sampled:
            A, B, C, D = _mapped(A, B, C, D, back=False)
        size = n, B.shape[1], len(C), m, p
        try:
            least = sb10ad(*size, _LARGE, A, B, C, D)[0]
            parts = sb10ad(*size, least * (1 + _ABOVE), A, B, C, D, job=4)[1:5]
        except (ArithmeticError, ValueError):
            continue
        if loop.sampled:
            parts = _mapped(*parts, back=True)
        if all(np.isfinite(part).all() for part in parts):
            return _padded(loop, *parts)
    return None


def _with_weights(loop: Interconnection, share: float) -> tuple[Array, Array, Array, Array]:
    """Matrices of (w, u) -> (z, y), with a share of every u added to z and of every w to y."""
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


def _mapped(
    A: Array, B: Array, C: Array, D: Array, *, back: bool
) -> tuple[Array, Array, Array, Array]:
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
    """Write the matrices of a controller into one gain, with states that do nothing."""
    k, n = loop.order, len(A)
    states = np.eye(k) * (0.5 if loop.sampled else np.linalg.eigvals(A).real.min())
    states[:n, :n] = A
    C, B = np.pad(C, ((0, 0), (0, k - n))), np.pad(B, ((0, k - n), (0, 0)))
    return np.block([[D, C], [B, states]])
