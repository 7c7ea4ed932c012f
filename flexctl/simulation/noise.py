"""Noise of a run's readings, drawn before it, so that all integrators see the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.checks import Array
from flexctl.control import Controller
from flexctl.loop import SAMPLE, Event


def draw_noise(controller: Controller, events: Sequence[Event]) -> Array:
    """Noise (N, w) of the w noisy readings at the N samples of a run, in their units.

    Each reading has its own generator, of `loop.seed` and its number: a longer run, another density
    or another instrument does not change the numbers of the others.
    """
    fitted = controller.fitted
    if fitted is None or not fitted.noisy:
        return np.zeros((0, 0))
    count = 1 + max((event.index for event in events if event.kind == SAMPLE), default=-1)
    seed = controller.design.loop.seed
    columns = [
        fitted.readings[k].deviation * np.random.default_rng([seed, k]).standard_normal(count)
        for k in fitted.noisy
    ]
    return np.stack(columns, axis=1)
