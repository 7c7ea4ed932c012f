"""The poses of a motion at which frozen loops are judged: one choice for all."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array
from flexctl.design import ReferenceMotion


def motion_poses(motion: ReferenceMotion, count: int) -> tuple[Array, Array]:
    """Choose times (k,) [s] and joint variables (k, m) along a motion, evenly, the end last.

    One pose is the final one, and all of a reference that ends at once are.
    """
    if count <= 1 or not motion.duration:
        return np.array([motion.duration]), motion.final[None, :]
    times = np.linspace(0, motion.duration, count)
    return times, motion.sample(times)[0].T
