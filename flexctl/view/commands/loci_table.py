"""The tables of `flexctl track` in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from flexctl.loci import Branch, EigenvalueLoci, Loci, MatchedBranch
from flexctl.view.output import literal, number, plain_table
from flexctl.view.words.loci import (
    STILL,
    assumed_words,
    basis_of,
    limit_name,
    lost_words,
    parameter_words,
    verdict_words,
)
from flexctl.view.words.numbers import basis_words, percent

_LOUD = 5e-5  # of a frequency, to be called higher or lower
_N_ROWS = 16
_N_EVENTS = 8


def loci_table(
    record: EigenvalueLoci,
    others: Sequence[EigenvalueLoci] = (),
    matches: Sequence[Sequence[MatchedBranch]] = (),
) -> RenderableType:
    """Put the slow branches, other discretisations and where branches meet under each other."""
    loci, frozen = record.loci, record.frozen
    made = f"{record.design} designed on {basis_words(record.basis.described())}"
    truth = basis_words(record.truth.described())
    parts: list[RenderableType] = [
        _branches(loci, f"{record.model} on {truth} per link and plane, {made}")
    ]
    families = [(loci, "")]
    if frozen and frozen is not loci:
        parts.append(_branches(frozen, "The same frozen at rest"))
        families.append((frozen, " at rest"))
    for family, of in families:
        parts += _limits(family, of, parameter_words(record)) + _events(family, of)
    names = [basis_of(other) for other in others]
    parts += [_beside(name, own) for name, own in zip(names, matches, strict=True)]
    said = [side_by_side(name, own) for name, own in zip(names, matches, strict=True)]
    words = (verdict_words(record), *lost_words(record), *said)
    verdicts = [literal(sentence, "bold") for sentence in words]
    return Group(*parts, literal(f"- {assumed_words(record)}", "dim"), *verdicts)


def _first(rows: Sequence[tuple[str, ...]], most: int, left: str) -> list[tuple[str, ...]]:
    """Keep the first rows, and say how many there are besides."""
    more = [(f"{len(rows) - most} {left}",)] if len(rows) > most else []
    return [*rows[:most], *more]


def _beside(name: str, matches: Sequence[MatchedBranch]) -> Table:
    """Differences of the imaginary parts of another discretisation; a dash where none matches."""
    columns = ("branch", "% at the start", "at the end", "lowest", "highest", "lowest MAC")
    rows = _first([_off(match) for match in matches], _N_ROWS, "faster ones (--json)")
    title = f"Imaginary parts on {name}, compared with these"
    return plain_table(title, *columns, rows=rows, numeric=(1, 2, 3, 4, 5))


def _off(match: MatchedBranch) -> tuple[str, ...]:
    off = 100 * (match.ratio - 1)
    matched = off[np.isfinite(off)] if np.isfinite(off).any() else np.array([np.nan])
    numbers = (off[0], off[-1], matched.min(), matched.max(), match.mac.min())
    return match.branch.label, *(f"{x:.2g}" if np.isfinite(x) else "-" for x in numbers)


def _branches(loci: Loci, title: str) -> Table:
    columns = ("branch", "rad/s", "to", "damping", "to", "least", f"at {loci.parameter}")
    known = [one for one in loci.upper if np.isfinite(one.frequency).all()]  # not gone in a sample
    rows = [
        (f"{count} x {label}" if count > 1 else label, *numbers)
        for (label, *numbers), count in Counter(_row(loci, one) for one in known).items()
    ]
    rows = _first(rows, _N_ROWS, "faster ones (--json, --out)")
    return plain_table(title, *columns, rows=rows, numeric=(1, 2, 3, 4, 5, 6))


def _row(loci: Loci, branch: Branch) -> tuple[str, ...]:
    least = int(np.argmin(branch.damping))
    ends = (branch.frequency[0], branch.frequency[-1], branch.damping[0], branch.damping[-1])
    moves = np.ptp(branch.damping) > STILL
    numbers = (*ends, branch.damping[least], loci.s[least] if moves else np.nan)
    return branch.label, *(number(float(x)) for x in numbers)


def _limits(loci: Loci, of: str, parameter: str) -> list[RenderableType]:
    """Where branches cross the imaginary axis, and whether the whole loop does."""
    if not loci.crossings:
        return []
    at = "t [s]" if loci.parameter == "t" else parameter
    columns = (f"at {at}", "unstable", "what", "of the loop")
    rows = [
        (f"{one.s:.6g}", one.unstable, limit_name(one, loci), "yes" if one.whole else "no")
        for one in loci.crossings
    ]
    rows = _first(rows, _N_EVENTS, "more")
    return [plain_table(f"Stability limits{of}", *columns, rows=rows, numeric=(0,))]


def _events(loci: Loci, of: str) -> list[RenderableType]:
    """Where branches meet, what could not be joined safely first."""
    if not loci.events:
        return []
    columns = ("what", f"at {loci.parameter}", "branches", "at rad/s")
    rows = []
    for event in sorted(loci.events, key=lambda event: (event.kind != "unsafe", event.start)):
        names = ", ".join(dict.fromkeys(loci.branches[k].label for k in event.branches))
        at = number((event.start + event.end) / 2)
        rows.append((event.kind, at, names, number(abs(event.value))))
    rows = _first(rows, _N_EVENTS, "more")
    return [plain_table(f"Where branches meet{of}", *columns, rows=rows, numeric=(1, 3))]


def side_by_side(name: str, matches: Sequence[MatchedBranch]) -> str:
    """Say whether imaginary parts of another discretisation are higher or lower, and how far."""
    off = [match.ratio[match.index >= 0] - 1 for match in matches]
    every = np.concatenate([*off, np.zeros(0)])
    if not len(every):
        return f"{name}: no mode corresponds."
    low, high = float(every.min()), float(every.max())
    if max(-low, high) <= _LOUD:
        return f"{name}: imaginary parts are the same within {percent(_LOUD)}."
    if low > -_LOUD:
        return f"{name}: no imaginary part is lower, the highest by {percent(high)} higher."
    if high < _LOUD:
        return f"{name}: no imaginary part is higher, the lowest by {percent(-low)} lower."
    labels = np.repeat([match.branch.label for match in matches], [len(x) for x in off])
    least, most = labels[every.argmin()], labels[every.argmax()]
    return (
        f"{name}: imaginary parts are up to {percent(-low)} lower ({least}) and up to "
        f"{percent(high)} higher ({most}) among corresponding modes."
    )
