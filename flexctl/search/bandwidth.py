"""Gains with a required stiffness margin: the largest bandwidths that tolerate an overestimate.

Feedback through a wrong stiffness adds energy to or removes it from every mode that its torques
excite, the more the larger the gains are. Lower gains therefore tolerate a larger error, but not
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
        Requirement on s [-], the factor of the joint loop's bandwidth: s^2 Gp, s Gv, s^3 Gi; 1 is
        the design.
    gains
        Joint gains at the answer, or else at the best value; None where no s is stable.
    n_path
        Number of judged poses along the motion, all under the law of the gross motion.
    """

    requirement: Requirement
    gains: Gains | None
    n_path: int


def largest_bandwidth(
    case: Case, expected: float, *, scales: tuple[float, float] = SCALES
) -> Bandwidth:
    """Find the largest s in a range at which the gross motion has alpha_upper >= `expected`.

    The loop is judged at the final pose and along the motion under the law of the gross motion; 20
    values of s per decade, 12 % apart, are tried in descending order, and a narrower band is
    missed. Above the frequencies of the modes alpha_upper rises again with s, so a wide range may
    give gains that no actuator can realise: torque limits and unmodelled dynamics are not judged.

    Parameters
    ----------
    case
        Arm, design and number of poses.
    expected
        Required alpha_upper [-] at the worst pose.
    scales
        Least and largest s [-], above 0.

    Raises
    ------
    InputError
        When the range is empty, or `expected` is not above 0.
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
    """The least effort weight of a second loop with which it tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Requirement on the factor of the effort weight [-]; 1 is the design. The smaller the weight,
        the faster the loop.
    effort
        Effort weight at the answer, or else at the best value; None where none is stable.
    slowest, fastest
        Poles [rad/s] of that loop on its design plant with the largest and the least real part; NaN
        where none is stable.
    """

    requirement: Requirement
    effort: float | None
    slowest: complex
    fastest: complex


def fastest_second_loop(
    case: Case, expected: float, *, powers: tuple[float, float] = _EFFORTS
) -> SecondBandwidth:
    """Find the least effort weight at which the second loop has alpha_upper >= `expected`.

    The loop is redesigned for every weight, three per power of ten in ascending order, and judged
    at the final pose. Where unmodelled modes make it unstable even without an error, the answer is
    close to that limit, as its `alpha_lower` near 0 shows, and a slower loop is advisable.

    Parameters
    ----------
    case
        Arm and a design with a second loop.
    expected
        Required alpha_upper [-].
    powers
        Least and largest power of ten by which the weight is multiplied.

    Raises
    ------
    InputError
        When there is no second loop, the range is empty, or `expected` is not above 0.
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
    """Return a design with the effort weight of its second loop multiplied by `factor`."""
    second = design.second_loop
    assert second is not None
    weights = second.weights.model_copy(update={"effort": factor * second.weights.effort})
    changed = second.model_copy(update={"weights": weights})
    return design.model_copy(update={"second_loop": changed})


def _check_range(name: str, span: tuple[float, float]) -> None:
    """Refuse a range that is empty or not above 0."""
    if not 0 < span[0] < span[1] < np.inf:
        raise InputError(f"{name}: expected a range above 0, got {span[0]:g} to {span[1]:g}")
