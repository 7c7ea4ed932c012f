"""Records of the stiffness margin, with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.loop import in_words
from flexctl.model import BasisChoice
from flexctl.records import Summary
from flexctl.robustness.certificates.record import CertifiedErrors
from flexctl.robustness.lft import MuBounds
from flexctl.robustness.stiffness.lemma import Lemma
from flexctl.robustness.stiffness.path_growth import PathGrowth


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
        or the law repeats in cycles of several samples; it is then followed in steps up to
        `FARTHEST` of `followed`.
    repeats
        Whether the latter is why.
    """

    lower: StabilityLimit | None
    upper: StabilityLimit | None
    unmoved: tuple[str, ...] = ()
    unknowns: int = 0
    counted: int = 0
    proven: bool = True
    repeats: bool = False

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


@dataclass(frozen=True, kw_only=True)
class PoseMargin:
    """Margins at one pose of the motion, under the law of the gross motion.

    Attributes
    ----------
    t
        Time of the pose [s].
    alpha_star
        Margin of the lemma [-]; NaN where the arm has no equilibrium, or its links buckle.
    interval
        Exact stable interval; None where the loop is unstable without error, its actuators cannot
        hold the arm, or it has no equilibrium.
    why, reason
        Why there is no interval, with and without the name of the loop; empty otherwise.
    growing
        The mode that grows without error; None where none does.
    certified
        What is proven of the interval; None where that was not asked.
    """

    t: float
    alpha_star: float
    interval: Interval | None
    why: str = ""
    reason: str = ""
    growing: Growing | None = None
    certified: CertifiedErrors | None = None


@dataclass(frozen=True, kw_only=True)
class OrderMargin:
    """Margins at the judged pose of the design repeated on a plant of another discretisation.

    Attributes
    ----------
    basis
        That discretisation.
    interval
        Exact stable interval; None where there is none, as `why` says.
    abscissa
        Largest real part of the eigenvalues without error [1/s], NaN without a controller.
    alpha_star
        Margin of the lemma on that plant [-].
    """

    basis: BasisChoice
    interval: Interval | None
    abscissa: float
    alpha_star: float
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Locus:
    """Eigenvalues (N,) [1/s] of the loop at the judged pose, at ascending errors alpha (k,) [-]."""

    alpha: Array
    poles: tuple[ComplexArray, ...]


@dataclass(frozen=True, kw_only=True)
class ModeRate:
    """An eigenvalue at alpha = 0, `value` [1/s], and its derivative by alpha, `rate` [1/s]."""

    mode: str
    value: complex
    rate: complex

    @property
    def lost_at(self) -> float:
        """Error [-] at which its real part is 0 to first order; infinite where it does not grow."""
        grows = self.rate.real > 0
        return max(-self.value.real, 0.0) / self.rate.real if grows else np.inf


def mode_rates(
    values: ComplexArray, rates: ComplexArray, name: Callable[[int], str]
) -> tuple[ModeRate, ...]:
    """Oscillatory ones of the eigenvalues (N,) [1/s] with their rates, the fastest growing first.

    `name` gives the mode of an eigenvalue by its index.
    """
    oscillatory = np.flatnonzero(values.imag > 0)
    return tuple(
        ModeRate(mode=name(k), value=complex(values[k]), rate=complex(rates[k]))
        for k in oscillatory[np.argsort(-rates.real[oscillatory])]
    )


@dataclass(frozen=True, kw_only=True)
class GrowthRun:
    """Growth of a mode in a nonlinear run, compared with its eigenvalue.

    Attributes
    ----------
    rate
        Growth rate of the mode's amplitude over the run [1/s].
    eigenvalue
        Eigenvalue of the linear loop [1/s]; `rate` approximates its real part.
    duration
        Duration of the run [s].
    """

    rate: float
    eigenvalue: complex
    duration: float


