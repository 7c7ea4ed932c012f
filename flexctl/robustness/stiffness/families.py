"""Which loops an error makes: of the stiffness that a law computes with, of the arm's payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.robustness.stiffness.followed import FARTHEST, LEAST, ErrorFamily


def stiffness_family(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, direction: Array
) -> ErrorFamily:
    """Loops whose law computes with K_hat = (1 + t d_j) K_j of every part, over t.

    The controller's stiffness must be unknown; `direction` d is (p,) [-], not zero. t ends where a
    part of the stiffness is left a thousandth.
    """
    ends = LEAST / direction[direction != 0]
    farthest = FARTHEST / float(np.abs(direction).max())
    return ErrorFamily(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        made=lambda t: (closed, t * direction),
        lowest=float(max(ends[ends < 0], default=-farthest)),
        highest=float(min(ends[ends > 0], default=farthest)),
    )


def payload_family(closed: ClosedLoop, joints: Array, second_loop_weight: float) -> ErrorFamily:
    """Loops whose arm has another payload than the law knows, over its relative error.

    Mass and inertia err alike.
    """
    nothing = np.zeros(len(closed.controller.plant.stiffness_parts))
    errors = nothing if closed.controller.plant.unknown else None
    return ErrorFamily(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        made=lambda error: (replace(closed, truth=closed.truth.loaded(1 + error)), errors),
        lowest=-1.0,
    )
