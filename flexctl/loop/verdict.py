"""A comparison in words: which design to take, why, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.loop.evaluation import Evaluation

_THIN_DISK = 0.3  # about 2.6 dB of gain or 17 degrees of phase, in all joints at once


def verdict(ranked: Sequence[Evaluation], evaluations: Sequence[Evaluation]) -> str:
    """Say which design to take and why, its caveats, and what is wrong with the unranked.

    Parameters
    ----------
    ranked
        Evaluations that rank, best first.
    evaluations
        All of them.
    """
    sentences = [*_best(ranked), *_next(ranked)] if ranked else ["No design holds this arm."]
    for e in evaluations:
        if e.failed:
            sentences.append(f"{e.name} fails.")
        elif not e.ranks and e.stability:
            rate = e.stability.spectral_abscissa
            sentences.append(f"{e.name} is unstable at the final pose (grows at {rate:.3g} 1/s).")
    return " ".join(sentences)


def _best(ranked: Sequence[Evaluation]) -> list[str]:
    best = ranked[0]
    if best.residual is None:
        return []
    error = f"its tip is at most {1e3 * best.residual.tip_error_max:.3g} mm off after the motion"
    if best.residual.settling_time is None:
        end = f"still {1e3 * best.residual.tip_error_end:.3g} mm off at the end of the run"
        first = f"No design settles; the best is {best.name}: {error} and {end}."
    else:
        first = f"Take {best.name}: {error} and settles in {best.residual.settling_time:.3g} s."
    caveats = _caveats(best)
    return [first, f"Beware: {'; '.join(caveats)}."] if caveats else [first]


def _caveats(e: Evaluation) -> list[str]:
    """List what speaks against a design although it ranks first."""
    return [*_unstable_elsewhere(e), *_thin_margins(e)]


def _unstable_elsewhere(e: Evaluation) -> list[str]:
    if e.stability is None:
        return []
    words = []
    if e.stability.path_abscissa.max() > 0:
        rate = e.stability.path_abscissa.max()
        words.append(f"along the motion it grows at up to {rate:.3g} 1/s")
    ladder = zip(e.stability.orders, e.stability.abscissae, strict=True)
    finer = [str(order) for order, rate in ladder if rate > 0 and order > e.truth["order"]]
    if finer:
        words.append(f"it is unstable on a truth of {', '.join(finer)} {e.truth['kind']}")
    return words


def _thin_margins(e: Evaluation) -> list[str]:
    m = e.margins
    if m is None or m.disk >= _THIN_DISK:
        return []
    joint = int(np.argmin(m.phase_deg))
    return [
        f"its margins are thin (joint{joint + 1}: {m.gain_db[joint]:.2g} dB, "
        f"{m.phase_deg[joint]:.2g} deg; disk {m.disk:.2g})"
    ]


def _next(ranked: Sequence[Evaluation]) -> list[str]:
    if len(ranked) < 2 or ranked[1].residual is None:
        return []
    error = 1e3 * ranked[1].residual.tip_error_max
    return [f"Next comes {ranked[1].name} with {error:.3g} mm."]
