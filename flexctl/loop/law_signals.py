"""The signals that a linear law reads, each of which a loop can be broken at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.loop.closed_loop import ClosedLoop

_UNREAD = 1e-12  # of the largest gain of a torque or state of the law: below it is round-off


@dataclass(frozen=True, kw_only=True)
class LawSignals:
    """Readings y = C x of a law u = by_tau y + L z, z' = by_z y + F z; x = [q - q0; v].

    Attributes
    ----------
    names
        Of the p readings, such as ``joint1`` and ``joint1.rate``.
    C
        (p, 2n), n coordinates of the truth plant.
    by_tau, by_z
        (m, p) and (n_z, p).
    of_instruments
        Whether they are readings of instruments that the design names, or the signals that an
        external law measures, and not the state of the arm.
    """

    names: tuple[str, ...]
    C: Array
    by_tau: Array
    by_z: Array
    of_instruments: bool = False

    def __post_init__(self) -> None:
        p = len(self.names)
        checks.shape("C", self.C, (p, self.C.shape[1]))
        checks.shape("by_tau", self.by_tau, (len(self.by_tau), p))
        checks.shape("by_z", self.by_z, (len(self.by_z), p))


def read_signals(
    names: tuple[str, ...], C: Array, by_tau: Array, by_z: Array, *, of_instruments: bool = False
) -> LawSignals:
    """Keep those of the signals (p,) that a law reads: others have no gain."""
    gains = np.abs(np.vstack([by_tau, by_z]))
    read = (gains > _UNREAD * gains.max(axis=1, initial=0.0)[:, None]).any(axis=0)
    kept = np.flatnonzero(read)
    return LawSignals(
        names=tuple(names[k] for k in kept),
        C=C[kept],
        by_tau=by_tau[:, kept],
        by_z=by_z[:, kept],
        of_instruments=of_instruments,
    )


def signals_of(
    loop: ClosedLoop, by_state: Array, K: Array, E: Array, *, unread: bool = False
) -> LawSignals:
    """Name what the law of a closed loop reads; with those `unread`, all that it is given.

    `by_state` (2p, 2n) is the derivative of the measured positions and rates, K (m, 2p) and
    E (n_z, 2p) are those of the law by them.
    """
    controller = loop.controller
    measured, read = controller.measured, controller.reads_instruments
    names = (*measured, *(f"{name}.rate" for name in measured))
    if unread:
        return LawSignals(names=names, C=by_state, by_tau=K, by_z=E, of_instruments=read)
    return read_signals(names, by_state, K, E, of_instruments=read)
