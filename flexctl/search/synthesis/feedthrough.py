"""The controllers with which a continuous closed loop has no feedthrough from w to z."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.errors import DesignError
from flexctl.search.synthesis.fixed_modes import draw_numbers
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.structures import ControllerStructure

_ZERO = 1e-10  # of feedthroughs, relative to the largest part


def forbid_feedthrough(
    loop: Interconnection, structure: ControllerStructure
) -> ControllerStructure:
    """Restrict a structure to D11 + D12 Dk D21 = 0, without which the H2 norm is infinite.

    The free numbers stay where the feedthrough does not depend on them; else they are replaced by
    coordinates of the plane on which there is none.

    Raises
    ------
    DesignError
        Where every controller has a feedthrough, or bounds stand in the way, or one that depends
        on the controller meets one of the plant from u to y.
    """
    if loop.D.any():  # the feedthrough is not affine in Dk then
        _require_none(loop, structure)
        return structure
    m, p = (size - loop.order for size in loop.shape)
    acts = np.einsum("ri,xij,jq->xrq", loop.D12, structure.directions[:, :m, :p], loop.D21)
    fixed, terms = feedthrough(loop, structure.offset)
    size = max(float(np.abs(acts).max(initial=0.0)), terms) or 1.0
    rows = acts.reshape(len(acts), -1).T
    if max(np.abs(part).max(initial=0.0) for part in (rows, fixed)) <= _ZERO * size:
        return structure
    x = -np.linalg.lstsq(rows, fixed.ravel())[0]
    left = np.abs(rows @ x + fixed.ravel())
    bounded = np.isfinite(structure.lower).any() or np.isfinite(structure.upper).any()
    if left.max(initial=0.0) > _ZERO * size:
        raise _infinite(left.reshape(fixed.shape))
    if bounded:
        raise DesignError(
            "synthesise: the H2 norm is finite on a plane of the free numbers only, with which "
            "bounds do not go; fix those that make a feedthrough, or leave out the bounds"
        )
    _, values, right = np.linalg.svd(rows)
    rank = int(np.sum(values > _ZERO * size))
    plane = right[rank:]
    if not len(plane):
        raise DesignError(
            "synthesise: the H2 norm is finite with one controller only, nothing is left to "
            "minimise; use norm='hinf', or a larger order"
        )
    return replace(
        structure,
        names=tuple(f"plane[{i + 1}]" for i in range(len(plane))),
        offset=structure.gain(x),
        directions=np.tensordot(plane, structure.directions, 1),
        lower=np.full(len(plane), -np.inf),
        upper=np.full(len(plane), np.inf),
    )


def feedthrough(loop: Interconnection, K: Array) -> tuple[Array, float]:
    """Return D11 + D12 Dk (I - D Dk)^-1 D21 (r, q), from w to z, and the size of its terms."""
    m, p = (size - loop.order for size in loop.shape)
    Dk = loop.effective(K)[:m, :p]  # Dk (I - D Dk)^-1
    terms = loop.D11, np.abs(loop.D12) @ np.abs(Dk) @ np.abs(loop.D21)
    size = max(float(np.abs(part).max(initial=0.0)) for part in terms)
    return loop.D11 + loop.D12 @ Dk @ loop.D21, size


def _require_none(loop: Interconnection, structure: ControllerStructure) -> None:
    """Refuse a structure with a feedthrough from w to z where the plant has one from u to y.

    As a rational function of the free numbers it is zero, or the same, if it is so for some that
    are drawn; D Dk is about 1 there.
    """
    m, p = (size - loop.order for size in loop.shape)
    around = np.abs(loop.D @ structure.directions[:, :m, :p]).max(axis=(1, 2))
    sizes = 1 / np.where(around > 0, around, 1.0)
    drawn = draw_numbers(structure, sizes, np.random.default_rng(0))
    found = [feedthrough(loop, structure.gain(x)) for x in drawn]
    values, size = np.array([value for value, _ in found]), max(size for _, size in found)
    if np.abs(values).max(initial=0.0) <= _ZERO * size:
        return
    if np.ptp(values, axis=0).max() > _ZERO * size:
        raise DesignError(
            "synthesise: the controller makes a feedthrough from w to z, and the plant has one "
            "from u to y: fix the controller's feedthrough at 0, or use norm='hinf'"
        )
    raise _infinite(np.abs(values[0]))


def _infinite(left: Array) -> DesignError:
    """Say which of the feedthroughs (r, q) that stay is the largest."""
    where = np.unravel_index(int(left.argmax()), left.shape)
    return DesignError(
        "synthesise: the H2 norm is infinite: the closed loop has a feedthrough from input "
        f"w{where[1] + 1} to output z{where[0] + 1}; use norm='hinf', or change the plant"
    )
