"""A comparison in words: which design is recommended, why, and with which reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.verdict import (
    Comparison,
    Evaluation,
    Reason,
    find_reasons,
    not_computed,
    unstable_orders,
)
from flexctl.view.words.numbers import (
    angle,
    at_most,
    figure,
    growth_words,
    length,
    limit_name,
    listed,
    percent,
)
from flexctl.view.words.parts import per_link
from flexctl.view.words.responses import reading_name

_SOONER = 0.9  # share of the first one's settling time
_NEAR = 0.1  # of the settling band: the tip may rest so far off its reference without a word
_ALIKE = 0.1  # of the error that remains: a rest that is off by that error, so nearly, explains it
_OUTSIDE = 0.01  # of the largest offset that friction holds, to which a joint may slide
_VISIBLE = 1e-6  # m: smaller motion is not told in numbers
_BEYOND = 1e-5  # rad or m beyond a position limit: less is not told
_RINGS = 0.05  # damping ratio below which a vibration lasts for several periods
_UNDAMPED = 1e-10  # damping ratio that is round-off
_NOTHING = 1e-6  # of the stiffness: the tolerance of a loop with an undamped mode
_GRAVE = (
    "unstable-at-pose",
    "spillover",
    "spillover-at-pose",
    "friction-stuck",
    "friction-slides",
    "hunts",
)
_SIZES: dict[bool | None, Callable[[float], str]] = {  # of joints that slide, turn, or both
    True: length,
    False: angle,
    None: "{:.3g} rad or m".format,
}
_METRICS = {  # others are called as they are
    "spillover": "stability on other truth orders",
    "margins": "gain, phase, delay and disk margins",
    "margins.sensors": "margins at the sensors",
    "margins.min_sampling_rate": "the smallest sampling rate",
    "neglected": "the small-gain test of neglected modes",
    "friction": "what friction does to the loop",
    "stiffness": "the stiffness margin",
    "stiffness.exact": "the exact stiffness margin",
    "stiffness.path": "the stiffness margin along the motion",
}
_MARGINS = {  # scale, unit
    "gain_db": (1.0, "dB"),
    "phase_deg": (1.0, "deg"),
    "delay_seconds": (1e3, "ms of delay"),
}


def verdict(comparison: Comparison) -> str:
    """Say which design is recommended and why, its caveats, and what is wrong with the unranked."""
    ranked = comparison.ranked
    sentences = [*_best(ranked), *_next(ranked)] if ranked else [_none(comparison.evaluations)]
    for e in ranked[1:]:
        sentences += _grave(e)
    for e in comparison.evaluations:
        sentences += _unranked(e, ranked)
    return " ".join([*sentences, *_not_alike(comparison)])


def evaluation_words(e: Evaluation) -> str:
    """Say what is wrong with a design, or how it settles and what speaks against it."""
    if not e.ranks:
        return " ".join(_unranked(e, ()))
    if e.residual is None:
        first = f"{e.name}: residual errors were not judged: {e.no_rest}{_but(e)}."
    elif e.residual.settling_time is None:
        first = f"{e.name} does not settle in its run: {_still_off(e)}."
    else:
        first = f"{e.name}: {_settles(e)}."
    return " ".join([first, *_noisy(e), *_warnings(e)])


def _noisy(e: Evaluation) -> list[str]:
    """Say what the stated noise does to the loop at rest; none where none is stated."""
    if e.noise is None:
        return []
    rms = e.noise.tip_rms
    steps = ", with the rounding of readings counted as noise," if e.noise.rounded else ""
    size = length(rms) if rms >= _VISIBLE else f"less than {length(_VISIBLE)}"
    moves, held = "moves", ""
    if e.friction:
        moves, held = "would move", " if dry friction did not hold its joints"
    return [f"At rest the stated noise{steps} {moves} its tip by {size} rms{held}."]


def _none(evaluations: Sequence[Evaluation]) -> str:
    """Say that no design ranks: each is unstable or fails, or of some it is not known."""
    unstable = [e.stability is not None and not e.stability.stable for e in evaluations]
    unknown = any(
        not e.failed and e.not_computed and not lost
        for e, lost in zip(evaluations, unstable, strict=True)
    )
    said = "could be ranked" if unknown else "can be recommended: each one is unstable or fails"
    return f"No design {said}."


def _unranked(e: Evaluation, ranked: Sequence[Evaluation]) -> list[str]:
    """Say why a design has no rank, or what is not judged of it beside the best."""
    if e.failed:
        return [f"{e.name} failed: {e.failed}.", *_stable_by_design(e)]
    if e.stability and not e.stability.stable:
        rate = e.stability.spectral_abscissa
        said = f"{e.name} is unstable at the final pose: a disturbance grows at {figure(rate)} 1/s"
        bounded = [_bounds(one.facts) for one in find_reasons(e) if one.code == "friction-vibrates"]
        return [f"{'; '.join([said, *bounded])}.", *_stable_by_design(e)]
    if not e.ranks:
        return [f"{e.name} was not ranked; {listed(list(map(reason_words, not_computed(e))))}."]
    if e.no_rest and ranked and ranked[0].residual is not None:
        return [f"The residual error of {e.name} was not judged: {e.no_rest}."]
    return []


def _stable_by_design(e: Evaluation) -> list[str]:
    """Say whether an unstable loop is stable on its own model, and what differs from that."""
    if e.stability is None:
        return []
    if e.stability.design_abscissa > 0:
        return [f"It is unstable on its own model, of {per_link(e.basis)}, too."]
    if not e.stability.stable_by_design:
        return []
    why = "the true arm differs from that model"
    if e.stability.spills_over:
        why = "what that model leaves out destabilises it (spillover)"
    return [f"On its own model, of {per_link(e.basis)}, it is stable: {why}."]


def _best(ranked: Sequence[Evaluation]) -> list[str]:
    best = ranked[0]
    if best.residual is None:
        first = _best_without_rest(best)
    elif best.residual.settling_time is None:
        first = f"No stable design settles in its run. The best is {best.name}: {_still_off(best)}."
    else:
        lead = (
            "First of the ranking, but not recommended" if unstable_orders(best) else "Recommended"
        )
        first = f"{lead}: {best.name}. {_settles(best)}."
    return [first, *_warnings(best)]


def _still_off(e: Evaluation) -> str:
    """Say which error a run that does not settle ends with."""
    assert e.residual is not None
    return (
        f"{_error(e)} and still {length(e.residual.tip_error_end)} in the last tenth of the time "
        f"after it{_creeps(e)}{_but(e)}"
    )


def _settles(e: Evaluation) -> str:
    """Say how large the error is after the motion, and when it has settled."""
    after = e.residual.settling_time if e.residual else None
    settles = f"settles within {after:.3g} s" if after else "has settled when the motion ends"
    error = _error(e)
    return f"{error[0].upper()}{error[1:]} and {settles}{_but(e)}"


def _warnings(e: Evaluation) -> list[str]:
    """Say what speaks against a design in one sentence; none where nothing does."""
    warnings = warnings_of(e)
    return [f"Warning: {'; '.join(warnings)}."] if warnings else []


def _grave(e: Evaluation) -> list[str]:
    """Say of a design that is not the first what no figure of the table shows."""
    said = [reason_words(reason) for reason in find_reasons(e) if reason.code in _GRAVE]
    return [f"Warning about {e.name}: {'; '.join(said)}."] if said else []


def _error(e: Evaluation) -> str:
    error = length(e.residual.tip_error_max) if e.residual else "-"
    return f"after the motion its tip error is {at_most(error)}"


def _creeps(e: Evaluation) -> str:
    """Name the decay rate of the slowest eigenvalue, as the run may be too short for it.

    Not where the tip rests off its reference by as much as remains, or a joint has no torque: that
    error does not decay.
    """
    if _stays_off(e) or _undriven(e):
        return ""
    if _stuck(e):
        rings = rings_words(e)
        held = ", where friction holds it"
        if e.friction and e.friction.creeps:
            held = ", near enough for friction to hold it (in its run friction creeps)"
        return f"{held}{f' and {rings}' if rings else ''}"
    rate = -e.stability.spectral_abscissa if e.stability else 0.0
    decays = "without dry friction its slowest eigenvalue would decay" if e.friction else ""
    decays = decays or "its slowest eigenvalue decays"
    return f" ({decays} at {figure(rate)} 1/s)" if rate > 0 else ""


def _stuck(e: Evaluation) -> bool:
    """Whether what remains at the end of a run is within what friction may hold.

    A joint that slides to where it sticks comes from outside: it ends at the limit or just beyond.
    """
    f = e.friction
    if f is None or f.sticking_offset is None or f.weak or not f.holds or e.residual is None:
        return False
    return e.residual.tip_error_end <= f.sticking_offset * (1 + _OUTSIDE)


def rings_words(e: Evaluation) -> str:
    """Say how the links ring while friction holds the joints; empty where that soon decays.

    Empty also where it grows, so that friction does not hold them.
    """
    f = e.friction
    if f is None or not f.held_frequency or not f.holds or (f.held_damping_ratio or 0.0) >= _RINGS:
        return ""
    ratio = f.held_damping_ratio or 0.0
    damped = f"with a damping ratio of {percent(ratio)}" if abs(ratio) > _UNDAMPED else "undamped"
    return f"the arm goes on vibrating at {figure(f.held_frequency)} rad/s, {damped}"


def _stays_off(e: Evaluation) -> bool:
    """Whether the tip rests off its reference by as much as remains at the end of the run."""
    if e.residual is None or e.rest is None or not off_reference(e):
        return False
    left = e.residual.tip_error_end
    return abs(e.rest.tip_offset - left) <= _ALIKE * left


def _best_without_rest(best: Evaluation) -> str:
    """Say who follows best where no design comes to rest."""
    error = length(best.tracking.tip_error_rms) if best.tracking else "-"
    return (
        f"Residual errors were not judged: {best.no_rest}. Best during the motion: {best.name} "
        f"with a tip error of {error} rms{_but(best)}."
    )


def _but(e: Evaluation) -> str:
    """Say in the same sentence where it rests off its reference, and what limits its run."""
    said = [*off_reference(e), *_undriven(e), *_at_limits(e), *_beyond_limits(e)]
    return f", but {listed(said)}" if said else ""


def off_reference(e: Evaluation) -> list[str]:
    """Say how far tip and joints rest from their reference, unless that is next to nothing."""
    rest = e.rest
    if rest is None or e.no_rest or not rest.exists or rest.tip_offset <= _NEAR * e.settle_within:
        return []
    sizes = [
        f"joint{k + 1} {length(x) if k in rest.sliding else angle(x)}"
        for k, x in enumerate(rest.offset)
    ]
    held = e.friction is not None and e.friction.sticking_offset is not None
    rests = "would come to rest without dry friction" if held else "comes to rest"
    return [f"its tip {rests} {length(rest.tip_offset)} from its reference ({listed(sizes)})"]


def _undriven(e: Evaluation) -> list[str]:
    """Say which joints have errors and no torque at all, as where it is rounded to zero."""
    if e.effort is None or e.tracking is None:
        return []
    errors, peaks = e.tracking.joint_error_max, e.effort.peak
    idle = [f"joint{k + 1}" for k in np.flatnonzero((peaks == 0) & (errors > _BEYOND))]
    return [f"in its run {listed(idle)} receives no torque"] if idle else []


def _at_limits(e: Evaluation) -> list[str]:
    """Say how long a run is at torque limits, which linear margins do not cover."""
    if e.effort is None or not e.saturates:
        return []
    units = e.effort.units or ("N m",) * len(e.effort.saturated_seconds)
    spent = [
        f"{seconds:.3g} s at the {limit_name(units[k])} of joint{k + 1}"
        for k, seconds in enumerate(e.effort.saturated_seconds)
        if seconds > 0
    ]
    return [f"its run spends {listed(spent)}, which eigenvalues and margins do not cover"]


def _beyond_limits(e: Evaluation) -> list[str]:
    """Say how far a run takes joints beyond the limits of their positions."""
    positions = e.positions
    said = excess_words(positions.excess, positions.sliding) if positions else ""
    return [f"its run {said}"] if said else []


def excess_words(excess: Sequence[float] | Array, sliding: Sequence[int]) -> str:
    """Say which position limits a run exceeds, and by how much; "" where it exceeds none."""
    beyond = [
        f"the position limit of joint{j + 1} by {length(x) if j in sliding else angle(x)}"
        for j, x in enumerate(excess)
        if x > _BEYOND
    ]
    return f"exceeds {listed(beyond)}, where no stop is modelled" if beyond else ""


def _next(ranked: Sequence[Evaluation]) -> list[str]:
    if len(ranked) < 2:
        return []
    best, second = ranked[:2]
    if second.residual is not None:
        error = length(second.residual.tip_error_max)
        unlike = f"{_unlike(second, best)}{_takes_off(second, best)}"
        return [f"Second: {second.name} with {error}{unlike}{_but(second)}."]
    if best.residual is not None or second.tracking is None:
        return []
    return [f"Second: {second.name} with {length(second.tracking.tip_error_rms)}{_but(second)}."]


def _unlike(second: Evaluation, best: Evaluation) -> str:
    """Say that the second settles well before the first, as time does not rank, or never does."""
    times = [e.residual.settling_time if e.residual else None for e in (second, best)]
    if times[0] is None:
        return "" if times[1] is None else ", not settled at the end of its run"
    if times[1] is None or times[0] >= _SOONER * times[1]:
        return ""
    return f", settling sooner, within {times[0]:.3g} s"


def _takes_off(second: Evaluation, best: Evaluation) -> str:
    """Say that the second has integral action where friction may hold the first off its target."""
    held = any(reason.code == "sticks" for reason in find_reasons(best))
    f = second.friction
    if not held or f is None or not f.integral or f.sticking_offset is not None or f.hunts:
        return ""
    return ", whose integral action removes the offset that friction holds"


def _not_alike(comparison: Comparison) -> Iterator[str]:
    """Warn where designs do not follow the same motion, or their runs do not last as long."""
    if len(comparison.motions) > 1:
        groups = "; ".join(", ".join(names) for names in comparison.motions)
        yield (
            f"Warning: the designs follow {len(comparison.motions)} different motions ({groups}): "
            "errors, settling times and torques do not compare across these, nor does the ranking."
        )
    if len(comparison.run_lengths) > 1:
        lengths = [f"{T:.6g} s ({', '.join(names)})" for T, names in comparison.run_lengths]
        yield (
            f"The runs last {listed(lengths)}: slow errors appear only in the longer runs; "
            "energies and rms torques are not comparable."
        )


def warnings_of(e: Evaluation) -> list[str]:
    """List what speaks against a design although it ranks, in phrases."""
    return [reason_words(reason) for reason in find_reasons(e)]


def reason_words(reason: Reason) -> str:
    """Write a reason as a phrase."""
    return _WORDS[reason.code](reason.facts)


def _thin_margins(facts: Mapping[str, Any]) -> str:
    """Name every margin that is thin, and the joint that has least of it."""
    thin = _thin_by(facts, "joint", lambda joint: f"joint{joint + 1}")
    if "common_delay_seconds" in facts:
        delay = 1e3 * facts["common_delay_seconds"]["value"]
        thin.append(f"all joints together: {delay:.3g} ms of delay")
    if "disk" in facts:
        thin.append(f"disk {facts['disk']['value']:.3g}")
    return f"its margins are thin ({'; '.join(thin)})"


def _thin_sensor_margins(facts: Mapping[str, Any]) -> str:
    """Name every margin at the sensors that is thin, and the reading that has least of it."""
    thin = _thin_by(facts, "reading", reading_name)
    if "disk" in facts:
        thin.append(f"disk of all readings {facts['disk']['value']:.3g}")
    return f"its margins at the sensors are thin ({'; '.join(thin)})"


def _thin_by(facts: Mapping[str, Any], channel: str, name: Callable[[Any], str]) -> list[str]:
    """Write the thin margins of single channels, by channel."""
    by_channel: dict[Any, list[str]] = {}
    for key, (unit, words) in _MARGINS.items():
        if key in facts:
            size = f"{unit * facts[key]['value']:.3g} {words}"
            by_channel.setdefault(facts[key][channel], []).append(size)
    return [f"{name(one)}: {', '.join(by_channel[one])}" for one in sorted(by_channel)]


def _stiffness(facts: Mapping[str, Any]) -> str:
    """Say how little overestimate is tolerated, and where."""
    tolerated = facts["tolerated"]
    size = f"only {percent(tolerated)}" if tolerated > _NOTHING else "no"
    where = (
        "at the worst pose of the motion, held still" if facts["moving"] else "at the final pose"
    )
    how = "" if facts["proven"] else " (by continuation, not proven)"
    moving = ""
    if "growth" in facts:
        moving = f", and {growth_words(facts['error'], facts['growth'], facts['duration'])}"
    return f"{size} stiffness overestimate is tolerated {where}{how}{moving}"


def _not_computed(facts: Mapping[str, Any]) -> str:
    names = [str(_METRICS.get(metric, metric)) for metric in facts["metrics"]]
    return f"not computed: {listed(names)} ({facts['why']})"


def _bounds(facts: Mapping[str, Any]) -> str:
    """Say up to which amplitude friction bounds the vibrations of an unstable loop."""
    where = "its joints" if facts["joint"] is None else f"joint{facts['joint'] + 1}"
    size = _SIZES[facts["sliding"]]
    smaller = ""
    if facts["smaller"]:
        smaller = f", smaller ones to about {size(facts['smaller'])} at most"
    return (
        f"friction of {where} keeps vibrations below about {size(facts['threshold'])} (at "
        f"{figure(facts['frequency'])} rad/s) bounded; larger ones grow without limit{smaller} "
        "(describing function)"
    )


def _vibrates(facts: Mapping[str, Any]) -> str:
    """Say from which to which amplitude friction lets vibrations grow."""
    if facts["amplitude"] == np.inf:
        return _bounds(facts)
    size = _SIZES[facts["sliding"]]
    least = facts["threshold"]
    which = f"vibrations larger than about {size(least)}" if least else "small vibrations"
    where = "its joints" if facts["joint"] is None else f"joint{facts['joint'] + 1}"
    if facts["stuck_joint"] is not None:
        where += f", while joint{facts['stuck_joint'] + 1} is stuck,"
    smaller = f", smaller ones to about {size(facts['smaller'])}" if facts["smaller"] else ""
    largest = size(facts["amplitude"])
    return (
        f"friction of {where} lets {which} grow to an amplitude of about {largest} at "
        f"{figure(facts['frequency'])} rad/s{smaller} (describing function)"
    )


def _dry_joints(facts: Mapping[str, Any], pair: str) -> list[str]:
    """Name the joints of a reason; `pair` says what two of them do."""
    named = [f"joint{joint + 1}" for joint in facts["joints"]]
    named += ["all joints together"] if facts["together"] else []
    pairs = sorted(facts["pairs"])
    named += [pair.format(f"joint{one + 1}", f"joint{other + 1}") for one, other in pairs]
    return named


def _sticks(facts: Mapping[str, Any]) -> str:
    """Say how far off friction may hold the tip, or why that has no limit."""
    creeps = " (in its run friction creeps and does not hold it)" if facts["creeps"] else ""
    if weak := [f"joint{joint + 1}" for joint in facts["joints"]]:
        return (
            f"the actuator{'s' if len(weak) > 1 else ''} of {listed(weak)} cannot overcome weight "
            "and static friction together at the final pose: friction may hold the tip at any "
            f"distance from its reference{creeps}"
        )
    if facts["offset"] == np.inf:
        return "nothing but friction holds its joints"
    return f"friction may hold its tip up to {length(facts['offset'])} from its reference{creeps}"


def _spills_at_pose(facts: Mapping[str, Any]) -> str:
    at = f"at t = {facts['t']:.3g} s a disturbance grows at {figure(facts['rate'])} 1/s"
    if len(facts["orders"]) > 1:
        at = f"worst on {facts['worst_order']}, where {at}"
    on = f"{_orders(facts)} (spillover)"
    return f"held still at poses of the motion it is unstable on {on}, {at}"


def _orders(facts: Mapping[str, Any]) -> str:
    """Name models of the arm by their orders."""
    orders, kind = [str(order) for order in facts["orders"]], facts["kind"]
    one = kind.removesuffix("s") if orders == ["1"] else kind
    return f"{'models' if len(orders) > 1 else 'a model'} of {listed(orders)} {one} per link"


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "open-loop": lambda _: "it is an open loop: nothing brings the joints back after a disturbance",
    "unstable": lambda facts: (
        f"it is unstable at the final pose: a disturbance grows at {figure(facts['rate'])} 1/s"
    ),
    "marginal": lambda _: (
        "at the final pose it is only marginally stable: a disturbance does not decay"
    ),
    "undamped": lambda facts: (
        f"nearly undamped: the smallest damping ratio is {percent(facts['damping_ratio'])}"
    ),
    "no-rest-at-poses": lambda facts: (
        f"held still at {facts['count']} of {facts['of']} poses of the motion it has no "
        "equilibrium at its reference"
    ),
    "unstable-at-pose": lambda facts: (
        f"held still at a pose of the motion (t = {facts['t']:.3g} s) it is unstable, a "
        f"disturbance grows at {figure(facts['rate'])} 1/s"
    ),
    "spillover": lambda facts: f"it is unstable on {_orders(facts)} (spillover)",
    "spillover-at-pose": _spills_at_pose,
    "no-rest-on-finer-truth": lambda facts: f"no equilibrium at its reference on {_orders(facts)}",
    "thin-margins": _thin_margins,
    "thin-sensor-margins": _thin_sensor_margins,
    "delay-is-upper-bound": lambda _: (
        "its delay margins are upper bounds: a mode is so fast compared with the sampling period, "
        "or the margin so many samples, that smaller unstable delays may have been missed"
    ),
    "stiffness": _stiffness,
    "friction-vibrates": _vibrates,
    "friction-stuck": lambda facts: (
        "it is unstable while friction holds "
        + " or ".join(_dry_joints(facts, "{} and {} at once"))
    ),
    "friction-slides": lambda facts: (
        f"slow sliding of {listed(_dry_joints(facts, '{} (with {} stuck)'))} is unstable "
        "(stick-slip): friction falls with speed by more than the loop damps"
    ),
    "hunts": lambda _: (
        "it may hunt: integral action can break a joint away from its static friction again and "
        "again, as friction falls with speed by more than the loop damps; a long run shows whether "
        "it does"
    ),
    "sticks": _sticks,
    "not-computed": _not_computed,
}
