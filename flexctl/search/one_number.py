"""The question of this package: over which number, until which margin.

A loop is judged with other numbers, the most preferable value first, and the bracket before the
first that serves is narrowed (`first_serving`). What serves is mostly a margin (`search_over`):
alpha_upper, the overestimate of the stiffness that a loop tolerates, is not monotone in a gain, a
damping or an inertia. Values that tolerate enough may form several bands, as one mode after the
other passes the bandwidth; a band between two values tried is missed, but the answer itself is
verified exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.optimize

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import ClosedLoop, motion_poses
from flexctl.robustness import PoseLoop, StabilityLimit, axis_tolerance, loop_at

Variants = Callable[[float], Iterable[PoseLoop]]
"""Loops of one variant by its value, at all judged poses, made one by one on demand; raises
DesignError where there is no such variant."""

Pose = tuple[Array, float]
"""Joint variables (m,) of a judged pose, and the weight of the second loop there."""

_INSIDE = 0.01  # underestimate that a loop well inside the stable range tolerates
_LEAST = 1e-3  # of the requirement: a variant that tolerates less counts as unstable
_NEXT = 0.05  # of the requirement: smaller improvements of the best value are ignored
_NARROW = 1e-7  # width of the last bracket, in the logarithm or relative to the larger end
_ASIDE = (2, 20, 200)  # widths beside the crossing of an eigenvalue: round-off may hide slow growth
_COARSE = 2.0**-20  # of the bracket, where the loop is unstable between the errors looked at
_KEPT = 32  # linear loops


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Exact stable interval of one variant, the worst of all judged poses.

    Attributes
    ----------
    value
        Value of the varied number.
    alpha_upper
        Least upper end of the stable intervals [-]; NaN where the loop is unstable without error.
    alpha_lower
        Largest lower end [-], NaN likewise. Near 0 the variant is close to instability without any
        error.
    loss
        Stability limit at `alpha_upper`; None where there is none or the loop is unstable.
    joints, second_loop
        Joint variables (m,) of the worst pose, and whether it is judged under the second loop;
        empty without a limit.
    why
        Why there is no margin; empty otherwise.
    """

    value: float
    alpha_upper: float
    alpha_lower: float = np.nan
    loss: StabilityLimit | None = None
    joints: tuple[float, ...] = ()
    second_loop: bool = False
    why: str = ""

    @property
    def mode(self) -> str:
        """Mode that becomes unstable at the upper end; "" without a limit."""
        return self.loss.mode if self.loss else ""

    def tolerates(self, until: float) -> bool:
        """Whether an overestimate of `until` is tolerated, and an underestimate of up to 1 %.

        The underestimate excludes variants that are about to be unstable without any error.
        """
        return self.alpha_upper >= until and -self.alpha_lower >= min(until, _INSIDE)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The most preferable value with the required margin, with its evidence.

    Attributes
    ----------
    until
        Required alpha_upper [-]; None where all values are judged for what they tolerate.
    answer
        The variant with the answer; None where no value tried tolerates the overestimate.
    fails
        The next more preferable value, which does not tolerate it, mostly within 1e-6 of the
        answer; None where the answer is the first value.
    best
        The answer, or else the variant that tolerates most, to within 5 % of the requirement; None
        where none tolerates 0.1 % of the requirement.
    own
        The unchanged variant; None where it was not judged.
    values
        Values tried, the most preferable first; a band between two of them is missed.
    trials
        Variants judged exactly, in their order: all values where nothing is required.
    variants
        Number of variants judged, including those rejected by eigenvalues.
    """

    until: float | None
    answer: Trial | None
    fails: float | None
    best: Trial | None
    own: Trial | None
    values: tuple[float, ...]
    trials: tuple[Trial, ...]
    variants: int


def search_over(
    variants: Variants,
    values: Sequence[float] | Array,
    until: float | None = None,
    own: float | None = None,
) -> Searched:
    """Judge variants in the order of their values until one tolerates an overestimate.

    The bracket before that one is narrowed. Most values are rejected by the eigenvalues at a few
    errors, up to the requirement or to the best so far. All others, and the answer, are judged by
    the exact interval.

    Parameters
    ----------
    variants
        Loops by value: see `at_poses`.
    values
        Values to try, the most preferable first.
    until
        Required alpha_upper [-]; None to judge all values.
    own
        Value of the unchanged loop, to be judged first; None for none.

    Raises
    ------
    InputError
        When `until` is not above 0, or there are no values.
    """
    if not len(values) or (until is not None and not until > 0):
        got = f"{until:g} and {len(values)} values" if until is not None else "no values"
        raise InputError(f"required margin: expected one above 0 and values to try, got {got}")
    return _Search(variants, until).through(tuple(map(float, values)), own)


def first_serving(
    serves: Callable[[float], bool],
    values: Iterable[float],
    narrowed: Callable[[float, float], tuple[float, float]],
) -> tuple[float | None, float | None]:
    """Find the first of `values` that serves, and the one before it, which does not.

    The most preferable value comes first, and `narrowed` narrows the bracket between both, as
    `narrow` does. The second is None where there is none before it, both are where none serves.
    """
    fails = None
    for value in values:
        if serves(value):
            return (value, None) if fails is None else narrowed(value, fails)
        fails = value
    return None, None


def at_poses(
    close: Callable[[float], ClosedLoop], poses: Sequence[Pose], *, still: bool = False
) -> Variants:
    """Return the loops of `close` by value, linearised at poses; the last few are kept.

    With `still` the arm is held where it rests without an error of the stiffness.
    """
    closed = lru_cache(maxsize=4)(close)

    @lru_cache(maxsize=_KEPT)
    def linear(value: float, k: int) -> PoseLoop:
        pose = loop_at(closed(value), *poses[k])
        return replace(pose, family=None) if still else pose

    return lambda value: (linear(value, k) for k in range(len(poses)))


def judged_poses(closed: ClosedLoop, count: int) -> list[Pose]:
    """List the final pose under the second loop if there is one, then `count` of the motion.

    These, the end first, are under the law of the gross motion.
    """
    poses, final = motion(closed, count), closed.controller.reference.final
    if closed.controller.feedback is None:
        return poses
    return [(final, 1.0), *(poses if count else [])]


def motion(closed: ClosedLoop, count: int) -> list[Pose]:
    """List `count` poses of the motion under the law of the gross motion, the end first."""
    along = motion_poses(closed.controller.reference, count)[1][::-1]
    return [(joints, 0.0) for joints in along]


def narrow(
    serves: Callable[[float], bool],
    good: float,
    bad: float,
    *,
    width: float,
    between: Callable[[float, float], float] = lambda good, bad: (good + bad) / 2,
    most: int | None = None,
) -> tuple[float, float]:
    """Narrow a bracket between a value that serves and one that does not, by `most` trials."""
    while abs(good - bad) > width and most != 0:
        value, most = between(good, bad), None if most is None else most - 1
        good, bad = (value, bad) if serves(value) else (good, value)
    return good, bad


def log_grid(low: float, high: float, per_decade: int) -> Array:
    """Ascending values from low to high, both included, in equal ratios."""
    count = int(np.ceil(per_decade * np.log10(high / low))) + 1
    return np.geomspace(low, high, max(count, 2))


def judge(value: float, loops: Callable[[], Iterable[PoseLoop]]) -> Trial:
    """Find the exact stable interval of a variant at the worst of its poses."""
    worst, lower = Trial(value=value, alpha_upper=np.inf), -1.0
    try:
        for pose in loops():
            upper, lower = pose.interval.upper, max(lower, pose.interval.alpha_lower)
            if upper is not None and upper.alpha < worst.alpha_upper:
                worst = Trial(
                    value=value,
                    alpha_upper=upper.alpha,
                    loss=upper,
                    joints=tuple(pose.joints.tolist()),
                    second_loop=bool(pose.second_loop_weight),
                )
    except (DesignError, ComputationError) as error:
        return Trial(value=value, alpha_upper=np.nan, why=str(error))
    return replace(worst, alpha_lower=lower)


def excess(loop: PoseLoop, alpha: float) -> float:
    """Largest Re lambda/|lambda| [-] under an error: above 0 the loop is unstable.

    Eigenvalues on the imaginary axis are left out; -1 where there are no others.
    """
    values = loop.loop.poles(np.array([alpha]))
    off = np.abs(values.real) > axis_tolerance(values)
    return float(np.max(values.real[off] / np.abs(values[off]), initial=-1.0))


class _Search:
    """A search through the values, and in the bracket before the first suitable one.

    `best` is the variant that tolerates most so far, `answer` the last that tolerates enough;
    `rejected` variants were not judged exactly.
    """

    def __init__(self, variants: Variants, until: float | None) -> None:
        self.variants, self.until = variants, until
        self.best: Trial | None = None
        self.answer: Trial | None = None
        self.trials: list[Trial] = []
        self.rejected = 0

    def through(self, values: tuple[float, ...], own: float | None) -> Searched:
        """Search the values in their order."""
        start = self._exact(own) if own is not None else None

        def serves(value: float) -> bool:
            return not self._is_rejected(value) and self._serves(value)

        _, fails = first_serving(serves, values, self._narrowed)
        return Searched(
            until=self.until,
            answer=self.answer,
            fails=fails,
            best=self.answer or self.best,
            own=start,
            values=values,
            trials=tuple(self.trials),
            variants=self.rejected + len(self.trials),
        )

    def _serves(self, value: float) -> bool:
        trial = self._exact(value)
        if self.until is None or not trial.tolerates(self.until):
            return False
        self.answer = trial
        return True

    def _exact(self, value: float) -> Trial:
        """Exact stable interval of a value, which is kept if it tolerates more than the best."""
        trial = judge(value, lambda: self.variants(value))
        self.trials.append(trial)
        if trial.alpha_upper > (self.best.alpha_upper if self.best else -np.inf):  # NaN never is
            self.best = trial
        return trial

    def _is_rejected(self, value: float) -> bool:
        """Whether eigenvalues show that a value tolerates less than required, and than the best."""
        if self.until is None:
            return False
        least, x = self.best.alpha_upper if self.best else 0.0, self.until
        most = min(least + _NEXT * x if least else _LEAST * x, x)
        unstable = self._excess(value, (most, 0.0), first=True) > 0
        self.rejected += unstable
        return unstable

    def _excess(self, value: float, errors: Sequence[float], *, first: bool = False) -> float:
        """Largest `excess` over poses and errors; with `first` the first one above 0."""
        worst = -1.0
        try:
            for pose in self.variants(value):
                worst = max([worst, *(excess(pose, alpha) for alpha in errors)])
                if first and worst > 0:
                    return worst
        except (DesignError, ComputationError):
            return 1.0
        return worst

    def _narrowed(self, good: float, bad: float) -> tuple[float, float]:
        """Narrow the bracket between a suitable value and one that fails."""
        assert self.until is not None
        at, length = _path(good, bad)
        errors = tuple(np.linspace(0.0, self.until, 4)[::-1])

        def gap(t: float) -> float:
            self.rejected += 1
            return self._excess(at(t), errors)

        def serves(t: float) -> bool:
            return self._serves(at(t))

        if gap(1.0) > 0 > gap(0.0):
            near = _NARROW / length
            t, _ = scipy.optimize.brentq(gap, 0.0, 1.0, xtol=near, full_output=True)
            for aside in _ASIDE:
                inside, outside = max(t - aside * near, 0.0), min(t + aside * near, 1.0)
                if serves(inside):
                    return at(inside), at(outside)
        inside, outside = narrow(serves, 0.0, 1.0, width=_COARSE)
        return at(inside), at(outside)


def _path(start: float, end: float) -> tuple[Callable[[float], float], float]:
    """Path of values over t in [0, 1], geometric where both ends are above 0, and its length.

    The length is in the logarithm, or relative to the larger end.
    """
    if min(start, end) > 0:
        return lambda t: float(start * (end / start) ** t), abs(float(np.log(end / start)))
    return lambda t: start + t * (end - start), 1.0
