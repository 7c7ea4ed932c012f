"""The disk margin: simultaneous independent errors of gain and phase in all channels.

It is 1 / max over w of mu(Z(jw)), Z = S - I/2 with the sensitivity S = (I + L)^-1, and mu the least
norm of d Z d^-1 over positive scalings d of the channels: see `largest_gain`. Source:
[SeilerPackardGahinet20].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg
import slycot

from flexctl.checks import Array, ComplexArray
from flexctl.robustness import Response
from flexctl.verdict.broken_loop import BrokenLoop
from flexctl.verdict.largest_gain import largest_gain, scaled
from flexctl.verdict.sensitivity_peaks import channels, first_frequencies, frequency_of

(_GEBAL,) = scipy.linalg.get_lapack_funcs(
    ("gebal",)
)  # matrix_balance takes large scalings for indices
_UNCOUPLED = 1e-8  # of the greatest entry, once couplings are balanced: mu changes by as much
_NOTHING = 1e-60  # of the greatest entry: stands for zero where couplings are balanced


def disk_margin(cut: BrokenLoop, own: Sequence[int] | None = None) -> tuple[float, float]:
    """1 / max over w of mu(S - I/2), with independent complex channels, and this w [rad/s].

    Of all channels, or of some with the others closed. Channels that do not act on each other in
    both directions are judged apart. Raises ComputationError if the maximum cannot be shown to be
    one. Source: [SeilerPackardGahinet20].
    """
    whole = cut.response if own is None else channels(cut.response, np.array(own))
    middle = replace(whole, D=whole.D + np.eye(len(whole.D)) / 2)
    w = first_frequencies(cut)
    parts = _acting_on_each_other(middle, w)
    found = [largest_gain(channels(middle, k), w, "disk margin", best_scaling) for k in parts]
    mu, at = max(found)
    return 1 / mu, frequency_of(cut, at, w)


def uncoupled_channels(cut: BrokenLoop, shift: float) -> list[Array]:
    """Return sets of channels that act on each other both ways, of S - I + shift."""
    whole = cut.response
    shifted = replace(whole, D=whole.D + shift * np.eye(len(whole.D)))
    return _acting_on_each_other(shifted, first_frequencies(cut))


def _acting_on_each_other(Z: Response, w: Array) -> list[Array]:
    return _balanced(np.abs(Z(w)).max(axis=0))[1]


def _balanced(size: Array) -> tuple[Array, list[Array]]:
    """Scaling (m,) that balances the couplings between channels of these sizes (m, m), and parts.

    The parts are sets of channels that act on each other both ways, by whatever way.
    """
    m = len(size)
    between = np.maximum(size, _NOTHING * size.max())
    np.fill_diagonal(between, 0.0)
    both_ways, _, _, scale, _ = _GEBAL(between, scale=True, permute=False)
    acts = both_ways > _UNCOUPLED * max(both_ways.max(), np.diagonal(size).max())
    reached = np.linalg.matrix_power(acts + np.eye(m), m) > 0
    first = (reached & reached.T).argmax(axis=1)
    return 1 / scale, [np.flatnonzero(first == k) for k in np.unique(first)]


def best_scaling(Z: ComplexArray) -> Array:
    """Scaling (m,) of the channels that minimises the norm of d Z d^-1, nearly.

    Couplings are balanced first. Of parts that are then not coupled each has the best scaling of
    its own: for a reducible matrix ab13md of slycot 0.7.1 may never return.
    """
    m = len(Z)
    if m == 1:
        return np.ones(1)
    scaling, parts = _balanced(np.abs(Z))
    if len(parts) > 1:
        for own in parts:
            inside = best_scaling(scaled(Z, scaling)[np.ix_(own, own)])
            scaling[own] *= inside / np.exp(np.log(inside).mean())
        return scaling
    if m == 2:
        return np.array([1.0, np.sqrt(np.abs(Z[0, 1]) / np.abs(Z[1, 0]))])
    found = slycot.ab13md(scaled(Z, scaling), np.ones(m, dtype=int), np.full(m, 2))[1]
    return scaling * np.asarray(found)
