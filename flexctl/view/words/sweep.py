"""What a sweep found, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flexctl.plant import ShapeChange
from flexctl.search import CONFIDENCE, Share, Summaries, Sweep, Tuning, summarise
from flexctl.view.words.numbers import counted


def sweep_words(found: Sweep) -> str:
    """Say how many points are stable, and what is missing."""
    return " ".join(sweep_sentences(found, summarise(found)))


def sweep_sentences(found: Sweep, summaries: Sequence[Summaries]) -> Iterator[str]:
    """Write a sentence for every gain set, then what is not judged."""

    def told(one: Share) -> str:
        what = " evaluated points" if found.refused.any() else " points"
        return share_words(one, independent=found.independent, what=what)

    for one in summaries:
        if one.not_evaluated:
            yield _not_evaluated(found, one)
        if not one.judged:
            continue
        yield f"At rest at the end of its motion {one.name} is stable at {told(one.stable)}."
        if one.settled:
            yield f"{one.name} settles at {told(one.settled)}."
        if one.within:
            limits = ", ".join(map(str, found.limits))
            yield f"{one.name} is stable and keeps {limits} at {told(one.within)}."
        if one.failed.count:
            yield f"{one.name} has no full verdict at {told(one.failed)}."
            yield f"The first of these is {_first(found, one, refused=False)}."
    yield from shape_sentences(found)
    if found.interrupted:
        left = found.n_points - int(found.done.sum())
        points, verb = counted(found.n_points, "point"), "is" if left == 1 else "are"
        yield f"Interrupted: {left} of {points} {verb} not judged."
    if found.others:
        yield (
            f"The ledger also holds {counted(found.others, 'point')} of another model, design, "
            "setting or version, not used here."
        )


def shape_sentences(found: Sweep | Tuning) -> Iterator[str]:
    """Say how much kept mode shapes matter, where they are kept."""
    if found.shape_error:
        error, key, value = found.shape_error
        yield (
            "Mode shapes are those of the nominal arm. Made anew, they would change the "
            f"frequencies of its clamped lines by {_change(error)} at {key} = {value:.4g}, other "
            "metrics perhaps by more; --shapes rebuilt makes them anew."
        )


def key_words(found: Sweep, k: int) -> str:
    """Name a number that varies with its unit, for the label of an axis."""
    key, unit = found.keys[k], found.units[k]
    if found.scaled[k]:
        return f"{key} / nominal [-]"
    return f"{key} [{unit}]" if unit else key


def metric_words(found: Sweep, key: str) -> str:
    """Name a metric with its unit, for the label of an axis."""
    unit = found.metric_units[key]
    return f"{key} [{unit}]" if unit else key


def failed_words(found: Sweep, k: int) -> str:
    """Say why a point has no full verdict, or was not evaluated; "" where it has one."""
    why = found.failed.get(k, "")
    return f"not evaluated: {why}" if found.refused[k] else why


def _not_evaluated(found: Sweep, one: Summaries) -> str:
    """Say at how many points a gain set is not evaluated, and why at the first of them."""
    of = one.judged + one.not_evaluated
    points = f"{one.not_evaluated} of {counted(of, 'point')}"
    first = "the first of them " if one.not_evaluated > 1 else ""
    return (
        f"{one.name} is not evaluated at {points}, left out of all shares and quantiles: "
        f"{first}{_first(found, one, refused=True)}."
    )


def _first(found: Sweep, one: Summaries, *, refused: bool) -> str:
    """Name the first point of a gain set without a full verdict, and say why.

    Of those that are `refused`, or of the others.
    """
    own = found.designs.index(one.name)
    of_set = (k for k in sorted(found.failed) if found.design[k] == own)
    point = next(k for k in of_set if found.refused[k] == refused)
    numbers = zip(found.keys, found.values[point].tolist(), strict=True)
    at = ", ".join(f"{key} = {value:.4g}" for key, value in numbers)
    return f"at {at}: {found.failed[point].rstrip('.')}"


def _change(error: ShapeChange) -> str:
    if not np.isfinite(error.change):
        return "more than can be said"
    return f"up to {100 * abs(error.change):.2g} %"


def share_words(one: Share, *, independent: bool, what: str = " points") -> str:
    """Write a share; of samples that were drawn independently with its interval of confidence."""
    what = what.removesuffix("s") if one.of == 1 else what
    share = f"{one.count} of {one.of}{what} ({100 * one.value:.3g} %"
    if independent:
        interval = f"{100 * one.low:.3g} to {100 * one.high:.3g} %"
        share += f", {100 * CONFIDENCE:.0f} % confidence interval {interval}"
    return f"{share})"
