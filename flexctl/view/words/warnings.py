"""What speaks against a design that ranks first, each in a phrase after its name and a colon."""

from __future__ import annotations

import numpy as np

from flexctl.robustness import NO_GROWTH, StiffnessTolerance
from flexctl.verdict import Evaluation, Stability
from flexctl.view.words.numbers import listed, share, times

_THIN_STIFFNESS = 0.1  # measured rigs are softer than their models by more
_THIN_DISK = 0.3  # about 2.6 dB of gain or 17 degrees of phase, in all joints at once
_THIN_GAIN = 6.0  # dB: a factor of two, as inertias of payloads and gears may be off
_THIN_PHASE = 30.0  # deg
_THIN_DELAY = 2e-3  # s; a law held at 1 kHz brings 0.5 ms, its computation up to 1 ms more
_NO_DAMPING = 1e-4  # damping ratio: structures have ten times as much at least
_NOTHING = 1e-6  # of the stiffness: the tolerance of a loop with an undamped mode


def warnings_of(e: Evaluation) -> list[str]:
    """List what speaks against a design although it ranks."""
    found = [
        *_only_marginal(e),
        *_undamped(e),
        *_unstable_elsewhere(e),
        *_thin_margins(e),
        *_coarse_delay(e),
    ]
    return [*found, *_stiff_only(e), *not_computed(e)]


def not_computed(e: Evaluation) -> list[str]:
    """Say which metrics could not be computed, and why."""
    reasons: dict[str, list[str]] = {}
    for metric, why in e.not_computed.items():
        reasons.setdefault(why, []).append(_METRICS.get(metric, metric))
    return [f"not computed: {listed(names)} ({why})" for why, names in reasons.items()]


_METRICS = {  # others are called as they are
    "spillover": "stability on other truth orders",
    "margins": "gain, phase, delay and disk margins",
    "margins.min_sampling_rate": "the smallest sampling rate",
    "stiffness": "the stiffness margin",
}


def _only_marginal(e: Evaluation) -> list[str]:
    if e.stability is None or e.stability.stable is True:
        return []
    if e.method in _OPEN_LOOPS:
        return ["it is an open loop: nothing brings the joints back after a disturbance"]
    return ["at the final pose it is only marginally stable: a disturbance does not decay"]


def _undamped(e: Evaluation) -> list[str]:
    ratio = e.stability.min_damping_ratio if e.stability else 1.0
    if not 0 < ratio < _NO_DAMPING:
        return []
    return [f"nearly undamped: the smallest damping ratio is {share(ratio)}"]


_OPEN_LOOPS = ("feedforward", "torque")


def _unstable_elsewhere(e: Evaluation) -> list[str]:
    s = e.stability
    return [*_unstable_along(s), *_spills_over(e)] if s else []


def _unstable_along(s: Stability) -> list[str]:
    rates, words = s.path_abscissa, []
    lost = int(np.isnan(rates).sum())
    if lost:
        words.append(
            f"held still at {lost} of {len(rates)} poses of the motion it has no equilibrium at "
            "its reference"
        )
    if lost < len(rates) and np.nanmax(rates) > 0:
        worst = int(np.nanargmax(rates))
        words.append(
            f"held still at a pose of the motion (t = {s.path_t[worst]:.3g} s) it is unstable, a "
            f"disturbance grows at {rates[worst]:.3g} 1/s"
        )
    return words


def unstable_orders(e: Evaluation) -> list[int]:
    """Finer orders of the truth plant on which a design is unstable or has no equilibrium."""
    return [order for order, rate in _finer(e) if not rate <= 0]  # NaN: it has none


def _finer(e: Evaluation) -> list[tuple[int, float]]:
    """Orders of the truth plant above the one it is judged on, and spectral abscissae there."""
    if e.stability is None:
        return []
    ladder = zip(e.stability.orders, e.stability.abscissae, strict=True)
    return [(order, rate) for order, rate in ladder if order > e.truth.order]


def _spills_over(e: Evaluation) -> list[str]:
    unstable = [str(order) for order, rate in _finer(e) if rate > 0]
    lost = [str(order) for order, rate in _finer(e) if np.isnan(rate)]
    kind, words = e.truth.kind, []
    if unstable:
        words.append(f"spillover: unstable on a truth of {listed(unstable)} {kind}")
    if lost:
        words.append(f"no equilibrium at its reference on a truth of {listed(lost)} {kind}")
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


def _coarse_delay(e: Evaluation) -> list[str]:
    """Say that a delay is an upper bound, where a mode is far too fast for the sampling."""
    if e.margins is None or not e.margins.delay_may_be_less:
        return []
    return [
        "its delay margins are upper bounds: a mode is so fast compared with the sampling period "
        "that narrow ranges of smaller unstable delays may have been missed"
    ]


def _stiff_only(e: Evaluation) -> list[str]:
    """Warn where a small overestimate of the stiffness would destabilise the loop."""
    s = e.stiffness
    if s is None or s.exact is None:
        return []
    ends = {False: (s.exact.alpha_upper, s.exact.proven), True: (s.path_upper, s.path_proven)}
    moving = min((key for key in ends if not np.isnan(ends[key][0])), key=lambda key: ends[key][0])
    tolerated, proven = ends[moving]
    if tolerated >= _THIN_STIFFNESS:
        return []
    size = f"only {share(tolerated)}" if tolerated > _NOTHING else "no"
    where = "at the worst pose of the motion, held still" if moving else "at the final pose"
    how = "" if proven else " (by continuation of the equilibrium, not proven)"
    return [f"{size} stiffness overestimate is tolerated {where}{how}{_over_the_motion(s)}"]


def _over_the_motion(s: StiffnessTolerance) -> str:
    """Say what comes of an error of 10 % in the time that the motion lasts."""
    found = s.path_growth
    if found is None:
        return ""
    asked, time = share(found.error), f"the motion of {found.duration:.3g} s"
    if found.factor < NO_GROWTH:
        poses = f"at {asked} some poses are unstable"
        return f", and {poses}, but no small disturbance grows during {time}"
    return (
        f", and at {asked} a small disturbance grows by up to {times(found.factor)} during {time}"
    )
