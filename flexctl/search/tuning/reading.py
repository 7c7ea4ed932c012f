"""From what is asked for to the problem that is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from flexctl.control import refused_at_period
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import ClosedLoop, Setup, ShapesChoice, spectral_abscissa
from flexctl.model import Arm, BasisChoice, Design, check_design
from flexctl.search.samples import Spec, Variation, read_variation
from flexctl.search.study import Study, is_rebuilt, study_digest
from flexctl.search.tuning.arms import ArmSet
from flexctl.search.tuning.free_numbers import Bounds, FreeNumbers, read_free
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.refusals import (
    allowed_bounds,
    check_metrics,
    default_objective,
    require_gains,
)
from flexctl.search.tuning.requirements import (
    RATE,
    Requirement,
    read_objective,
    read_requirement,
    worst,
)
from flexctl.search.tuning.spectra import linear_loop
from flexctl.search.tuning.verification import longest_period, watched_over
from flexctl.verdict import linear_poses_metrics, require_motion, thin_delay


def read_problem(
    arm: Arm,
    design: Design,
    free: Mapping[str, Bounds] | Sequence[str] | FreeNumbers,
    *,
    minimise: str | Sequence[str] | None = None,
    subject_to: Sequence[str] | None = None,
    over: Mapping[str, Spec | Variation] | None = None,
    untied: bool = False,
    shapes: ShapesChoice = "kept",
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
) -> Problem:
    """Read what `tune` is asked for; raises as it does."""
    require_motion(design)
    require_gains(design)
    check_design(arm, design)
    numbers = read_free(design, free, joints=len(arm.joints), untied=untied)
    basis = design_basis or design.basis
    setup = Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis)
    variations = tuple(
        replace(
            spec if isinstance(spec, Variation) else read_variation(key, spec), key=f"truth.{key}"
        )
        for key, spec in (over or {}).items()
    )
    rebuilt = is_rebuilt(shapes)
    study = Study(
        setup=setup,
        designs=(design,),
        design_basis=design_basis,
        variations=tuple(one.outline for one in variations),
        rebuilt=rebuilt,
        wanted=None,
        content=study_digest(setup, (design,), design_basis, variations, rebuilt),
    )
    study.check()
    loop = study.loop(0, {})
    objective = read_objective(default_objective(loop) if minimise is None else minimise)
    limits = _default_limits(loop) if subject_to is None else subject_to
    requirements = tuple(map(read_requirement, limits))
    check_metrics(loop, objective, requirements, numbers)
    requirements = tuple(_by_value(loop, one) for one in requirements)
    numbers = allowed_bounds(loop, numbers)
    problem = Problem(
        study=study,
        free=numbers,
        arms=({},),
        objective=objective,
        requirements=requirements,
        spectral=(),
        possible=ArmSet(variations=variations),
    )
    return watched_over(problem, ({},))


def _by_value(loop: ClosedLoop, one: Requirement) -> Requirement:
    """Return a limit; of a sampling rate that the design refuses, as one by values alone."""
    if one.key != RATE or one.limit.least:
        return one
    refused = refused_at_period(loop.controller, longest_period(loop, one))
    return replace(one, by_value=refused is not None)


def _default_limits(loop: ClosedLoop) -> list[str]:
    """Limits that an engineer would ask for first.

    Where disturbances of the file's loop die out within its run, they are to do so at least half as
    fast: a settling time tells nothing of modes that the motion does not excite. A delay margin is
    not to be thin: a phase margin tells nothing of it where the loop crosses over at high
    frequencies. Where the file's loop has less than twice that, half of what it has is enough.
    """
    found = ["margins.gain_db>=6", "margins.phase_deg>=30"]
    delay = _value(loop, "margins.common_delay_seconds", 0.0)
    if delay > 0:
        least = min(delay / 2, thin_delay(loop.controller.sample_time))
        found.append(f"margins.common_delay_seconds>={least:.3g}")
    if loop.controller.plant.stiffness_parts:
        found += ["stiffness.exact.path_alpha_upper>=0.1", "stiffness.exact.path_alpha_lower<=-0.1"]
    rate = _abscissa(loop)
    if _value(loop, "stability.path_spectral_abscissa", np.inf) < 0:
        found.append("stability.path_spectral_abscissa<=0")
    if rate < -1 / loop.duration:
        found.append(f"stability.spectral_abscissa<={rate / 2:.3g}")
    if np.isfinite(loop.holding_limit).any():
        found.append("effort.peak<=limits")
    return found


def _value(loop: ClosedLoop, key: str, otherwise: float) -> float:
    """Worst value of a linear metric of the file's loop, or another where there is none."""
    try:
        value = worst(key, linear_poses_metrics(loop, [key]))
    except (ComputationError, DesignError):
        return otherwise
    return otherwise if np.isnan(value) else value


def _abscissa(loop: ClosedLoop) -> float:
    """Spectral abscissa [1/s] where the loop rests at the end; 0 where it does not."""
    try:
        return spectral_abscissa(linear_loop(loop, None).poles)
    except ComputationError:
        return 0.0
