"""A loop of one error taken apart into those that do not act on each other.

Planes of an arm that do not move each other make two loops of one; a complex pair that reaches the
imaginary axis belongs to one of them, so that each may be looked at by itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse.csgraph

from flexctl.checks import Array
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_NOTHING = 1e-10  # of the largest in its row and in its column: what solvers leave of zero


def uncoupled(loop: UncertainLoop) -> list[UncertainLoop]:
    """Take a balanced loop of one error apart; what no error reaches by any way is left out.

    Entries that round-off of the law's Riccati equations may leave are taken for zero: the parts
    give candidates, which the whole loop then confirms or not.
    """
    n = loop.size
    whole = np.block([[loop.A, loop.U], [loop.V, loop.D]])
    count, label = scipy.sparse.csgraph.connected_components(_acts(whole), connection="weak")
    found = []
    for k in range(count):
        states = np.flatnonzero(label[:n] == k)
        channels = np.flatnonzero(label[n:] == k)
        if len(states) and len(channels):
            found.append(_part(loop, states, channels))
    return found


def _acts(A: Array) -> Array:
    """Which entries of a matrix are more than round-off."""
    size = np.abs(A)
    rows, columns = size.max(axis=1, initial=0.0), size.max(axis=0, initial=0.0)
    return size > _NOTHING * np.minimum.outer(rows, columns)


def _part(loop: UncertainLoop, states: Array, channels: Array) -> UncertainLoop:
    own = replace(loop.parameters[0], size=len(channels))
    return replace(
        loop,
        A=loop.A[np.ix_(states, states)],
        U=loop.U[np.ix_(states, channels)],
        V=loop.V[np.ix_(channels, states)],
        D=loop.D[np.ix_(channels, channels)],
        parameters=(own,),
        states=tuple(loop.states[k] for k in states),
    )
