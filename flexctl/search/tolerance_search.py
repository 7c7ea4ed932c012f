"""The first of many variants of a loop that tolerates a required overestimate of the stiffness.

alpha_upper is not monotone in a gain, a damping or an inertia: values that tolerate the required
overestimate may form several bands, as one mode after the other passes the bandwidth. A grid is
searched in the order of preference, and the bracket before the first suitable value is refined. A
band between two values of the grid is missed; the answer itself is verified exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.robustness import PoseLoop, StabilityLimit, axis_tolerance

Variants = Callable[[float], Iterable[PoseLoop]]
"""Loops of one variant by its value, at all judged poses, made one by one on demand; raises
DesignError where there is no such variant."""

_INSIDE = 0.01  # underestimate that a loop well inside the stable range tolerates
_LEAST = 1e-3  # of the requirement: a variant that tolerates less counts as unstable
_NEXT = 0.05  # of the requirement: smaller improvements of the best value are ignored
_NARROW = 1e-7  # width of the last bracket, in the logarithm or relative to the larger end
_HALVINGS = 20


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Exact stable interval of one variant, the worst of all judged poses.

    Attributes
    ----------
    value
        Value of the varied parameter.
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

    def tolerates(self, expected: float) -> bool:
        """Whether an overestimate of `expected` is tolerated, and an underestimate of up to 1 %.

        The underestimate excludes variants that are about to be unstable without any error.
        """
        return self.alpha_upper >= expected and -self.alpha_lower >= min(expected, _INSIDE)


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The most preferable value that tolerates the required overestimate, with its evidence.

    Attributes
    ----------
    expected
        Required alpha_upper [-].
    answer
        The variant with the answer; None where no value of the grid tolerates the overestimate.
    fails
        The next more preferable value, which does not tolerate it, mostly within 1e-6 of the
        answer; None where the answer is the most preferable value of the grid.
    best
        The answer, or else the variant that tolerates most, to within 5 % of the requirement; None
        where none tolerates 0.1 % of the requirement.
    own
        The unchanged variant; None where it was not judged.
    grid
        Values tried, the most preferable first; a band between two of them is missed.
    variants
        Number of variants judged, including those of the refinement.
    """

    expected: float
    answer: Trial | None
    fails: float | None
    best: Trial | None
    own: Trial | None
    grid: tuple[float, ...]
    variants: int


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


def first_to_tolerate(
    variants: Variants, grid: Sequence[float] | Array, expected: float, own: float | None = None
) -> Requirement:
    """Find the first value of a grid with alpha_upper >= `expected`, and refine its bracket.

    Most values are rejected by the eigenvalues at a few errors, up to the requirement or to the
    best so far. All others, and the answer, are judged by the exact interval.

    The grid has the most preferable value first; `own` is the value of the unchanged loop, to be
    judged first, None for none.

    Raises
    ------
    InputError
        When `expected` is not above 0, or the grid is empty.
    """
    if not expected > 0 or not len(grid):
        got = f"{expected:g} and {len(grid)} values"
        raise InputError(f"required margin: expected one above 0 and values to try, got {got}")
    return _Search(variants, expected).through(tuple(map(float, grid)), own)


class _Search:
    """A search through the grid, and in the bracket before the first suitable value.

    `best` is the variant that tolerates most so far, None for none; `count` variants were judged.
    """

    def __init__(self, variants: Variants, expected: float) -> None:
        self.variants, self.expected = variants, expected
        self.best: Trial | None = None
        self.count = 0

    def through(self, grid: tuple[float, ...], own: float | None) -> Requirement:
        """Search the values of the grid in their order."""
        start = self._exact(own) if own is not None else None
        answer, before = None, None
        for value in grid:
            if self._rejected(value):
                self.count += 1
            else:
                trial = self._exact(value)
                if trial.tolerates(self.expected):
                    answer, before = self._refined(trial, before)
                    break
            before = value
        return Requirement(
            expected=self.expected,
            answer=answer,
            fails=before if answer else None,
            best=answer or self.best,
            own=start,
            grid=grid,
            variants=self.count,
        )

    def _exact(self, value: float) -> Trial:
        """Exact stable interval of a value, which is kept if it tolerates more than the best."""
        trial = judge(value, lambda: self.variants(value))
        self.count += 1
        if trial.alpha_upper > (self.best.alpha_upper if self.best else -np.inf):  # NaN never is
            self.best = trial
        return trial

    def _rejected(self, value: float) -> bool:
        """Whether eigenvalues show that a value tolerates less than required, and than the best."""
        least, x = self.best.alpha_upper if self.best else 0.0, self.expected
        until = min(least + _NEXT * x if least else _LEAST * x, x)
        return self._excess(value, (until, 0.0), first=True) > 0

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

    def _refined(self, good: Trial, bad: float | None) -> tuple[Trial, float | None]:
        """Narrow the bracket between a suitable variant `good` and a value `bad` that fails."""
        if bad is None:
            return good, None
        at, length = _path(good.value, bad)
        errors = tuple(np.linspace(0.0, self.expected, 4)[::-1])

        def gap(t: float) -> float:
            return self._excess(at(t), errors)

        self.count += 2
        if gap(1.0) > 0 > gap(0.0):
            narrow = _NARROW / length
            t, info = scipy.optimize.brentq(gap, 0.0, 1.0, xtol=narrow, full_output=True)
            self.count += info.function_calls
            for aside in (2, 20, 200):  # round-off may hide a slow growth at t
                trial = self._exact(at(max(t - aside * narrow, 0.0)))
                if trial.tolerates(self.expected):
                    return trial, at(min(t + aside * narrow, 1.0))
        return self._halved(good, at)

    def _halved(self, good: Trial, at: Callable[[float], float]) -> tuple[Trial, float]:
        """Bisect with exact intervals, where the loop is unstable between the errors tried."""
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            trial = self._exact(at((low + high) / 2))
            if trial.tolerates(self.expected):
                low, good = (low + high) / 2, trial
            else:
                high = (low + high) / 2
        return good, at(high)


def _path(start: float, end: float) -> tuple[Callable[[float], float], float]:
    """Path of values over t in [0, 1], geometric where both ends are above 0, and its length.

    The length is in the logarithm, or relative to the larger end.
    """
    if min(start, end) > 0:
        return lambda t: float(start * (end / start) ** t), abs(float(np.log(end / start)))
    return lambda t: start + t * (end - start), 1.0


def log_grid(low: float, high: float, per_decade: int) -> Array:
    """Ascending values from low to high, both included, in equal ratios."""
    count = int(np.ceil(per_decade * np.log10(high / low))) + 1
    return np.geomspace(low, high, max(count, 2))
