"""What is said of a stiffness that was given: whether and how much the loop tolerates of it."""

from __future__ import annotations

import math

from flexctl.loop import in_words
from flexctl.robustness import AssumedAtPose, AssumedStiffness
from flexctl.view.words.limits import figure, limit_words, percent


def given_words(assumed: AssumedStiffness, where: str) -> str:
    """Say in a sentence or two what an engineer can act on; `where` names the judged pose."""
    said = f"The stiffness given ({_largest(assumed)}) {_tolerated(assumed, where)}"
    return f"{said}; {_lemma(assumed)}. "


def given_row(assumed: AssumedStiffness, where: str) -> tuple[str, str, tuple[str, str, str]]:
    """Write a line of the table: label, what is tolerated, and what limits it."""
    at = assumed.worst
    label = f"given stiffness, {_place(at, where)}"
    loss = at.interval.upper if at.interval else None
    swing = f"{loss.frequency:.4g}" if loss and loss.frequency else ""
    lost = (loss.kind, in_words(loss.mode), swing) if loss else ("-", in_words(at.mode), "")
    return label, f"{'yes' if at.stable else 'no'}, {_share(at)}", lost


def _largest(assumed: AssumedStiffness) -> str:
    name, error = max(assumed.errors.items(), key=lambda item: abs(item[1]))
    most = f"{name} {100 * error:+.3g} %"
    count = len(assumed.errors)
    return f"{most}, the largest of {count} errors" if count > 1 else most


def _tolerated(assumed: AssumedStiffness, where: str) -> str:
    at, lost = assumed.worst, [at for at in assumed.at if not at.stable]
    if not lost:
        if len(assumed.at) == 1:
            return f"is tolerated {_place(at, where)}, and {_share(at)} there"
        return f"is tolerated at all {len(assumed.at)} poses, and {_share(at)} {_place(at, where)}"
    grows = f"there {in_words(at.mode)} grows at {figure(at.abscissa)} 1/s"
    if math.isinf(at.abscissa):  # no equilibrium is left about which something could grow
        grows = at.why
    loss = (
        f" (limit: {limit_words(at.interval.upper)})" if at.interval and at.interval.upper else ""
    )
    place = _place(at, where)
    if len(assumed.at) > 1:
        place = f"at {len(lost)} of {len(assumed.at)} poses, worst {place}"
    return f"destabilises the loop {place}: {grows}; {_share(at)} is tolerated there{loss}"


def _place(at: AssumedAtPose, where: str) -> str:
    """Say at which pose; `where` is the judged one, which has no time."""
    return where if at.t is None else f"at t = {at.t:.3g} s"


def _share(at: AssumedAtPose) -> str:
    """Say how much of the error is tolerated, or what is not where all of it is."""
    if at.interval is None:
        return "the loop without it is unstable" if at.stable else "none of that error"
    if at.interval.upper is None:
        return "any multiple of that error that leaves the stiffness positive"
    interval = at.interval.alpha_upper
    if at.stable and interval < 1:
        return f"of smaller errors only those up to {percent(interval)} of it"
    return (
        f"{figure(interval)} times that error"
        if interval >= 1
        else f"{percent(interval)} of that error"
    )


def _lemma(assumed: AssumedStiffness) -> str:
    star = assumed.lemma.alpha_star
    verb = "allows it" if star > 1 else f"allows {percent(star)} of it"
    return f"the lemma alone {verb}"
