"""A loop of one sample as a continuous one: the unit circle becomes the imaginary axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexctl.errors import ComputationError
from flexctl.loop.uncertainty.uncertain import UncertainLoop


def bilinear(loop: UncertainLoop, sample_time: float) -> UncertainLoop:
    """Map a loop of one sample, x+ = A x + U w, z = V x + D w, to s = (z - 1)/(z + 1).

    Raises
    ------
    ComputationError
        When a multiplier is -1, which has no image.
    """
    N = len(loop.A)
    plus = loop.A + np.eye(N)
    if 1 / np.linalg.cond(plus) < np.finfo(float).eps:
        raise ComputationError("sampled loop: wanted no multiplier -1, came one: it alternates")
    from_U = np.linalg.solve(plus, loop.U)
    return replace(
        loop,
        A=np.linalg.solve(plus, loop.A - np.eye(N)),
        U=np.sqrt(2) * from_U,
        V=np.sqrt(2) * np.linalg.solve(plus.T, loop.V.T).T,
        D=loop.D - loop.V @ from_U,
        sample_time=sample_time,
    )
