"""Upper bound of the structured singular value of one matrix, with the scalings that prove it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import ComplexArray
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.scalings import Block, Scalings, balance, find_scalings

_CLOSE = 1e-3  # relative distance at which a bound is not lowered further
_LARGEST_STEP = 0.5  # smallest factor by which a bound is lowered at once


@dataclass(frozen=True, kw_only=True)
class MuBound:
    """Upper bound of mu of a matrix [-] and the scalings that prove it; None when it is the norm.

    `method` is "norm", "small" (the norm is below the floor), "exact" (the norm of one full block)
    or "interior point".
    """

    value: float
    scalings: Scalings | None
    method: str


def scaled_norm(M: ComplexArray, blocks: tuple[Block, ...], floor: float) -> MuBound:
    """Bound mu of M (r, r) by its norm in units that balance it: a cheap first bound.

    ab13md of SLICOT gives a better one, but is not called: that of slycot 0.7.1 never returns where
    M has blocks of zeros, as in loops whose planes are uncoupled.
    """
    norm = float(np.linalg.norm(M, 2))
    if len(blocks) == 1 and blocks[0].full:
        return MuBound(value=norm, scalings=None, method="exact")
    if norm <= floor:
        return MuBound(value=norm, scalings=None, method="small")
    scalings = balance(M[None], blocks)
    value = smallest_level(M, scalings)
    if value < norm:
        return MuBound(value=value, scalings=scalings, method="norm")
    return MuBound(value=norm, scalings=None, method="norm")


def tight_bound(
    M: ComplexArray,
    blocks: tuple[Block, ...],
    known: MuBound,
    floor: float,
    deadline: Deadline = ENDLESS,
) -> MuBound:
    """Lower a bound of mu of M (r, r) to within 0.1 % of the least that D and G scalings prove.

    Channels of a repeated error share one full D and G block. A bound below `floor` > 0 is lowered
    no further, nor is any after the deadline.
    """
    low, level = floor, floor * (1 + _CLOSE)  # the floor first: bounds below it do not matter
    while known.value > low * (1 + _CLOSE):
        feasible = find_scalings((M / level)[None], blocks, deadline)
        if feasible is None:
            low = level
        else:
            scalings = feasible.at_level(level)
            value = smallest_level(M, scalings)
            if not value < known.value:
                break
            known = MuBound(value=value, scalings=scalings, method="interior point")
        level = max(float(np.sqrt(low * known.value)), known.value * _LARGEST_STEP)
    return known


def band_bound(
    M: ComplexArray, blocks: tuple[Block, ...], floor: float, deadline: Deadline = ENDLESS
) -> float:
    """Smallest level [-] above `floor` > 0 for which one pair of scalings proves all M (K, r, r).

    To within 0.1 %. The largest norm of the M is always such a level.
    """
    low, high = floor, float(np.linalg.norm(M, 2, axis=(1, 2)).max()) * 1.01
    step = _CLOSE  # a level close to the floor is found in few steps
    while high > low * (1 + _CLOSE):
        middle = min(low * (1 + step), float(np.sqrt(low * high)))
        if find_scalings(M / middle, blocks, deadline):
            high = middle
        else:
            low, step = middle, 10 * step
    return high


def smallest_level(M: ComplexArray, scalings: Scalings) -> float:
    """Smallest beta [-] with M* D M + j (G M - M* G) <= beta^2 D, (r, r): it bounds mu of M.

    A generalised Hermitian eigenvalue problem; infinite when it cannot be solved.
    """
    try:
        largest = scipy.linalg.eigh(
            scalings.form(M) + scalings.D, scalings.D, eigvals_only=True, driver="gv"
        )[-1]
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sqrt(max(largest, 0.0)))
