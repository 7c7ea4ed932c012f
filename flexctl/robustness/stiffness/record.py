"""Records of the stiffness margin, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.model import BasisChoice
from flexctl.records import Summary
from flexctl.robustness.lft import MuBounds
from flexctl.robustness.stiffness.interval import Growing, Guaranteed, Interval
from flexctl.robustness.stiffness.lemma import Lemma
from flexctl.robustness.stiffness.path_growth import PathGrowth


@dataclass(frozen=True, kw_only=True)
class PoseMargin:
    """Margins at one pose of the motion, under the law of the gross motion.

    Attributes
    ----------
    t
        Time of the pose [s].
    alpha_star
        Margin of the lemma [-].
    interval
        Exact stable interval; None where the loop is unstable without error, its actuators cannot
        hold the arm, or it has no equilibrium.
    why, reason
        Why there is no interval, with and without the name of the loop; empty otherwise.
    growing
        The mode that grows without error; None where none does.
    """

    t: float
    alpha_star: float
    interval: Interval | None
    why: str = ""
    reason: str = ""
    growing: Growing | None = None


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

    @property
    def error(self) -> float:
        """Relative error |rate - Re lambda| / |Re lambda| [-]."""
        return abs(self.rate - self.eigenvalue.real) / abs(self.eigenvalue.real)


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
    orders: tuple[OrderMargin, ...]
    independent: tuple[IndependentErrorsAt, ...]
    unknown_damping: bool
    assumptions: tuple[str, ...]

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


def follow(locus: Locus) -> ComplexArray:
    """Eigenvalues (k, N) of a locus, one column per branch, in the order they have at alpha = 0.

    Eigenvalues are matched to linear predictions of the branches by the least sum of relative
    distances. Branches that meet between two errors may be exchanged there: only for figures.
    """
    middle = int(np.abs(locus.alpha).argmin())
    poles = [np.asarray(values, dtype=complex) for values in locus.poles]
    above = _followed(locus.alpha[middle:], poles[middle:])
    below = _followed(locus.alpha[middle::-1], poles[middle::-1])
    return np.array([*below[:0:-1], *above])


def _followed(alpha: Array, poles: list[ComplexArray]) -> list[ComplexArray]:
    """Eigenvalues (N,) at each error, in the order of the first ones."""
    branches = poles[:1]
    for k in range(1, len(poles)):
        expected = branches[-1]
        if k > 1:
            step = (alpha[k] - alpha[k - 1]) / (alpha[k - 1] - alpha[k - 2])
            ahead = step * (branches[-1] - branches[-2])
            expected = expected + ahead * np.minimum(
                1, np.abs(expected) / (4 * np.abs(ahead) + 1e-300)
            )
        gap = np.abs(expected[:, None] - poles[k]) / (np.abs(expected)[:, None] + 1e-12)
        branches.append(poles[k][scipy.optimize.linear_sum_assignment(gap)[1]])
    return branches
