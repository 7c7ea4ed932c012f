"""Where branches meet, or cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.loci.spectrum import match_by_value
from flexctl.loci.steps import Meeting, Step, StepMatch

_JUMP = 1e-6  # share of itself that no eigenvalue moves within the least step
_SMALL = 1e-6  # of the largest eigenvalue: below, one is as good as none in this


@dataclass(frozen=True, kw_only=True)
class LocusEvent:
    """Where branches meet, or cannot be told apart.

    Attributes
    ----------
    kind
        "crossing" of branches that are not coupled, "break-in" of a pair that becomes two real
        ones, "break-away" of two real ones that become a pair, "touching" of a pair that meets
        itself on the real axis and remains a pair, or "unsafe".
    start, end
        Interval of the parameter that holds it; where the meeting is known, a point.
    branches
        Indices of the branches.
    value
        The eigenvalue there.
    why
        Of an unsafe event: why it is.
    """

    kind: str
    start: float
    end: float
    branches: tuple[int, ...]
    value: complex
    why: str = ""


def events_of(step: Step, match: StepMatch, columns: Array) -> list[LocusEvent]:
    """Find the events in a step, `columns` (n,) being those of the branches before it."""
    branch = np.argsort(columns)  # of every column before the step
    events = [_met(meeting, branch) for meeting in match.meetings]
    return events if match.safe else [*events, _doubt(step, match, branch)]


def _doubt(step: Step, match: StepMatch, branch: Array) -> LocusEvent:
    """Event of a step that could not be joined: what was in doubt there, and what jumps.

    Where it is one pair beside the real axis and nothing else, the pair touches the axis and
    remains one.
    """
    first, second = step.before, step.after
    after = second.values[match_by_value(first, second)]
    jumps = np.abs(after - first.values) > _JUMP * np.abs(first.values)
    columns = sorted({*match.doubtful, *np.flatnonzero(jumps).tolist()})
    mirrored = len(columns) == 2 and columns[0] + first.n_pairs == columns[1] >= first.n_real
    one_pair = mirrored and first.n_real == second.n_real <= columns[0]
    touches = one_pair and _at_axis(first.values, columns[0]) and _at_axis(after, columns[0])
    return LocusEvent(
        kind="touching" if touches else "unsafe",
        start=first.s,
        end=second.s,
        branches=tuple(sorted(int(branch[c]) for c in columns)),
        value=complex(first.values[columns[0]]),
        why="" if touches else "even the smallest step does not distinguish them",
    )


def _at_axis(values: ComplexArray, column: int) -> bool:
    """Whether an eigenvalue is as near the real axis as the least step takes it."""
    size = max(abs(values[column]), _SMALL * np.abs(values).max())
    return bool(abs(values[column].imag) <= _JUMP * size)


def _met(meeting: Meeting, branch: Array) -> LocusEvent:
    narrow = meeting.kind == "narrow"
    return LocusEvent(
        kind="unsafe" if narrow else meeting.kind,
        start=meeting.start,
        end=meeting.end,
        branches=tuple(sorted(int(branch[c]) for c in meeting.columns)),
        value=meeting.value,
        why="they veer so closely that they cannot be distinguished from a crossing"
        if narrow
        else "",
    )


def merge_events(events: Sequence[LocusEvent], near: float) -> tuple[LocusEvent, ...]:
    """Sort events; merge unsafe ones no more than `near` apart if one has the other's branches."""
    merged: list[LocusEvent] = []
    for event in sorted(events, key=lambda one: one.start):
        before = next((k for k, one in enumerate(merged) if _continues(one, event, near)), None)
        if before is None:
            merged.append(event)
        else:
            branches = max(merged[before].branches, event.branches, key=len)
            end = max(merged[before].end, event.end)
            merged[before] = replace(merged[before], end=end, branches=branches)
    return tuple(merged)


def _continues(one: LocusEvent, other: LocusEvent, near: float) -> bool:
    """Whether an event that is no point goes on as a later one."""
    branches = set(one.branches), set(other.branches)
    same = one.why == other.why and (branches[0] <= branches[1] or branches[1] <= branches[0])
    return bool(other.why) and same and other.start - one.end <= near
