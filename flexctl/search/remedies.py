"""The deliberate underestimate of the stiffness with which a loop tolerates a larger error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flexctl.errors import InputError
from flexctl.robustness import Interval, StiffnessMargin


@dataclass(frozen=True, kw_only=True)
class Bias:
    """A deliberate error of the controller's stiffness, and the error that is then tolerated.

    Attributes
    ----------
    bias
        b [-]: the controller computes with K_hat = (1 + b) K_file.
    tolerates
        Largest t [-] for which the loop is stable under |K_file/K - 1| < t, at most 1, where the
        lower end means no stiffness. The arm has the dynamics of K_file here; `search.other_arms`
        judges arms of other stiffness.
    """

    bias: float
    tolerates: float

    def __post_init__(self) -> None:
        """Check that the biased stiffness is positive, and that `tolerates` is in 0 .. 1."""
        if not self.bias > -1:
            raise InputError(f"bias: expected one above -1, got {self.bias:g}")
        if not 0 <= self.tolerates <= 1:
            raise InputError(f"tolerates: expected one in 0 .. 1, got {self.tolerates:g}")


def best_bias(intervals: Iterable[Interval | None]) -> Bias | None:
    """Choose the bias that makes the two-sided margin largest at several poses at once.

    A loop that is stable for l < K_hat/K - 1 < u tolerates with K_hat = (1 + b) K_file

        (1 + l)/(1 + b) - 1 < K_file/K - 1 < (1 + u)/(1 + b) - 1.

    Both sides are equal at 1 + b = (2 + u + l)/2, where they are (u - l)/(2 + u + l); l is the
    largest lower end of the poses and u the least upper one. Gains do not change, and only
    stability is judged. Without an upper limit an underestimate gains nothing: b = 0.

    Parameters
    ----------
    intervals
        Stable interval of each pose; None where the loop is unstable without an error.

    Returns
    -------
    Bias or None
        None where the loop is unstable at a pose without an error, and for no poses.
    """
    every = list(intervals)
    known = [interval for interval in every if interval]
    if not known or len(known) < len(every):
        return None
    lower = max(interval.alpha_lower for interval in known)
    if all(interval.upper is None for interval in known):
        return Bias(bias=0.0, tolerates=-lower)
    upper = min(interval.alpha_upper for interval in known)
    total = 2 + upper + lower
    return Bias(bias=total / 2 - 1, tolerates=min((upper - lower) / total, 1.0))


def tolerated_with(intervals: Iterable[Interval], bias: float) -> tuple[float, float]:
    """Return the ends of K_file/K - 1 that all poses tolerate with K_hat = (1 + b) K_file.

    As in `best_bias`; the upper end is infinite without a limit.
    """
    every = list(intervals)
    lower = max(interval.alpha_lower for interval in every)
    upper = min(interval.alpha_upper for interval in every)
    return (1 + lower) / (1 + bias) - 1, (1 + upper) / (1 + bias) - 1


def bias_for(intervals: Iterable[Interval | None], expected: float) -> float | None:
    """Smallest underestimate b <= 0 with which all poses tolerate an overestimate of `expected`.

    1 + b = (1 + u)/(1 + expected), with u and l as in `best_bias`. None where the loop would be
    unstable with the right K_file, b < l, or is unstable without an error.
    """
    every = list(intervals)
    known = [interval for interval in every if interval]
    if not known or len(known) < len(every):
        return None
    upper = min(interval.alpha_upper for interval in known)
    lower = max(interval.alpha_lower for interval in known)
    bias = min((1 + upper) / (1 + expected) - 1, 0.0)
    return bias if bias > lower or not bias else None


def margin_intervals(margin: StiffnessMargin) -> list[Interval | None]:
    """Stable intervals of the judged pose and of the poses of the motion."""
    return [margin.exact, *(pose.interval for pose in margin.path)]


def margin_bias(margin: StiffnessMargin) -> Bias | None:
    """Choose the best bias for the judged pose and the whole motion together."""
    return best_bias(margin_intervals(margin))
