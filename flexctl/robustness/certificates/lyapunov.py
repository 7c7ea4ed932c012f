"""Stability of all matrices close to a given one, proven by a Lyapunov function.

Enclosing eigenvalues one by one fails where some are multiple, which is where optimisation ends. A
quadratic function that falls along all solutions is as easy to prove there as anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, LinearLoop, linear_poses
from flexctl.parallel import on_one_thread
from flexctl.robustness.certificates.coordinates import balancing_units, find_coordinates
from flexctl.robustness.certificates.record import Certificate
from flexctl.robustness.certificates.regions import DISK, HALF_PLANE

RELATIVE_ERROR = 1e-12  # of every entry: thousands of times the round-off that made it


@on_one_thread
def certify(
    subject: ArrayLike | ClosedLoop | LinearLoop,
    *,
    sample_time: float | None = None,
    decay: float = 0.0,
    relative_error: float = RELATIVE_ERROR,
) -> Certificate:
    """Prove that x' = A~ x is stable for every A~ with |A~ - A| <= r |A|, entry by entry.

    Or x+ = A~ x of one sample. The proof is a matrix P > 0 with A~'P + P A~ < 0, or
    A~'P A~ - P < 0, in the interval arithmetic of [Johansson17]. One P for all A~ is quadratic
    stability [BoydElGhaouiFeronBalakrishnan94], section 5.1.

    Parameters
    ----------
    subject
        A (n, n) [1/s], or of one sample [-]. Or a closed loop, linearised where it rests at the
        end, or a linear loop: A is then that of the arm's modes, whose entries are as small as
        frequencies and damping permit.
    sample_time
        Sample time [s] of a matrix of one sample; None for x' = A x, and for loops, which have
        their own.
    decay
        Decay [1/s] to be proven, at least 0: every real part is below -decay.
    relative_error
        r [-], 0 for A itself.

    Returns
    -------
    Certificate
        With the smallest bound of the spectral abscissa that was proven; `proven` is False where
        it does not show the wanted decay, which does not mean that the loop has none.

    Raises
    ------
    InputError
        When A is not square, empty or not finite, or a number is not allowed.
    ComputationError
        When a loop has no equilibrium.

    Examples
    --------
    >>> import flexctl
    >>> certificate = flexctl.certify([[-1.0, 1.0], [0.0, -1.0]])  # a double eigenvalue
    >>> certificate.proven, certificate.bound < -0.99
    (True, True)
    >>> flexctl.certify([[-1.0, 0.0], [0.0, 1e-9]]).proven
    False
    """
    if isinstance(subject, ClosedLoop | LinearLoop):
        if sample_time is not None:
            raise InputError("sample_time: expected none with a loop, which has its own, got one")
        loop = subject if isinstance(subject, LinearLoop) else linear_poses(subject).final
        A, sample_time = loop.in_modes.A, loop.in_modes.period
    else:
        A = checks.square("A", subject)
    if not len(A):
        raise InputError("A: expected one state at least, got none")
    if sample_time is not None:
        sample_time = checks.positive("sample_time", sample_time)
    r = checks.number("relative_error", relative_error)
    if not 0 <= r < 1:
        raise InputError(f"relative_error: expected at least 0 and below 1, got {r:g}")
    return _certified(A, sample_time, checks.not_negative("decay", decay), r)


def _certified(A: Array, sample_time: float | None, decay: float, r: float) -> Certificate:
    """Certificate of checked numbers."""
    T, bound = bounded(A, r, sampled=sample_time is not None)
    limit = -decay if sample_time is None else float(np.exp(-decay * sample_time))
    if sample_time is not None and decay:
        # round-off of the exponential, and of its argument
        limit *= 1 - (4 + decay * sample_time) * np.finfo(float).eps
    return Certificate(
        proven=bool(bound < limit),
        bound=bound,
        states=len(A),
        relative_error=r,
        decay=decay,
        sample_time=sample_time,
        T=T,
    )


def bounded(A: Array, r: float, *, sampled: bool) -> tuple[Array | None, float]:
    """Coordinates T (n, n) for all |A~ - A| <= r |A|, and the bound that they prove.

    None and infinity where there are none.
    """
    from flexctl.robustness.certificates.proof import prove_bound

    region = DISK if sampled else HALF_PLANE
    units = balancing_units(A)
    with np.errstate(all="ignore"):  # what overflows proves nothing
        found = find_coordinates(A / units[:, None] * units, r, region)
        if found is None:
            return None, np.inf
        T = found.T / units  # powers of two: exact
        bound = prove_bound(A, T, r, region)
    return (T, bound) if np.isfinite(bound) else (None, np.inf)
