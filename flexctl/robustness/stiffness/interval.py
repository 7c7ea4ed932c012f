"""The interval of stiffness errors that a loop tolerates at a pose, and the limits at its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from flexctl.errors import DesignError, InputError
from flexctl.loop import in_words


@dataclass(frozen=True, kw_only=True)
class Growing:
    """A mode that grows without any error.

    `rate` is Re lambda [1/s], None for a sampled loop; `frequency` is |Im lambda| [rad/s].
    As text: ``link1's first mode in y grows at 3.1 1/s, oscillating at 12 rad/s``.
    """

    mode: str
    rate: float | None
    frequency: float

    def __str__(self) -> str:
        rate = "" if self.rate is None else f" at {self.rate:.3g} 1/s"
        swing = f", oscillating at {self.frequency:.4g} rad/s" if self.frequency else ""
        return f"{in_words(self.mode)} grows{rate}{swing}"


class NoMarginError(DesignError):
    """A loop without a stiffness margin: unstable without error, or its actuators are too weak.

    `reason` is the message without the name of the loop; `growing` is the growing mode, None where
    the loop is stable.
    """

    def __init__(self, loop: str, reason: str, growing: Growing | None = None) -> None:
        """Keep the reason and the growing mode beside the message."""
        super().__init__(f"{loop}: margin: {reason}")
        self.reason = reason
        self.growing = growing


@dataclass(frozen=True, kw_only=True)
class StabilityLimit:
    """Error at which stability or the equilibrium ends.

    Attributes
    ----------
    alpha
        K_hat/K - 1 there [-]; 0 where any error makes an undamped mode grow.
    frequency
        |Im| of the eigenvalue on the axis [rad/s]; 0 for divergence.
    mode
        Motion with the largest participation in it, such as ``link2.y.1``.
    ends
        How the equilibrium itself ends there: "fold", two equilibria meet and vanish, or "torque",
        the actuators can no longer hold the arm; empty where only its stability ends.
    """

    alpha: float
    frequency: float
    mode: str
    ends: Literal["", "fold", "torque"] = ""

    @property
    def kind(self) -> str:
        """Return "flutter", "divergence" (a real eigenvalue), or "overload"."""
        if self.ends == "torque":
            return "overload"
        return "flutter" if self.frequency else "divergence"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The errors about 0 for which a loop is stable at a pose.

    Exact where the equilibrium does not depend on the error; otherwise by continuation.

    Attributes
    ----------
    lower, upper
        Limits below and above; None where there is none, down to K_hat = 0 or for any K_hat.
    unmoved
        Modes that lie on the imaginary axis for every error; they are not judged.
    unknowns, counted
        Size of the eigenvalue problem that gave the limits, and number of errors at which the
        unstable eigenvalues were counted to confirm them.
    proven
        Whether stability between the limits is proven: not where the error moves the equilibrium,
        which is then followed in steps up to `FARTHEST` of `followed`.
    """

    lower: StabilityLimit | None
    upper: StabilityLimit | None
    unmoved: tuple[str, ...] = ()
    unknowns: int = 0
    counted: int = 0
    proven: bool = True

    def __post_init__(self) -> None:
        """Check that the ends enclose 0."""
        if not self.alpha_lower <= 0 <= self.alpha_upper:
            got = f"{self.alpha_lower:g} to {self.alpha_upper:g}"
            raise InputError(f"interval: expected one around 0, got {got}")

    @property
    def alpha_lower(self) -> float:
        """Lower end [-], -1 without a limit."""
        return self.lower.alpha if self.lower else -1.0

    @property
    def alpha_upper(self) -> float:
        """Upper end [-], infinite without a limit."""
        return self.upper.alpha if self.upper else np.inf

    @property
    def width(self) -> float:
        """Largest size of an error [-] that is tolerated in both directions."""
        return min(self.alpha_upper, -self.alpha_lower)

    @property
    def marginal(self) -> bool:
        """Whether an end is 0, because of an undamped mode."""
        return not self.alpha_lower < 0 < self.alpha_upper


PHYSICAL_END = -1.0  # relative error of a stiffness, payload or damper that is zero


@dataclass(frozen=True, kw_only=True)
class Guaranteed:
    """Range of relative errors of a kind [-], tolerated together with those of all other kinds.

    `lower` is at least -1, the physical limit.
    """

    kind: str
    lower: float
    upper: float

    @property
    def any_below(self) -> bool:
        """Whether every physical underestimate is tolerated."""
        return self.lower == PHYSICAL_END


def guaranteed_errors(fraction: float, errors: Mapping[str, float]) -> tuple[Guaranteed, ...]:
    """Ranges of all kinds of errors with their sizes [-], at a guaranteed fraction [-]."""
    return tuple(
        Guaranteed(kind=kind, lower=max(-fraction * size, PHYSICAL_END), upper=fraction * size)
        for kind, size in errors.items()
    )
