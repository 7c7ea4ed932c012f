"""Records of the time-scale margin, with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.model import BasisChoice
from flexctl.records import Summary


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Stiffness factor at which stability is lost at one pose, on one truth plant.

    Attributes
    ----------
    t
        Time of the pose along the reference [s].
    order
        Order of the truth plant.
    s_star
        Largest stiffness factor at which the loop becomes unstable; 0 where it never does,
        infinite where a subsystem is unstable by itself, so that no stiffness helps.
    frequency
        Frequency of the eigenvalue that crosses the axis, at that stiffness [rad/s].
    stable
        Whether the loop is stable there with the true stiffness: True, False or "marginal".
    exact
        Whether the guardian map gave the bound; else a bracket, which may miss a narrow band.
    motion
        Slow joint, spring, line or observer with the largest participation in the eigenvalue that
        crosses; empty where none does, and for sampled laws.
    why
        Which subsystem is unstable; empty where both are stable.
    refused
        Why there is no loop for a softer arm, where that ends the search; else empty.
    no_equilibrium
        Whether that is because a softer arm has no equilibrium at the reference.
    """

    t: float
    order: int
    s_star: float
    frequency: float = np.nan
    stable: bool | str
    exact: bool
    motion: str = ""
    why: str = ""
    refused: str = ""
    no_equilibrium: bool = False

    def __post_init__(self) -> None:
        """Check that s_star is a factor, and that `why` is given exactly where it is infinite."""
        if not self.s_star >= 0:  # NaN neither
            raise InputError(f"s_star: expected a factor of 0 or more, got {self.s_star}")
        if bool(self.why) != np.isinf(self.s_star):
            expected = "a reason exactly where no stiffness helps"
            raise InputError(f"why: expected {expected}, got {self.why!r} at s* = {self.s_star:g}")


@dataclass(frozen=True, kw_only=True, repr=False)
class Spectra(Summary):
    """Eigenvalues at one pose on the truth plant, over the stiffness.

    Attributes
    ----------
    slow, fast
        Eigenvalues of the subsystems [rad/s]; the fast ones grow as sqrt(s) and are those at s = 1.
        Empty where the loop has no such subsystems.
    full
        Eigenvalues of the loop with the true stiffness [rad/s].
    s, poles
        Stiffness factors, ascending, and the eigenvalues of the loop at each [rad/s].
    ranges
        Intervals (low, high) of s in which the loop is stable, ascending; None where only the bound
        is known.
    """

    slow: ComplexArray
    fast: ComplexArray
    full: ComplexArray
    s: Array
    poles: tuple[ComplexArray, ...]
    ranges: tuple[tuple[float, float], ...] | None

    def __post_init__(self) -> None:
        """Check that factors and ranges ascend, and that every factor has its eigenvalues."""
        s = checks.shape("s", self.s, (len(self.poles),))
        edges = np.array(self.ranges or ()).ravel()
        for name, values in (("s", s), ("ranges", edges)):
            if len(values) and (values[0] < 0 or (np.diff(values) < 0).any()):
                raise InputError(f"{name}: expected ascending stiffness factors, got {values}")


@dataclass(frozen=True, kw_only=True, repr=False)
class TimeScaleMargin(Summary):
    """Time-scale margin of a composite design: its separation bounds on an arm.

    Attributes
    ----------
    model, design
        Names of arm and design.
    truth, basis
        Discretisations of the truth plant and of the design plant.
    path
        Bounds along the reference, on the truth plant; factors s of the stiffness [-].
    orders
        Bounds over truth orders, each the worse of the final pose and the worst pose of `path`.
    spectra
        Eigenvalues [rad/s] at the worst pose on the truth plant.
    epsilon
        1/k_c of the truth plant at that pose, k_c its least stiffness [N/m or N m/rad]; depends on
        its basis.
    assumptions
        Assumptions of the bound, in sentences.

    Examples
    --------
    >>> import flexctl
    >>> margin = flexctl.time_scale_margin("subudhi-morris-2r", "subudhi-morris-lqr")
    >>> round(margin.worst.s_star, 4)
    0.0038
    """

    model: str
    design: str
    truth: BasisChoice
    basis: BasisChoice
    path: tuple[Bound, ...]
    orders: tuple[Bound, ...]
    spectra: Spectra
    epsilon: float
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that epsilon is positive, and that neither `path` nor `orders` is empty."""
        checks.positive("epsilon", self.epsilon)
        for name, bounds in (("path", self.path), ("orders", self.orders)):
            if not bounds:
                raise InputError(f"{name}: expected one bound at least, got none")

    @property
    def worst(self) -> Bound:
        """Largest s_star along the path and over the truth orders."""
        return max((*self.path, *self.orders), key=lambda bound: bound.s_star)

    @property
    def stable(self) -> bool | str:
        """Whether the loop is stable with the true stiffness, at all poses and truth orders."""
        return all_stable([bound.stable for bound in (*self.path, *self.orders)])

    @property
    def mu(self) -> float:
        """Perturbation parameter mu = sqrt(epsilon)."""
        return float(np.sqrt(self.epsilon))

    @property
    def mu_star(self) -> float:
        """Value of mu at which stability is lost: mu / sqrt(s_star); infinite where it never is."""
        s_star = self.worst.s_star
        return self.mu / float(np.sqrt(s_star)) if s_star else np.inf


def all_stable(verdicts: Sequence[bool | str]) -> bool | str:
    """Combine verdicts on several loops: False if one is unstable, else "marginal" if one is."""
    if False in verdicts:
        return False
    return "marginal" if "marginal" in verdicts else True
