"""A bias on purpose, run: what the motion of the reference makes of it.

Rest shows stability only. In motion the links are strained, f, and torques made with K_hat =
(1 + b) K_file are off by b K f, so that joints stray from their reference in proportion to b and to
what accelerates the arm; the eigenvalues at rest know nothing of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from flexctl.control import design_controller
from flexctl.errors import ComputationError, RunError
from flexctl.loop import close_around
from flexctl.plant import Plant, StiffnessError, assemble_plant
from flexctl.robustness import Case
from flexctl.simulation import Tolerance, simulate
from flexctl.verdict import find_no_rest, judge_residual

FARTHEST = 2.0  # times the tip error without bias: more is no price for a margin
LEAST = 0.01  # no stiffness is known to a percent: a smaller bias is not looked for
_STEP = 0.005  # a bias is not looked for more closely
_MOST_RUNS = 5  # with a bias; each compiles a law of its own
_FINEST = 1000  # a bias that is chosen has so many parts: words then say what was run
_TOLERANCE = Tolerance.of(1e-7)  # errors of the tip to some 1e-6 of them


@dataclass(frozen=True, kw_only=True)
class BiasRun:
    """How far the tip strays in the nonlinear run of a design's reference with a biased model.

    Attributes
    ----------
    bias
        b [-]: K_hat = (1 + b) K_file.
    tip_error_max
        Largest distance from the rigid arm's tip at the desired joints in the whole run [m]; None
        where the run fails.
    tip_error_end
        Largest distance from the final rest in the last tenth of the time after the reference [m];
        None also where there is no rest to judge.
    times
        How many times as far as without bias it strays, the larger of both; an error within the
        band in which the design settles does not count. None where either run fails.
    failed
        Why the run fails; empty where it does not.
    """

    bias: float
    tip_error_max: float | None = None
    tip_error_end: float | None = None
    times: float | None = None
    failed: str = ""

    @property
    def serves(self) -> bool:
        """Whether it reaches its end and the tip strays at most twice as far as without bias."""
        return self.times is not None and self.times <= FARTHEST


@dataclass(frozen=True, kw_only=True)
class BiasRuns:
    """Runs of one design on the arm as it is, with different biases."""

    case: Case

    @cached_property
    def without(self) -> BiasRun:
        """The run that all others are compared with."""
        run = self._measured(0.0)
        return run if run.failed else replace(run, times=1.0)

    def run(self, bias: float) -> BiasRun:
        """Run the reference with K_hat = (1 + bias) K_file and compare."""
        run = self._measured(bias)
        return replace(run, times=self._times(run))

    @cached_property
    def _truth(self) -> Plant:
        """The truth plant, compiled."""
        return assemble_plant(self.case.setup.true_arm, self.case.truth.basis)

    @cached_property
    def _parts(self) -> int:
        plant = assemble_plant(
            self.case.designed_for, self.case.setup.design_basis, interpreted=True
        )
        return len(plant.stiffness_parts)

    def _measured(self, bias: float) -> BiasRun:
        case, error = self.case, StiffnessError(values=(bias,) * self._parts)
        controller = design_controller(
            case.designed_for, case.design, case.setup.design_basis, stiffness_error=error
        )
        try:
            run = simulate(close_around(controller, self._truth), tolerance=_TOLERANCE)
        except RunError as failure:
            words = f"the run ends at t = {failure.time:.3g} s: {failure.why}"
            return BiasRun(bias=bias, failed=words)
        except ComputationError as failure:
            return BiasRun(bias=bias, failed=str(failure))
        rests = find_no_rest(controller) is None
        return BiasRun(
            bias=bias,
            tip_error_max=float(run.tip_error.max()),
            tip_error_end=judge_residual(run, controller).tip_error_end if rests else None,
        )

    def _times(self, run: BiasRun) -> float | None:
        own = self.without
        if run.tip_error_max is None or own.tip_error_max is None:
            return None
        pairs = [(run.tip_error_max, own.tip_error_max)]
        if run.tip_error_end is not None and own.tip_error_end is not None:
            pairs.append((run.tip_error_end, own.tip_error_end))
        settled = self.case.design.loop.settle_within / FARTHEST
        return max(strays / max(without, settled) for strays, without in pairs)


def try_biases(runs: BiasRuns, best: float) -> tuple[BiasRun, ...]:
    """Run `best` < 0, and if it does not serve search for the largest underestimate that does.

    The smallest that is worth anything comes next: if that does not serve none does; nor is one
    looked for within a `best` that is smaller itself.

    Returns
    -------
    tuple[BiasRun, ...]
        The run without bias, then those with one as they were made, at most five; nothing but the
        first where that fails. Biases beside `best` are whole tenths of a percent.
    """
    inner = runs.without
    if inner.failed:
        return (inner,)
    outer = runs.run(best)
    tried, bias = [inner, outer], -LEAST
    while not outer.serves and _room(inner, outer) and len(tried) <= _MOST_RUNS:
        tried.append(runs.run(bias))
        inner, outer = (tried[-1], outer) if tried[-1].serves else (inner, tried[-1])
        if not inner.bias:
            break
        bias = _between(inner, outer)
    return tuple(tried)


def _room(inner: BiasRun, outer: BiasRun) -> bool:
    """Whether a bias worth a run may lie between one that serves and one that does not."""
    return outer.bias < -LEAST and inner.bias - outer.bias > _STEP


def _between(inner: BiasRun, outer: BiasRun) -> float:
    """Bias between one that serves and one that does not.

    The error of the tip grows about as b does, or faster. The chord to a run that strays too far
    thus meets the limit at a bias that serves; the line from no bias on meets it beyond the limit,
    which will do beside a run that fails and tells no error, but no farther than half way.
    """
    span = inner.bias - outer.bias
    step, left = span / 2, FARTHEST - (inner.times or 0.0)
    if inner.times is not None and outer.times is not None:
        step = left / (outer.times - inner.times) * span
    elif inner.times is not None and inner.times > 1:
        step = min(step, left / (inner.times - 1) * -inner.bias)
    step = max(step, min(_STEP, span / 2))
    return math.ceil(_FINEST * (inner.bias - step)) / _FINEST


def largest_served(runs: tuple[BiasRun, ...]) -> float | None:
    """Return the largest underestimate of some runs that serves; None where none does."""
    biases = [run.bias for run in runs if run.serves and run.bias < 0]
    return min(biases, default=None)
