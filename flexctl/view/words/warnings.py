"""What speaks against a design that ranks first, each in a phrase after its name and a colon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flexctl.robustness import NO_GROWTH
from flexctl.verdict import Evaluation, Reason, find_reasons
from flexctl.view.words.numbers import listed, share, times

_NOTHING = 1e-6  # of the stiffness: the tolerance of a loop with an undamped mode
_METRICS = {  # others are called as they are
    "spillover": "stability on other truth orders",
    "margins": "gain, phase, delay and disk margins",
    "margins.min_sampling_rate": "the smallest sampling rate",
    "stiffness": "the stiffness margin",
    "stiffness.exact": "the exact stiffness margin",
    "stiffness.path": "the stiffness margin along the motion",
}
_MARGINS = {  # scale, unit
    "gain_db": (1.0, "dB"),
    "phase_deg": (1.0, "deg"),
    "delay_seconds": (1e3, "ms of delay"),
}


def warnings_of(e: Evaluation) -> list[str]:
    """List what speaks against a design although it ranks, in phrases."""
    return [reason_words(reason) for reason in find_reasons(e)]


def reason_words(reason: Reason) -> str:
    """Write a reason as a phrase."""
    return _WORDS[reason.code](reason.facts)


def _thin_margins(facts: Mapping[str, Any]) -> str:
    """Name every margin that is thin, and the joint that has least of it."""
    by_joint: dict[int, list[str]] = {}
    for name, (unit, words) in _MARGINS.items():
        if name in facts:
            size = f"{unit * facts[name]['value']:.3g} {words}"
            by_joint.setdefault(facts[name]["joint"], []).append(size)
    thin = [f"joint{joint + 1}: {', '.join(by_joint[joint])}" for joint in sorted(by_joint)]
    if "common_delay_seconds" in facts:
        delay = 1e3 * facts["common_delay_seconds"]["value"]
        thin.append(f"all joints together: {delay:.3g} ms of delay")
    if "disk" in facts:
        thin.append(f"disk {facts['disk']['value']:.3g}")
    return f"its margins are thin ({'; '.join(thin)})"


def _stiffness(facts: Mapping[str, Any]) -> str:
    """Say how little overestimate is tolerated, and where."""
    tolerated = facts["tolerated"]
    size = f"only {share(tolerated)}" if tolerated > _NOTHING else "no"
    where = (
        "at the worst pose of the motion, held still" if facts["moving"] else "at the final pose"
    )
    how = "" if facts["proven"] else " (by continuation of the equilibrium, not proven)"
    return f"{size} stiffness overestimate is tolerated {where}{how}{_over_the_motion(facts)}"


def _over_the_motion(facts: Mapping[str, Any]) -> str:
    """Say what comes of an error of 10 % in the time that the motion lasts."""
    if "growth" not in facts:
        return ""
    error, time = share(facts["error"]), f"the motion of {facts['duration']:.3g} s"
    if facts["growth"] < NO_GROWTH:
        poses = f"at {error} some poses are unstable"
        return f", and {poses}, but no small disturbance grows during {time}"
    grows = f"a small disturbance grows by up to {times(facts['growth'])} during {time}"
    return f", and at {error} {grows}"


def _not_computed(facts: Mapping[str, Any]) -> str:
    names = [str(_METRICS.get(metric, metric)) for metric in facts["metrics"]]
    return f"not computed: {listed(names)} ({facts['why']})"


def _orders(facts: Mapping[str, Any]) -> str:
    return f"a truth of {listed([str(order) for order in facts['orders']])} {facts['kind']}"


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "open-loop": lambda _: "it is an open loop: nothing brings the joints back after a disturbance",
    "marginal": lambda _: (
        "at the final pose it is only marginally stable: a disturbance does not decay"
    ),
    "undamped": lambda facts: (
        f"nearly undamped: the smallest damping ratio is {share(facts['damping_ratio'])}"
    ),
    "no-rest-at-poses": lambda facts: (
        f"held still at {facts['count']} of {facts['of']} poses of the motion it has no "
        "equilibrium at its reference"
    ),
    "unstable-at-pose": lambda facts: (
        f"held still at a pose of the motion (t = {facts['t']:.3g} s) it is unstable, a "
        f"disturbance grows at {facts['rate']:.3g} 1/s"
    ),
    "spillover": lambda facts: f"spillover: unstable on {_orders(facts)}",
    "no-rest-on-finer-truth": lambda facts: f"no equilibrium at its reference on {_orders(facts)}",
    "thin-margins": _thin_margins,
    "delay-is-upper-bound": lambda _: (
        "its delay margins are upper bounds: a mode is so fast compared with the sampling period "
        "that narrow ranges of smaller unstable delays may have been missed"
    ),
    "stiffness": _stiffness,
    "not-computed": _not_computed,
}
