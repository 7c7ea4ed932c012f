"""What is found about a loop whose controller has a wrong stiffness, with its evidence."""

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

    `alpha_star` is the lemma's, `interval` the exact one; None where the loop is unstable without
    any error, its actuators cannot hold the arm, or it has no equilibrium there: `why` names the
    loop and says it, `reason` says it alone, and `growing` is the mode that grows.
    """

    t: float
    alpha_star: float
    interval: Interval | None
    why: str = ""
    reason: str = ""
    growing: Growing | None = None


@dataclass(frozen=True, kw_only=True)
class OrderMargin:
    """The same at the judged pose, of the gain set made on a plant of another order.

    `abscissa` is the largest real part of its eigenvalues without error [1/s], NaN where there is
    no such controller; `alpha_star` the lemma's on that plant.
    """

    basis: BasisChoice
    interval: Interval | None
    abscissa: float
    alpha_star: float
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Locus:
    """Eigenvalues (N,) [1/s] at errors alpha (k,), ascending, of the loop at the judged pose."""

    alpha: Array
    poles: tuple[ComplexArray, ...]


@dataclass(frozen=True, kw_only=True)
class ModeRate:
    """An eigenvalue at alpha = 0 [1/s] and its derivative by alpha [1/s]: growth to first order."""

    mode: str
    value: complex
    rate: complex

    @property
    def lost_at(self) -> float:
        """Error [-] at which its decay is used up to first order; infinite if it does not grow."""
        grows = self.rate.real > 0
        return max(-self.value.real, 0.0) / self.rate.real if grows else np.inf


@dataclass(frozen=True, kw_only=True)
class GrowthRun:
    """What a mode does in a nonlinear run, beside its eigenvalue.

    Attributes
    ----------
    rate
        Growth of the mode's share in the state over the run [1/s].
    eigenvalue
        Of the linear loop [1/s]; its real part is what `rate` should be.
    duration
        Of the run [s].
    """

    rate: float
    eigenvalue: complex
    duration: float

    @property
    def error(self) -> float:
        """|rate - Re lambda| over |Re lambda| [-]."""
        return abs(self.rate - self.eigenvalue.real) / abs(self.eigenvalue.real)


@dataclass(frozen=True, kw_only=True)
class IndependentErrorsAt:
    """Independent errors at one pose.

    Attributes
    ----------
    t, where
        Time of the pose [s], and which it is in words.
    second_loop
        Whether the second loop acts there.
    bounds
        Bounds from both sides.
    mode
        What the worst case loses; empty where none was found.
    ends
        What ends the equilibrium itself in the worst case, see `StabilityLimit`; or empty.
    guaranteed
        What the bounds say of every kind of error, in its own quantity.
    worst_errors
        Errors of the worst case by name, relative to what they are errors of [-]; empty likewise.
    run
        A nonlinear run just beyond the worst case, where one was asked for.
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
        Their names.
    truth, basis
        Discretisation of the arm as it is and of the controller's model.
    pose
        Joint variables [rad or m] by name of the judged pose: the final one, unless chosen.
    pose_chosen
        Whether the judged pose was chosen in place of the final one.
    second_loop
        Whether the second loop acts there.
    lemma
        Of the controller's model at that pose.
    partial
        The lemma there for errors of one link, mode or spring alone, by name.
    true_arm_lemma
        The lemma there for the error that the model has beside an arm of other stiffness; None
        where it has none.
    assumed_stiffness
        What a stiffness does that was given by its parts; None where none was.
    exact
        Interval of the complete loop at that pose.
    rates
        Growth of every oscillatory mode to first order there, the fastest growing first.
    locus
        Eigenvalues over the error.
    path
        Along the motion, under the law of the gross motion.
    path_growth
        Growth of a small disturbance over the motion with an overestimate of 10 %; None where all
        poses that are judged tolerate it, one is unstable without error, or it was not found.
    orders
        The gain set made on other plants; empty if that was not asked for.
    independent
        Independent errors; empty if that was not asked for.
    unknown_damping
        Whether the controller does not know the damping.
    assumptions
        What all this rests on, in sentences.

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
        """Pose of the motion that takes the least overestimate; None where none is stable."""
        stable = [(p.interval.alpha_upper, p) for p in self.path if p.interval]
        return min(stable, key=lambda pair: pair[0])[1] if stable else None

    @property
    def worst_below(self) -> PoseMargin | None:
        """Pose of the motion that takes the least underestimate; None where none is stable."""
        stable = [(p.interval.alpha_lower, p) for p in self.path if p.interval]
        return max(stable, key=lambda pair: pair[0])[1] if stable else None


@dataclass(frozen=True, kw_only=True)
class AssumedAtPose:
    """What a given error dK = K_hat - K does at one pose.

    Attributes
    ----------
    t
        Time of the pose in the motion [s]; None of the judged pose.
    stable
        Whether nothing grows with all of dK.
    abscissa
        Largest real part of its eigenvalues then [1/s].
    mode
        What grows fastest; empty where the loop is stable.
    interval
        Interval of t within which K + t dK is tolerated; None where the loop is unstable without
        error, or its margin cannot be told, as `why` says.
    """

    t: float | None
    stable: bool
    abscissa: float
    mode: str
    interval: Interval | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class AssumedStiffness:
    """A stiffness that was given: what the lemma says of it, and what the loop does with it.

    Attributes
    ----------
    errors
        K_hat/K - 1 [-] of the parts that have one, by name.
    lemma
        At the judged pose; `alpha_star` is the share t of dK at which the flexible block is lost,
        above 1 where the lemma allows all of it.
    at
        The judged pose first, then those of the motion.
    """

    errors: Mapping[str, float]
    lemma: Lemma
    at: tuple[AssumedAtPose, ...]

    @property
    def worst(self) -> AssumedAtPose:
        """Pose that is lost: the one that grows fastest; else that which tolerates least of dK."""
        lost = [at for at in self.at if not at.stable]
        if lost:
            return max(lost, key=lambda at: at.abscissa)
        return min(self.at, key=lambda at: at.interval.alpha_upper if at.interval else 0.0)


def follow(locus: Locus) -> ComplexArray:
    """Eigenvalues (k, N) of a locus, one column per branch, in the order they have at alpha = 0.

    Each goes to where its last step leads, all together by the least sum of relative distances.
    Branches that meet between two errors may be exchanged there: it is for drawing.
    """
    middle = int(np.abs(locus.alpha).argmin())
    poles = [np.asarray(values, dtype=complex) for values in locus.poles]
    above = _followed(locus.alpha[middle:], poles[middle:])
    below = _followed(locus.alpha[middle::-1], poles[middle::-1])
    return np.array([*below[:0:-1], *above])


def _followed(alpha: Array, poles: list[ComplexArray]) -> list[ComplexArray]:
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
