"""What a sweep found, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flexctl.plant import ShapeChange
from flexctl.search import Share, Summaries, Sweep, summarise


def sweep_words(found: Sweep) -> str:
    """Say how many points are stable, and what is missing."""
    return " ".join(sweep_sentences(found, summarise(found)))


def sweep_sentences(found: Sweep, summaries: Sequence[Summaries]) -> Iterator[str]:
    """Write a sentence for every gain set, then what is not judged."""
    for one in summaries:
        if one.stable:
            yield f"{one.name} is stable at {_share(one.stable)}."
        if one.failed.count:
            yield f"{one.name} has no full verdict at {_share(one.failed)}."
            yield f"The first of these is {_first(found, one)}."
        if not one.stable and not one.failed.count:
            yield f"{one.name} is judged at {one.judged} points."
    if found.shape_error:
        error, key, value = found.shape_error
        yield (
            "Modes keep the shapes of the arm in the file: shapes made anew would change the "
            f"frequencies of its clamped lines by {_change(error)} at {key} = {value:.4g}; "
            "--shapes rebuilt makes them."
        )
    if found.interrupted:
        left = found.n_points - int(found.done.sum())
        yield f"Interrupted: {left} of {found.n_points} points are not judged."
    if found.others:
        yield (
            f"The ledger has {found.others} points of a changed model, design, setting or version: "
            "these were judged anew."
        )


def _first(found: Sweep, one: Summaries) -> str:
    """Name the first point of a gain set without a full verdict, and say why."""
    own = found.designs.index(one.name)
    point = next(k for k in sorted(found.failed) if found.design[k] == own)
    numbers = zip(found.keys, found.values[point].tolist(), strict=True)
    at = ", ".join(f"{key} = {value:.4g}" for key, value in numbers)
    return f"at {at}: {found.failed[point].rstrip('.')}"


def _change(error: ShapeChange) -> str:
    if not np.isfinite(error.change):
        return "more than can be said"
    return f"up to {100 * abs(error.change):.2g} %"


def _share(one: Share) -> str:
    return (
        f"{one.count} of {one.of} points ({100 * one.value:.3g} %; of independent samples with "
        f"95 % confidence between {100 * one.low:.3g} and {100 * one.high:.3g} %)"
    )
