"""Records of certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.records import Summary


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Summary):
    """Proof that every matrix close to a given one is stable, or what was proven short of that.

    With P = T'T, V = x' P x falls along every solution: (A~ - b I)' P + P (A~ - b I) < 0, or for
    one sample A~' P A~ - b^2 P < 0, for every A~ with |A~ - A| <= r |A|, entry by entry. Computed
    in interval arithmetic, T taken as exact, b rounded upwards.

    Attributes
    ----------
    proven
        Whether stability with the wanted decay is proven. False does not mean that it is unstable.
    bound
        The proven b: no eigenvalue has a larger real part [1/s], or of one sample a larger
        magnitude [-]; infinite where none was proven.
    relative_error
        r [-].
    decay
        Wanted decay [1/s]: stability is proven where the real parts are below -decay.
    sample_time
        Sample time [s]; None of a continuous loop.
    T
        The coordinates (n, n), in which states (n,) are T x; None where none were found.

    Examples
    --------
    >>> import flexctl
    >>> certificate = flexctl.certify([[0.0, 1.0], [-1.0, -0.2]])
    >>> certificate.proven, round(certificate.bound, 6)
    (True, -0.1)
    """

    proven: bool
    bound: float
    states: int
    relative_error: float
    decay: float = 0.0
    sample_time: float | None = None
    T: Array | None = None

    def _facts(self) -> dict[str, Any]:
        return {
            "proven": self.proven,
            "spectral_abscissa": self.spectral_abscissa,
            "states": self.states,
            "relative_error": self.relative_error,
            "decay": self.decay or None,
            "sample_time": self.sample_time,
        }

    @property
    def spectral_abscissa(self) -> float:
        """Proven bound of the spectral abscissa [1/s]; of a sampled loop log(b)/T."""
        if self.sample_time is None:
            return self.bound
        if not self.bound:
            return -np.inf
        with np.errstate(over="ignore"):  # of sample times near the smallest number
            rate = max(np.log(self.bound) / self.sample_time, np.finfo(float).min)
            slack = 4 * np.spacing(abs(rate)) + 4 * np.finfo(float).eps / self.sample_time
        return float(rate + slack) if np.isfinite(slack) else float(rate)

    @property
    def P(self) -> Array | None:
        """P = T'T (n, n), rounded; T itself is what the proof takes as exact."""
        with np.errstate(over="ignore", invalid="ignore"):
            return None if self.T is None else self.T.T @ self.T


@dataclass(frozen=True, kw_only=True)
class CertifiedErrors:
    """Errors about 0 for which stability of a linear loop is proven.

    Attributes
    ----------
    alpha_lower, alpha_upper
        Ends [-] of the errors between which the loop is proven to be stable; infinite where no
        error changes it. None where nothing is proven.
    pieces
        Number of pieces, each with a Lyapunov function of its own.
    relative_error
        r [-]: proven of all loops |A~ - A| <= r |A|, entry by entry.
    why
        Why nothing is proven, or not nearly as much as is exact; empty otherwise.
    """

    alpha_lower: float | None
    alpha_upper: float | None
    pieces: int
    relative_error: float
    why: str = ""

    @property
    def proven(self) -> bool:
        """Whether anything is proven."""
        return self.alpha_upper is not None


def nothing_certified(why: str, relative_error: float) -> CertifiedErrors:
    """Return that nothing is proven, and why."""
    return CertifiedErrors(
        alpha_lower=None, alpha_upper=None, pieces=0, relative_error=relative_error, why=why
    )
