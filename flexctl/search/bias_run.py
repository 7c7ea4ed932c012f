"""A deliberate underestimate of the stiffness, judged in a simulation of the motion.

Eigenvalues at rest show stability only. In motion the links have deflections f. Torques computed
with K_hat = (1 + b) K_file then have errors b K f, so that the joints deviate from their reference
in proportion to b and to the accelerations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

from flexctl.control import Controller, controller_at, design_controller
from flexctl.errors import ComputationError, RunError
from flexctl.loop import close_around
from flexctl.plant import STIFFNESS_ERROR, Plant, assemble_plant
from flexctl.robustness import Case
from flexctl.search.one_number import first_serving, narrow
from flexctl.simulation import Tolerance, simulate
from flexctl.verdict import find_no_rest, judge_residual, tip_errors

FARTHEST = 2.0  # acceptable tip error, relative to that without bias
LEAST = 0.01  # smallest bias searched: no stiffness is known to 1 %
_STEP = 0.005  # resolution of the search for a bias
_MOST_RUNS = 5  # with a bias
_ROUNDING = 1000  # a searched bias is a multiple of 1/1000, so that texts show its exact value
_TOLERANCE = Tolerance.of(1e-7)  # relative error of tip errors about 1e-6


@dataclass(frozen=True, kw_only=True)
class BiasRun:
    """Tip error in a nonlinear run of a design's reference with a biased stiffness.

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
        The larger ratio [-] of both errors to those without bias. The reference value is at least
        half of the band in which the design settles. None where either run fails.
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
        """Whether the run succeeds with tip errors at most `FARTHEST` times those without bias."""
        return self.times is not None and self.times <= FARTHEST


@dataclass(frozen=True, kw_only=True)
class BiasRuns:
    """Runs of one design on the true arm, with different biases."""

    case: Case

    @cached_property
    def without(self) -> BiasRun:
        """The run without bias, with which all others are compared."""
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
    def _controller(self) -> Controller:
        """The controller without bias."""
        case, free = self.case, (STIFFNESS_ERROR,)
        basis = case.setup.design_basis
        return design_controller(case.designed_for, case.design, basis, parameters=free)

    def _measured(self, bias: float) -> BiasRun:
        """Run with a bias, without the comparison."""
        controller = controller_at(self._controller, {STIFFNESS_ERROR: bias})
        try:
            run = simulate(close_around(controller, self._truth), tolerance=_TOLERANCE)
        except RunError as failure:
            why = f"the run ends at t = {failure.time:.3g} s: {failure.why}"
            return BiasRun(bias=bias, failed=why)
        except ComputationError as failure:
            return BiasRun(bias=bias, failed=str(failure))
        rests = find_no_rest(controller) is None
        return BiasRun(
            bias=bias,
            tip_error_max=tip_errors(run).largest,
            tip_error_end=judge_residual(run, controller).tip_error_end if rests else None,
        )

    def _times(self, run: BiasRun) -> float | None:
        """Largest ratio of the run's tip errors to those without bias, see `BiasRun.times`."""
        own = self.without
        if run.tip_error_max is None or own.tip_error_max is None:
            return None
        pairs = [(run.tip_error_max, own.tip_error_max)]
        if run.tip_error_end is not None and own.tip_error_end is not None:
            pairs.append((run.tip_error_end, own.tip_error_end))
        settled = self.case.design.loop.settle_within / FARTHEST
        return max(error / max(without, settled) for error, without in pairs)


def try_biases(runs: BiasRuns, best: float) -> tuple[tuple[BiasRun, ...], float | None]:
    """Run `best` < 0, and if it does not serve search for the largest underestimate that serves.

    The second run has the smallest underestimate, `LEAST`: if that does not serve, the search ends
    without one. There is no search if `best` itself is smaller.

    Returns
    -------
    tuple[tuple[BiasRun, ...], float | None]
        The run without bias, then at most five with a bias, in the order made; the first alone
        where it fails. And the bias that serves, `best` or a multiple of 0.1 %; None without one.
    """
    tried = {0.0: runs.without}

    def serves(bias: float) -> bool:
        tried[bias] = runs.run(bias)
        return tried[bias].serves

    def between(inner: float, outer: float) -> float:
        return _between(tried[inner], tried[outer])

    narrowed = partial(narrow, serves, width=_STEP, between=between, most=_MOST_RUNS - 2)
    biases = (best, -LEAST) if best < -LEAST else (best,)
    served, _ = first_serving(serves, () if runs.without.failed else biases, narrowed)
    return tuple(tried.values()), served


def _between(inner: BiasRun, outer: BiasRun) -> float:
    """Bias between one that serves and one that does not.

    The tip error grows about linearly with b, or faster, so that the chord to a run beyond the
    limit meets the limit at a bias that serves. Next to a run that failed, without a tip error, the
    line from no bias is used instead, at most up to the middle.
    """
    assert inner.times is not None
    span, left = inner.bias - outer.bias, FARTHEST - inner.times
    if outer.times is not None:
        step = left / (outer.times - inner.times) * span
    else:
        step = span / 2
        if inner.times > 1:
            step = min(step, left / (inner.times - 1) * -inner.bias)
    step = max(step, min(_STEP, span / 2))
    return math.ceil(_ROUNDING * (inner.bias - step)) / _ROUNDING
