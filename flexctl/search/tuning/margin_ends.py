"""Where margins end: an eigenvalue reaches the limit of stability, and moves on with the gains.

At the end p of a margin an eigenvalue has the rate Re lambda(u, p) = 0. So the end moves with the
free numbers u by dp/du = -(dRe lambda/du)/(dRe lambda/dp), and no other margin has to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.search.tuning.loops_of_arms import LostError
from flexctl.search.tuning.requirements import RATE
from flexctl.search.tuning.spectra import Case, ClosedMatrix, Spectrum
from flexctl.verdict import Evaluation

_LEAST = 1e-2  # in the unit of a margin: what is small
_STEP = 1e-4  # of a margin, to differentiate by it
_NEAR = 1e-3  # of a margin, by which its end and an eigenvalue's may differ
_BENT = 0.1  # relative: slopes on both sides of an end differ by more beside a lost equilibrium


@dataclass(frozen=True, kw_only=True)
class End:
    """Where a margin ends.

    Attributes
    ----------
    value
        In the unit of the metric.
    case
        The linear loop with another margin in its place; of the nominal arm.
    """

    value: float
    case: Callable[[float], Case]


def margin_ends(key: str, verdict: Evaluation) -> Iterator[End]:
    """Yield the ends of a margin of a verdict, of all joints; none where nothing limits it."""
    margins, stiffness = verdict.margins, verdict.stiffness
    if key == "margins.gain_db" and margins is not None:
        for values, side in ((margins.gain_up_db, 1), (margins.gain_down_db, -1)):
            for j, value in enumerate(values.tolist()):
                if np.isfinite(value):
                    yield End(value=value, case=_gain(j, len(values), side))
    elif key == "margins.phase_deg" and margins is not None:
        for j, value in enumerate(margins.phase_deg.tolist()):
            if np.isfinite(value):
                yield End(value=value, case=_phase(j, len(margins.phase_deg)))
    elif key == RATE and verdict.min_sampling_rate:
        yield End(value=verdict.min_sampling_rate, case=lambda rate: Case(period=1 / rate))
    elif key.startswith("stiffness.exact") and stiffness is not None and stiffness.exact:
        time, end = {
            "stiffness.exact.alpha_upper": (None, stiffness.exact.alpha_upper),
            "stiffness.exact.alpha_lower": (None, stiffness.exact.alpha_lower),
            "stiffness.exact.path_alpha_upper": (stiffness.path_t, stiffness.path_upper),
            "stiffness.exact.path_alpha_lower": (stiffness.path_lower_t, stiffness.path_lower),
        }[key]
        if np.isfinite(end) and end > -1:
            yield End(value=float(end), case=lambda error: Case(time=time, error=error))


def gain_case(joint: int, m: int, factor: complex) -> Case:
    """Return the loop in which the torque of one of m joints has a factor."""
    own = complex(factor) if np.imag(factor) else float(np.real(factor))
    return Case(gains=tuple(own if j == joint else 1.0 for j in range(m)))


def _gain(joint: int, m: int, side: int) -> Callable[[float], Case]:
    return lambda value: gain_case(joint, m, 10 ** (side * value / 20))


def _phase(joint: int, m: int) -> Callable[[float], Case]:
    return lambda value: gain_case(joint, m, np.exp(1j * np.radians(value)))


def end_slopes(
    end: End,
    matrix: Callable[[Case], ClosedMatrix],
    moved: list[tuple[Callable[[Case], ClosedMatrix], float]],
) -> Array | None:
    """Differentiate the end of a margin by n free numbers, (n,).

    `matrix` gives the state matrix of a case, `moved` the same with one number changed, and by how
    much. None where the margin does not end at an eigenvalue, or where it has no slope to speak of:
    next to an error that leaves no equilibrium, or to a period from which on a delay spans another
    number of samples.
    """
    size = max(abs(end.value), _LEAST)
    try:
        here = matrix(end.case(end.value))
        sides = [matrix(end.case(end.value + side * _STEP * size)).A for side in (1, -1)]
        beside = [there(end.case(end.value)).A for there, _ in moved]
    except (LostError, ComputationError, DesignError):
        return None
    if any(A.shape != here.A.shape for A in (*sides, *beside)):
        return None
    spectrum = Spectrum.of(here)
    k = int(spectrum.values.real.argmax())
    changes = [side * (A - here.A) / (_STEP * size) for A, side in zip(sides, (1, -1), strict=True)]
    changes += [(A - here.A) / step for A, (_, step) in zip(beside, moved, strict=True)]
    up, down, *by_numbers = spectrum.slopes(np.array([k]), changes)[0].real
    by_end = (up + down) / 2
    if not abs(spectrum.values[k].real) <= _NEAR * size * abs(by_end):
        return None
    if abs(up - down) > _BENT * abs(by_end):
        return None
    return -np.array(by_numbers) / by_end
