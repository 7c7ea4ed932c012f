"""A comparison in words: which design to take, why, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.loop.evaluation import Evaluation

_SOONER = 0.9  # share of the first one's settling time
_THIN_STIFFNESS = 0.1  # measured rigs are softer than their models by more
_THIN_DISK = 0.3  # about 2.6 dB of gain or 17 degrees of phase, in all joints at once
_THIN_GAIN = 6.0  # dB: a factor of two, as inertias of payloads and gears may be off
_THIN_PHASE = 30.0  # deg
_THIN_DELAY = 2e-3  # s; a law held at 1 kHz brings 0.5 ms, its computation up to 1 ms more


def verdict(ranked: Sequence[Evaluation], evaluations: Sequence[Evaluation]) -> str:
    """Say which design to take and why, its caveats, and what is wrong with the unranked.

    Parameters
    ----------
    ranked
        Evaluations that rank, best first.
    evaluations
        All of them.
    """
    sentences = [*_best(ranked), *_next(ranked)] if ranked else [_none(evaluations)]
    for e in evaluations:
        if e.failed:
            sentences.append(f"{e.name} fails.")
        elif "tracking" in e.not_computed:
            sentences.append(f"{e.name} was not judged: {e.not_computed['tracking']}.")
        elif not e.ranks and e.stability:
            rate = e.stability.spectral_abscissa
            sentences.append(f"{e.name} is unstable at the final pose (grows at {rate:.3g} 1/s).")
        elif e.no_rest and ranked and ranked[0].residual is not None:
            sentences.append(f"{e.name} is not judged at rest: {e.no_rest}.")
    return " ".join(sentences)


def _none(evaluations: Sequence[Evaluation]) -> str:
    """Say that no design ranks: none holds the arm, or that of some nothing is known."""
    unknown = any("tracking" in e.not_computed and not e.failed for e in evaluations)
    return "No design could be ranked." if unknown else "No design holds this arm."


def _best(ranked: Sequence[Evaluation]) -> list[str]:
    best = ranked[0]
    if best.residual is None:
        return _best_without_rest(best)
    error = f"its tip is at most {1e3 * best.residual.tip_error_max:.3g} mm off after the motion"
    if best.residual.settling_time is None:
        end = f"still {1e3 * best.residual.tip_error_end:.3g} mm off at the end of the run"
        first = f"No design settles; the best is {best.name}: {error} and {end}."
    else:
        first = f"Take {best.name}: {error} and settles in {best.residual.settling_time:.3g} s."
    return [first, *_beware(best)]


def _beware(e: Evaluation) -> list[str]:
    caveats = _caveats(e)
    return [f"Beware: {'; '.join(caveats)}."] if caveats else []


def _best_without_rest(best: Evaluation) -> list[str]:
    """Say who follows best where no design comes to rest."""
    if best.tracking is None:
        return []
    error = 1e3 * best.tracking.tip_error_rms
    words = f"No rest is left to judge: {best.no_rest}."
    first = f"By its tip on the way the best is {best.name}: {error:.3g} mm off (rms)."
    return [words, first, *_beware(best)]


def _caveats(e: Evaluation) -> list[str]:
    """List what speaks against a design although it ranks first."""
    return [*_only_marginal(e), *_unstable_elsewhere(e), *_thin_margins(e), *_stiff_only(e)]


def _only_marginal(e: Evaluation) -> list[str]:
    if e.stability is None or e.stability.stable is True:
        return []
    return ["at the final pose it is only marginally stable: what disturbs it stays"]


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
    """Name every margin that is thin, and the joint that has least of it."""
    m = e.margins
    if m is None:
        return []
    least_delay = _THIN_DELAY if m.sample_time is None else m.sample_time
    kinds = (
        (m.gain_db, _THIN_GAIN, 1.0, "dB"),
        (m.phase_deg, _THIN_PHASE, 1.0, "deg"),
        (m.delay_seconds, least_delay, 1e3, "ms of delay"),
    )
    by_joint: dict[int, list[str]] = {}
    for values, least, unit, name in kinds:
        joint = int(np.argmin(values))
        if values[joint] < least:
            by_joint.setdefault(joint, []).append(f"{unit * values[joint]:.3g} {name}")
    thin = [f"joint{joint + 1}: {', '.join(by_joint[joint])}" for joint in sorted(by_joint)]
    if m.common_delay_seconds < least_delay and len(m.gain_db) > 1:
        thin.append(f"all joints together: {1e3 * m.common_delay_seconds:.3g} ms of delay")
    if m.disk < _THIN_DISK:
        thin.append(f"disk {m.disk:.3g}")
    return [f"its margins are thin ({'; '.join(thin)})"] if thin else []


def _stiff_only(e: Evaluation) -> list[str]:
    """Say it where finite elements that err a little in stiffness would lose the loop."""
    s = e.stiffness
    if s is None or s.exact is None:
        return []
    borne = {"at the final pose": s.exact.alpha_upper, "on the way": s.path_upper}
    where = min((key for key in borne if not np.isnan(borne[key])), key=lambda key: borne[key])
    if borne[where] >= _THIN_STIFFNESS:
        return []
    return [f"it bears a stiffness overestimated by {100 * borne[where]:.2g} % only, {where}"]


def _sooner(second: Evaluation, best: Evaluation) -> str:
    """Say it where the second settles well before the first: the largest error ranks, not time."""
    times = [e.residual.settling_time if e.residual else None for e in (second, best)]
    if times[0] is None or times[1] is None or times[0] >= _SOONER * times[1]:
        return ""
    return f", but settles sooner, in {times[0]:.3g} s"


def _next(ranked: Sequence[Evaluation]) -> list[str]:
    if len(ranked) < 2:
        return []
    second = ranked[1]
    if second.residual is not None:
        error = f"{1e3 * second.residual.tip_error_max:.3g} mm"
        return [f"Next comes {second.name} with {error}{_sooner(second, ranked[0])}."]
    if ranked[0].residual is not None or second.tracking is None:
        return []
    return [f"Next comes {second.name} with {1e3 * second.tracking.tip_error_rms:.3g} mm."]
