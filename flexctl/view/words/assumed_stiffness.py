"""What is said of a stiffness that was given: whether and how much the loop tolerates of it."""

from __future__ import annotations

import math

from flexctl.loop import in_words
from flexctl.robustness import GivenAt, GivenError
from flexctl.view.words.limits import figure, loss_words, percent


def given_words(found: GivenError, where: str) -> str:
    """Say in a sentence or two what an engineer can act on; `where` names the judged pose."""
    said = f"The stiffness given ({_largest(found)}) {_borne(found, where)}"
    return f"{said}; {_lemma(found)}. "


def given_row(found: GivenError, where: str) -> tuple[str, str, tuple[str, str, str]]:
    """Write a line of the table: label, what is tolerated, and what limits it."""
    at = found.worst
    label = f"given stiffness, at {_place(at, where)}"
    loss = at.share.upper if at.share else None
    swing = f"{loss.frequency:.4g}" if loss and loss.frequency else ""
    lost = (loss.kind, in_words(loss.mode), swing) if loss else ("-", in_words(at.mode), "")
    return label, f"{'yes' if at.stable else 'no'}, {_share(at)}", lost


def _largest(found: GivenError) -> str:
    name, error = max(found.errors.items(), key=lambda item: abs(item[1]))
    most = f"{name} {100 * error:+.3g} %"
    count = len(found.errors)
    return f"{most}, the largest of {count} errors" if count > 1 else most


def _borne(found: GivenError, where: str) -> str:
    at, lost = found.worst, [at for at in found.at if not at.stable]
    if not lost:
        if len(found.at) == 1:
            return f"is tolerated at {_place(at, where)}, and {_share(at)} there"
        return f"is tolerated at all {len(found.at)} poses, and {_share(at)} at {_place(at, where)}"
    grows = f"there {in_words(at.mode)} grows at {figure(at.abscissa)} 1/s"
    if math.isinf(at.abscissa):  # no equilibrium is left about which something could grow
        grows = at.why
    loss = f" (limit: {loss_words(at.share.upper)})" if at.share and at.share.upper else ""
    count = f"{len(lost)} of {len(found.at)} poses, " if len(found.at) > 1 else ""
    worst = "worst at" if count else ""
    place = f"at {count}{worst} {_place(at, where)}".replace("  ", " ")
    return f"destabilises the loop {place}: {grows}; {_share(at)} is tolerated there{loss}"


def _place(at: GivenAt, where: str) -> str:
    return where.removeprefix("at ") if at.t is None else f"t = {at.t:.3g} s"


def _share(at: GivenAt) -> str:
    """Say how much of the error is tolerated, or what is not where all of it is."""
    if at.share is None:
        return "the loop without it is unstable" if at.stable else "none of that error"
    if at.share.upper is None:
        return "any multiple of that error that leaves the stiffness positive"
    share = at.share.alpha_upper
    if at.stable and share < 1:
        return f"of smaller errors only those up to {percent(share)} of it"
    return f"{figure(share)} times that error" if share >= 1 else f"{percent(share)} of that error"


def _lemma(found: GivenError) -> str:
    star = found.lemma.alpha_star
    verb = "allows it" if star > 1 else f"allows {percent(star)} of it"
    return f"the lemma alone {verb}"
