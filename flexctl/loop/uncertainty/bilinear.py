"""A loop of one sample as a continuous one: the unit circle becomes the imaginary axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from flexctl.errors import ComputationError
from flexctl.loop.uncertainty.uncertain import UncertainLoop


def bilinear(loop: UncertainLoop, sample_time: float) -> UncertainLoop:
    """Map a loop of one sample, x+ = A x + U w, z = V x + D w, to s = (z - 1)/(z + 1).

    States are scaled for it: deflections and rates of a stiff arm differ by its frequencies, which
    would be taken for a multiplier -1. The result is in the states' own units again.

    Raises
    ------
    ComputationError
        When a multiplier is -1, which has no image.
    """
    identity = np.eye(len(loop.A))
    _, (scale, _) = scipy.linalg.matrix_balance(loop.A, permute=False, separate=True)
    A, U, V = loop.A * scale / scale[:, None], loop.U / scale[:, None], loop.V * scale
    plus = A + identity
    if 1 / np.linalg.cond(plus) < np.finfo(float).eps:
        raise ComputationError("sampled loop: expected no multiplier -1, got one: it alternates")
    from_U = np.linalg.solve(plus, U)
    return replace(
        loop,
        A=np.linalg.solve(plus, A - identity) * scale[:, None] / scale,
        U=np.sqrt(2) * from_U * scale[:, None],
        V=np.sqrt(2) * np.linalg.solve(plus.T, V.T).T / scale,
        D=loop.D - V @ from_U,
        sample_time=sample_time,
    )
