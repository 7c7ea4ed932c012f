"""What is found about a stiffness that was given part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flexctl.robustness.stiffness.interval import Interval
from flexctl.robustness.stiffness.lemma import Lemma


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
