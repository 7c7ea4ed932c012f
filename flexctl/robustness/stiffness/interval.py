"""The stiffness errors that a loop tolerates at a pose, and what ends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from flexctl.errors import DesignError, InputError
from flexctl.loop import in_words


@dataclass(frozen=True, kw_only=True)
class Growing:
    """A mode that grows without any error: rate [1/s], None of a sampled loop, and |Im| [rad/s].

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

    `reason` is the message without the loop it speaks of; `growing` what grows, None where the loop
    is stable.
    """

    def __init__(self, loop: str, reason: str, growing: Growing | None = None) -> None:
        """Keep the reason and what grows beside the message."""
        super().__init__(f"{loop}: margin: {reason}")
        self.reason = reason
        self.growing = growing


@dataclass(frozen=True, kw_only=True)
class StabilityLimit:
    """Where an eigenvalue reaches the imaginary axis.

    Attributes
    ----------
    alpha
        K_hat/K - 1 there [-]; 0 where an undamped mode grows however small the error is.
    frequency
        |Im| of the eigenvalue [rad/s]; 0 is divergence.
    mode
        Motion with the largest part in it, such as ``link2.y.1``.
    ends
        What ends the equilibrium itself there: "fold", two of them meet and vanish, or "torque",
        the actuators can no longer hold the arm; empty where it stays and is no longer stable.
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
    """The errors around 0 within which a loop is stable at a pose.

    Exactly, where the equilibrium stays; else followed with it, which `proven` tells.

    Attributes
    ----------
    lower, upper
        What ends it below and above; None where nothing does, down to K_hat = 0 and for any K_hat.
    unmoved
        Modes that lie on the imaginary axis for every error; they are not judged.
    unknowns, counted
        Size of the eigenvalue problem that the ends come from, and at how many errors the unstable
        eigenvalues were counted to confirm them.
    proven
        Whether nothing can be lost between the ends: not where the equilibrium moves with the
        error and was followed in steps, up to `FARTHEST` of `followed`.
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
        """Lower end [-], -1 where nothing ends it."""
        return self.lower.alpha if self.lower else -1.0

    @property
    def alpha_upper(self) -> float:
        """Upper end [-], infinite where nothing ends it."""
        return self.upper.alpha if self.upper else np.inf

    @property
    def width(self) -> float:
        """Largest error [-] that is harmless in both directions."""
        return min(self.alpha_upper, -self.alpha_lower)

    @property
    def marginal(self) -> bool:
        """Whether an undamped mode makes one end 0."""
        return not self.alpha_lower < 0 < self.alpha_upper
