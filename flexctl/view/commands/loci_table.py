"""The tables of `flexctl track` in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from flexctl.loci import Branch, EigenvalueLoci, LocusEvent, MatchedBranch
from flexctl.loop import in_words
from flexctl.view.commands.loci_beside import side_by_side
from flexctl.view.tables import literal, number, plain_table
from flexctl.view.words.loci import (
    limit_name,
    lost_words,
    parameter_words,
    stability_words,
    value_words,
)
from flexctl.view.words.numbers import basis_words, beside_words

_N_ROWS = 16
_N_PLACES = 8
_STILL = 1e-6  # share of itself that an eigenvalue moves by round-off


def tracking_table(
    moving: EigenvalueLoci,
    rest: EigenvalueLoci | None,
    answer: dict[str, Any],
    matches: Sequence[Sequence[MatchedBranch]] = (),
) -> RenderableType:
    """Put the slow branches, other discretisations and where branches meet under each other."""
    made = f"{answer['design']} designed on {basis_words(answer['basis'])}"
    title = f"{answer['model']} on {basis_words(answer['truth'])} per link and plane, {made}"
    parts: list[RenderableType] = [_branches(moving, title)]
    if rest and rest is not moving:
        parts.append(_branches(rest, "The same frozen at rest"))
    for tracked, of in ((moving, ""), (rest, " at rest")):
        if tracked and not (of and rest is moving):
            parts += _limits(tracked, of, answer) + _places(tracked, of)
    names = [beside_words(one) for one in answer["beside"]]
    parts += [_beside(name, own) for name, own in zip(names, matches, strict=True)]
    notes = [literal(f"- {sentence}", "dim") for sentence in answer["assumptions"]]
    said = [side_by_side(name, own) for name, own in zip(names, matches, strict=True)]
    words = (_verdict(moving, rest, answer), *lost_words(answer), *said)
    verdicts = [literal(sentence, "bold") for sentence in words]
    return Group(*parts, *notes, *verdicts)


def _beside(name: str, matches: Sequence[MatchedBranch]) -> Table:
    """Differences of the imaginary parts of another discretisation; a dash where none matches."""
    columns = ("branch", "% at the start", "at the end", "lowest", "highest", "lowest MAC")
    title = f"Imaginary parts on {name}, compared with these"
    table = plain_table(title, *columns, numeric=(1, 2, 3, 4, 5))
    for match in matches[:_N_ROWS]:
        off = 100 * (match.ratio - 1)
        alike = off[np.isfinite(off)] if np.isfinite(off).any() else np.array([np.nan])
        numbers = (off[0], off[-1], alike.min(), alike.max(), match.likeness.min())
        row = [f"{x:.2g}" if np.isfinite(x) else "-" for x in numbers]
        table.add_row(literal(match.branch.label), *row)
    if len(matches) > _N_ROWS:
        table.add_row(f"{len(matches) - _N_ROWS} faster ones (--json)")
    return table


def _branches(tracked: EigenvalueLoci, title: str) -> Table:
    columns = ("branch", "rad/s", "to", "damping", "to", "least", f"at {tracked.parameter}")
    table = plain_table(title, *columns, numeric=(1, 2, 3, 4, 5, 6))
    rows = [_row(tracked, branch) for branch in tracked.upper]
    alike = Counter(rows)
    for row, count in list(alike.items())[:_N_ROWS]:
        label = f"{count} x {row[0]}" if count > 1 else row[0]
        table.add_row(literal(label), *row[1:])
    if len(alike) > _N_ROWS:
        table.add_row(f"{len(alike) - _N_ROWS} faster ones (--json, --out)")
    return table


def _row(tracked: EigenvalueLoci, branch: Branch) -> tuple[str, ...]:
    least = int(np.argmin(branch.damping))
    ends = (branch.frequency[0], branch.frequency[-1], branch.damping[0], branch.damping[-1])
    moves = np.ptp(branch.damping) > _STILL
    numbers = (*ends, branch.damping[least], tracked.s[least] if moves else np.nan)
    return branch.label, *(number(float(x)) for x in numbers)


def _limits(tracked: EigenvalueLoci, of: str, answer: Mapping[str, Any]) -> list[RenderableType]:
    """Where branches cross the imaginary axis, and whether the whole loop does."""
    if not tracked.crossings:
        return []
    at = "t [s]" if tracked.parameter == "t" else parameter_words(answer)
    columns = (f"at {at}", "unstable", "what", "of the loop")
    table = plain_table(f"Stability limits{of}", *columns, numeric=(0,))
    for one in tracked.crossings[:_N_PLACES]:
        name = literal(limit_name(one, tracked))
        table.add_row(f"{one.s:.6g}", one.unstable, name, "yes" if one.whole else "no")
    if len(tracked.crossings) > _N_PLACES:
        table.add_row(f"{len(tracked.crossings) - _N_PLACES} more")
    return [table]


def _places(tracked: EigenvalueLoci, of: str) -> list[RenderableType]:
    if not tracked.events:
        return []
    columns = ("what", f"at {tracked.parameter}", "branches", "at rad/s")
    table = plain_table(f"Where branches meet{of}", *columns, numeric=(1, 3))
    for place in _worth(tracked.events)[:_N_PLACES]:
        names = dict.fromkeys(tracked.branches[k].label for k in place.branches)
        at = number((place.start + place.end) / 2)
        table.add_row(place.kind, at, literal(", ".join(names)), number(abs(place.value)))
    left = len(tracked.events) - _N_PLACES
    if left > 0:
        table.add_row(f"{left} more")
    return [table]


def _worth(places: Sequence[LocusEvent]) -> list[LocusEvent]:
    """Unsafe ones first."""
    return sorted(places, key=lambda place: (place.kind != "unsafe", place.start))


def _verdict(moving: EigenvalueLoci, rest: EigenvalueLoci | None, answer: Mapping[str, Any]) -> str:
    if all(np.ptp(one.values) <= _STILL * one.frequency.max() for one in moving.branches):
        return f"No eigenvalue depends on {moving.parameter} there."
    unsafe = [*moving.unsafe, *(rest.unsafe if rest and rest is not moving else ())]
    grows = max(moving.branches, key=lambda one: float(one.values.real.max()))
    k = int(grows.values.real.argmax())
    doubts = [_doubt(place, moving) for place in moving.unsafe]
    doubts += [_doubt(place, rest) for place in rest.unsafe] if rest and rest is not moving else []
    sure = _doubts(doubts, unsafe[0].why) if unsafe else "All branches are joined with certainty."
    rate = float(grows.values.real[k])
    at = f"{moving.parameter} = {value_words(float(moving.s[k]), answer)}"
    name = in_words(grows.label)
    state = "Fastest growth" if rate > 0 else "Slowest decay"
    return f"{stability_words(moving, answer)} {state}: {name}, {abs(rate):.3g} 1/s at {at}. {sure}"


def _doubt(place: LocusEvent, tracked: EigenvalueLoci) -> str:
    labels = dict.fromkeys(tracked.branches[k].label for k in place.branches)
    return f"{tracked.parameter} = {place.start:.6g} ({', '.join(labels)})"


def _doubts(places: Sequence[str], why: str) -> str:
    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
    return (
        "Branches could not be joined with certainty at "
        f"{', '.join(places[:4])}{more}: {why}; all others are."
    )
