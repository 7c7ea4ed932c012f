"""Gains that meet a required margin: the largest bandwidth that tolerates so much overestimate.

Feedback through a wrong stiffness takes energy from or gives it to every mode that its torques
feel; the more of it the larger the gains are. Lower ones therefore tolerate more, but not
monotonically: see `search.requirement`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flexctl.errors import InputError
from flexctl.model import Design, Gains
from flexctl.robustness import Case
from flexctl.search.requirement import Requirement, first_to_tolerate, log_grid
from flexctl.search.variants import faster, gain_families, rebuilt, scale_gains, under_gains

SCALES = (0.01, 20.0)
_PER_DECADE = 20
_EFFORTS = (-4.0, 4.0)  # powers of ten of the effort weight
_PER_POWER = 3


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """The largest bandwidth s of the joint loop that tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Of s [-], the factor of the joint loop's bandwidth: s^2 Gp, s Gv, s^3 Gi; 1 is the design.
    gains
        Gains at the answer, or at the best; None where no s is stable.
    n_path
        Poses along the motion that it is judged at, all under the law of the gross motion.
    """

    requirement: Requirement
    gains: Gains | None
    n_path: int


def largest_bandwidth(
    case: Case, expected: float, *, scales: tuple[float, float] = SCALES
) -> Bandwidth:
    """Find the largest s in a range at which the gross motion has alpha_upper >= wanted.

    Judged at the final pose and along the motion under the law of the gross motion, all terms; 20
    values of s per decade are tried from above, 12 % apart: a narrower band is missed. Beyond the
    modes' frequencies alpha_upper rises again with s, so that a wide range may yield gains that no
    actuator follows: limits of torques and what is not modelled do not count here.

    Parameters
    ----------
    case
        What it is sought for.
    expected
        Required alpha_upper [-] at the worst pose.
    scales
        Least and largest s [-], above 0.

    Raises
    ------
    InputError
        When the range or the requirement is empty.
    DesignError
        As `design_controller`.
    """
    _check_range("scales", scales)
    families = gain_families(case)
    grid = log_grid(*scales, _PER_DECADE)[::-1]
    requirement = first_to_tolerate(
        lambda s: under_gains(families, faster(s)), grid, expected, own=1.0
    )
    gains = (
        scale_gains(case.design.joint_gains, faster(requirement.best.value))
        if requirement.best
        else None
    )
    return Bandwidth(requirement=requirement, gains=gains, n_path=case.n_path)


@dataclass(frozen=True, kw_only=True)
class SecondBandwidth:
    """The least effort weight of a second loop that tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Of the weight's factor [-]; 1 is the design. The less effort costs the faster the loop is.
    effort
        Weight at the answer, or at the best; None where none is stable.
    slowest, fastest
        Poles [rad/s] of that loop as designed, on its own plant: those with the largest and the
        least real part; NaN where none is stable.
    """

    requirement: Requirement
    effort: float | None
    slowest: complex
    fastest: complex


def fastest_second_loop(
    case: Case, expected: float, *, powers: tuple[float, float] = _EFFORTS
) -> SecondBandwidth:
    """Find the least effort weight at which the second loop has alpha_upper >= wanted.

    Judged at the final pose; the loop is designed anew for every weight, three per power of ten
    from the least on. Where motions that its model leaves out end stability without any error, the
    answer stands at that edge, as its `alpha_lower` near 0 says, and a slower loop is wise.

    Parameters
    ----------
    case
        What it is sought for, with a second loop.
    expected
        Required alpha_upper [-].
    powers
        Least and largest power of ten by which the weight is multiplied.

    Raises
    ------
    InputError
        When there is no second loop, or the range or the requirement is empty.
    """
    if case.design.second_loop is None:
        raise InputError(f"{case.design.label}: second_loop: expected a table, got nothing")
    low, high = (10.0**power for power in powers)
    _check_range("powers", (low, high))

    final = replace(case, n_path=0)
    loops = rebuilt(lambda factor: replace(final, design=with_effort(case.design, factor)))
    requirement = first_to_tolerate(loops, log_grid(low, high, _PER_POWER), expected, own=1.0)
    if requirement.best is None:
        return SecondBandwidth(requirement=requirement, effort=None, slowest=np.nan, fastest=np.nan)
    best = with_effort(case.design, requirement.best.value)
    feedback = case.close(best).controller.feedback
    assert feedback is not None
    assert best.second_loop is not None
    ordered = feedback.poles[np.argsort(feedback.poles.real)]
    return SecondBandwidth(
        requirement=requirement,
        effort=best.second_loop.weights.effort,
        slowest=complex(ordered[-1]),
        fastest=complex(ordered[0]),
    )


def with_effort(design: Design, factor: float) -> Design:
    """Return a design whose second loop pays so many times its weight for effort."""
    second = design.second_loop
    assert second is not None
    weights = second.weights.model_copy(update={"effort": factor * second.weights.effort})
    changed = second.model_copy(update={"weights": weights})
    return design.model_copy(update={"second_loop": changed})


def _check_range(name: str, span: tuple[float, float]) -> None:
    if not 0 < span[0] < span[1] < np.inf:
        raise InputError(f"{name}: expected a range above 0, got {span[0]:g} to {span[1]:g}")
