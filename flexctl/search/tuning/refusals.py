"""What tuning refuses: open loops, metrics that no verdict has, bounds that no design allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import ClosedLoop
from flexctl.model import Design
from flexctl.search.tuning.free_numbers import FreeNumber, FreeNumbers
from flexctl.search.tuning.requirements import (
    OF_EIGENVALUES,
    RATE,
    SETTLING,
    Objective,
    Requirement,
)
from flexctl.search.tuning.spectra import linear_loop
from flexctl.verdict import (
    LEAST_RATE,
    MORE_IS_BETTER,
    NO_INSTRUMENTS,
    SENSORS,
    find_no_rest,
    states_noise,
    why_no_sampling_rate,
)

_BISECTIONS = 12  # of a default bound: within 0.1 % of what is allowed
_NO_LIMIT_OF = ("stability.stable",)  # the loop is to be stable in any case
_TOLERANCES = ("margins.", "stiffness.", "neglected.")  # of these metrics nobody wants worse
_RANGES = {
    "stability.min_damping_ratio": (-1.0, 1.0),
    "margins.phase_deg": (0.0, 180.0),
    "margins.disk": (0.0, 2.0),
    RATE: (LEAST_RATE, np.inf),
    "margins.sensors.phase_deg": (0.0, 180.0),
    "margins.sensors.disk": (0.0, 2.0),
    "margins.sensors.reading_disk": (0.0, 2.0),
    "stiffness.exact.alpha_lower": (-1.0, 0.0),
    "stiffness.exact.path_alpha_lower": (-1.0, 0.0),
    "stiffness.exact.path_growth": (1.0, np.inf),
}  # least and greatest value that a metric can have; of others 0 and any


def require_gains(design: Design) -> None:
    """Refuse an open loop, which has no gains to tune."""
    if design.open_loop:
        raise InputError(
            f"{design.label}: method: expected a closed loop, which has gains to tune, got "
            f"{design.method}"
        )


def default_objective(loop: ClosedLoop) -> str:
    """Name the metric that is minimised where none is named."""
    return "tracking.tip_error_rms" if find_no_rest(loop.controller) else SETTLING


def check_metrics(
    loop: ClosedLoop,
    objective: Objective,
    requirements: Iterable[Requirement],
    numbers: FreeNumbers,
) -> None:
    """Refuse metrics that the verdict on a loop has not, or that free numbers would redefine.

    Raises InputError with the metric and the reason.
    """
    for key in objective.keys:
        _refuse_own_noise("minimise", key, key, numbers)
        _refuse("minimise", key, _why_missing(loop, key))
    for one in requirements:
        if one.key in _NO_LIMIT_OF:
            raise InputError(f"subject_to: expected a metric of numbers, got {one.key}")
        _refuse_own_noise("subject_to", one.key, str(one), numbers)
        why = _why_missing(loop, one.key)
        more = one.key in MORE_IS_BETTER
        if one.key.startswith(_TOLERANCES) and one.limit.least != more:
            sign, which = (">=", "more") if more else ("<=", "less")
            expected = f"{one.key} {sign} NUMBER, as {which} of it is better"
            raise InputError(f"subject_to: expected {expected}, got {one}")
        _check_value(one, loop)
        _refuse("subject_to", str(one), why)
        if one.torque_limits and not np.isfinite(loop.holding_limit).any():
            expected = "an arm that limits a torque, current or voltage"
            raise InputError(f"subject_to: expected {expected}, got {one} (no joint has a limit)")


def _check_value(one: Requirement, loop: ClosedLoop) -> None:
    """Refuse a limit that no loop can keep, such as a negative settling time."""
    least, most = _RANGES.get(one.key, (-np.inf if one.key in OF_EIGENVALUES else 0.0, np.inf))
    value = one.limit.value
    tail = loop.duration - loop.controller.reference.duration
    if one.key == SETTLING and value > tail:
        expected = f"at most the {tail:.4g} s that are run after the motion (loop.duration)"
        raise InputError(f"subject_to: expected a time of {expected}, got {one}")
    end = most if one.limit.least else least  # the best that any loop may have
    if not one.limit.holds(np.array(end)):
        beside = {">=": "at most", ">": "less than", "<=": "at least", "<": "more than"}
        ends = f"{beside[one.limit.sign]} {end:g}"
        raise InputError(f"subject_to: expected a value of {ends}, got {one}")


def allowed_bounds(loop: ClosedLoop, numbers: FreeNumbers) -> FreeNumbers:
    """Return the free numbers with bounds that a design file may have.

    Default bounds are narrowed to these, such as that of a filter to the Nyquist frequency; others
    that the design does not allow, such as a gain of zero, are refused.

    Raises InputError with the number and the reason.
    """
    return replace(
        numbers,
        numbers=tuple(_allowed(loop, numbers, k) for k in range(len(numbers))),
    )


def _allowed(loop: ClosedLoop, numbers: FreeNumbers, k: int) -> FreeNumber:
    one, ends = numbers.numbers[k], dict[str, float]()
    for name in ("lower", "upper"):
        bound = getattr(one, name)
        error = _refused(loop, numbers, k, bound)
        if error is None:
            continue
        if not one.by_default or _refused(loop, numbers, k, one.start):
            expected = "bounds that the design allows"
            raise InputError(
                f"free: {one.name}: expected {expected}, got {bound:g} ({error})"
            ) from error
        allowed = one.start
        for _ in range(_BISECTIONS):  # in ratios: default bounds have the sign of the start
            middle = float(f"{np.copysign(np.sqrt(allowed * bound), allowed):.4g}")
            if _refused(loop, numbers, k, middle):
                bound = middle
            else:
                allowed = middle
        ends[name] = allowed
    return replace(one, **ends, widest=frozenset(ends))


def _refused(loop: ClosedLoop, numbers: FreeNumbers, k: int, value: float) -> InputError | None:
    """Return why a design file may not have a value of number k; None where it may."""
    u, tried = numbers.start, [*numbers.numbers]
    u[k], tried[k] = 0.0, replace(tried[k], lower=value)  # 0: the lower bound, exactly
    try:
        loop.at(replace(numbers, numbers=tuple(tried)).values(u))
    except InputError as error:
        return error
    except (DesignError, ComputationError):  # the search will keep away from there
        return None
    return None


def _refuse(argument: str, got: str, why: str | None) -> None:
    if why:
        raise InputError(f"{argument}: expected a metric that the verdict has, got {got} ({why})")


def _refuse_own_noise(argument: str, key: str, got: str, numbers: FreeNumbers) -> None:
    """Refuse the rms under the stated noise where tuning would change that noise."""
    free = [one.name for one in numbers.numbers if one.key.startswith("observer.noise.")]
    if free and key.startswith("noise."):
        expected = f"no metric of noise while {free[0]} is free, as tuning would change the noise"
        raise InputError(f"{argument}: expected {expected} itself, got {got}")


def _why_missing(loop: ClosedLoop, key: str) -> str | None:
    """Say why no verdict on a loop has a metric; None where it may have it."""
    if key.startswith("residual."):
        return find_no_rest(loop.controller)
    if key.startswith("stiffness.") and not loop.controller.plant.stiffness_parts:
        return "the arm is rigid"
    if key.startswith(SENSORS) and not loop.controller.reads_instruments:
        return NO_INSTRUMENTS
    if key.startswith("noise.") and not states_noise(loop):
        return "the design states no noise"
    if key.startswith("friction.") and not (loop.truth.friction and loop.truth.arm.dry_joints):
        return "no joint of the arm has dry friction"
    if key.startswith("neglected.") and loop.controller.cycle > 1:
        return "its readings are not all new at each sample"
    if key == RATE:
        try:
            return why_no_sampling_rate(loop, linear_loop(loop, None))
        except ComputationError:
            return None
    return None