@dataclass(frozen=True, kw_only=True)
class IndependentErrorsAt:
    """Independent errors at one pose.

    Attributes
    ----------
    t, where
        Time of the pose [s], and its name in words.
    second_loop
        Whether the second loop acts there.
    bounds
        Bounds of the errors that are tolerated, from below and above.
    mode
        Mode that becomes unstable in the worst case; empty where none was found.
    ends
        How the equilibrium itself ends in the worst case, see `StabilityLimit`; empty otherwise.
    guaranteed
        Guaranteed range of every kind of error.
    worst_errors
        Relative errors of the worst case by name [-]; empty where none was found.
    run
        A nonlinear run just beyond the worst case; None without one.
    """

    t: float
    where: str
    second_loop: bool
    bounds: MuBounds
    mode: str
    guaranteed: tuple[Guaranteed, ...] = ()
    worst_errors: Mapping[str, float] = field(default_factory=dict)
    run: GrowthRun | None = None
    ends: Literal["", "fold", "torque"] = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class StiffnessMargin(Summary):
    """How wrong the stiffness of a controller's model may be.

    Attributes
    ----------
    model, design
        Names of arm and design.
    truth, basis
        Discretisation of the truth plant and of the controller's model.
    pose
        Joint variables [rad or m] by name of the judged pose: the final one, unless chosen.
    pose_chosen
        Whether the judged pose was chosen in place of the final one.
    second_loop
        Whether the second loop acts there.
    lemma
        The lemma of the controller's model at that pose.
    partial
        The lemma there for errors of one link, mode or spring alone, by name.
    true_arm_lemma
        The lemma there for the difference of the model's stiffness from that of the true arm; None
        where they are equal.
    assumed_stiffness
        Verdict on an assumed stiffness; None without one.
    exact
        Stable interval of the complete loop at that pose.
    certified
        What is proven of it in interval arithmetic; None where that was not asked.
    rates
        Growth of every oscillatory mode to first order there, the fastest growing first.
    locus
        Eigenvalues over the error there.
    path
        Margins along the motion, under the law of the gross motion.
    path_growth
        Growth of a small disturbance over the motion with an overestimate of 10 %; None where all
        judged poses tolerate it, one is unstable without error, or it could not be computed.
    orders
        Margins of the design repeated on other discretisations; empty without these.
    independent
        Bounds of independent errors; empty without these.
    unknown_damping
        Whether the controller is designed without the damping.
    assumptions
        Assumptions of these margins, in sentences.

    Examples
    --------
    >>> import flexctl
    >>> margin = flexctl.stiffness_margin("planar-two-link", "two-link-decoupling", n_path=0)
    >>> margin.second_loop, margin.exact.proven
    (True, True)
    """

    model: str
    design: str
    truth: BasisChoice
    basis: BasisChoice
    pose: Mapping[str, float]
    pose_chosen: bool = False
    second_loop: bool
    lemma: Lemma
    partial: Mapping[str, Lemma]
    true_arm_lemma: Lemma | None
    assumed_stiffness: AssumedStiffness | None = None
    exact: Interval
    rates: tuple[ModeRate, ...]
    locus: Locus
    path: tuple[PoseMargin, ...]
    path_growth: PathGrowth | None = None
    certified: CertifiedErrors | None = None
    orders: tuple[OrderMargin, ...]
    independent: tuple[IndependentErrorsAt, ...]
    unknown_damping: bool
    assumptions: tuple[str, ...]

    @property
    def certified_along(self) -> tuple[float, float] | None:
        """Errors [-] for which stability is proven at all poses of the motion; None if at no error.

        None too where that was not asked, or is not proven of a pose.
        """
        found = [(c.alpha_lower, c.alpha_upper) for c in (p.certified for p in self.path) if c]
        known = [(low, high) for low, high in found if low is not None and high is not None]
        if not known or len(known) < len(self.path):
            return None
        return max(low for low, _ in known), min(high for _, high in known)

    @property
    def worst(self) -> PoseMargin | None:
        """Pose of the motion that tolerates the least overestimate; None where none is stable."""
        stable = [(p.interval.alpha_upper, p) for p in self.path if p.interval]
        return min(stable, key=lambda pair: pair[0])[1] if stable else None

    @property
    def worst_below(self) -> PoseMargin | None:
        """Pose of the motion that tolerates the least underestimate; None where none is stable."""
        stable = [(p.interval.alpha_lower, p) for p in self.path if p.interval]
        return max(stable, key=lambda pair: pair[0])[1] if stable else None


@dataclass(frozen=True, kw_only=True)
class AssumedAtPose:
    """Stability at one pose under an assumed stiffness with the error dK = K_hat - K.

    Attributes
    ----------
    t
        Time of the pose in the motion [s]; None for the judged pose.
    stable
        Whether the loop is stable with all of dK.
    abscissa
        Largest real part of its eigenvalues then [1/s].
    mode
        The mode that grows fastest; empty where the loop is stable.
    interval
        Interval of factors x [-] for which the loop with K + x dK is stable; None where it is
        unstable without error, or its margin could not be computed, as `why` says.
    """

    t: float | None
    stable: bool
    abscissa: float
    mode: str
    interval: Interval | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class AssumedStiffness:
    """Verdict of the lemma and of the loop on an assumed stiffness.

    Attributes
    ----------
    errors
        K_hat/K - 1 [-] by name of the part, of all parts with an error.
    lemma
        The lemma at the judged pose; `alpha_star` is the fraction of dK at which the flexible block
        becomes unstable, above 1 where the lemma allows all of dK.
    at
        Stability at the judged pose first, then at those of the motion.
    """

    errors: Mapping[str, float]
    lemma: Lemma
    at: tuple[AssumedAtPose, ...]

    @property
    def worst(self) -> AssumedAtPose:
        """The unstable pose that grows fastest; else that which tolerates the least part of dK."""
        lost = [at for at in self.at if not at.stable]
        if lost:
            return max(lost, key=lambda at: at.abscissa)
        return min(self.at, key=lambda at: at.interval.alpha_upper if at.interval else 0.0)
