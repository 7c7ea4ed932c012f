"""The controllers with which a continuous closed loop has no feedthrough from w to z."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexctl.errors import DesignError
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
        Where every controller has a feedthrough, or bounds stand in the way, or the plant has a
        feedthrough from u to y besides.
    """
    m, p = (size - loop.order for size in loop.shape)
    acts = np.einsum("ri,xij,jq->xrq", loop.D12, structure.directions[:, :m, :p], loop.D21)
    Dk = loop.effective(structure.offset)[:m, :p]  # Dk (I - D Dk)^-1
    parts = [acts, loop.D11, np.abs(loop.D12) @ np.abs(Dk) @ np.abs(loop.D21)]
    size = max(float(np.abs(part).max(initial=0.0)) for part in parts) or 1.0
    fixed = loop.D11 + loop.D12 @ Dk @ loop.D21
    rows = acts.reshape(len(acts), -1).T
    if max(np.abs(part).max(initial=0.0) for part in (rows, fixed)) <= _ZERO * size:
        return structure
    x = -np.linalg.lstsq(rows, fixed.ravel())[0]
    left = np.abs(rows @ x + fixed.ravel())
    bounded = np.isfinite(structure.lower).any() or np.isfinite(structure.upper).any()
    if left.max(initial=0.0) > _ZERO * size:
        where = np.unravel_index(int(left.argmax()), fixed.shape)
        raise DesignError(
            "synthesise: the H2 norm is infinite: the closed loop has a feedthrough from input "
            f"w{where[1] + 1} to output z{where[0] + 1}; use norm='hinf', or change the plant"
        )
    if loop.D.any():
        raise DesignError(
            "synthesise: the controller makes a feedthrough from w to z, and the plant has one "
            "from u to y: fix the controller's feedthrough at 0, or use norm='hinf'"
        )
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
