"""Eigenvalue loci as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

from flexctl.loci import Branch, EigenvalueLoci, Loci, MatchedBranch
from flexctl.records import plain
from flexctl.view.json import attributes
from flexctl.view.words.loci import assumed_words


def loci_json(record: EigenvalueLoci) -> dict[str, Any]:
    """Write eigenvalue loci."""
    loci, frozen = record.loci, record.frozen
    return plain(
        {
            **attributes(record, "model design"),
            "basis": record.basis.described(),
            "truth": record.truth.described() | {"settings": record.truth_set},
            **attributes(record, "parameter unit scaled"),
            "redesigned": record.varied in ("arm and law", "law"),
            **attributes(record, "design_value motion s"),
            "t": record.s if frozen else None,
            "branches": _branches(loci),
            "frozen": _branches(frozen) if frozen else [],
            "places": _events(loci),
            "frozen_places": _events(frozen) if frozen else [],
            "stability_limits": _limits(loci),
            "frozen_stability_limits": _limits(frozen) if frozen else [],
            "stable_ranges": record.stable,
            "n_matrices": loci.n_matrices,
            "unproven": loci.unproven,
            "frozen_unproven": frozen.unproven if frozen else [],
            "no_rest_from": record.no_rest_above,
            "no_rest_below": record.no_rest_below,
            "assumptions": [assumed_words(record)],
            "beside": [],
        }
    )


_OWN = ("basis", "truth", "branches", "frozen", "places", "frozen_places", "n_matrices", "unproven")


def beside_json(answer: dict[str, Any], matches: tuple[MatchedBranch, ...]) -> dict[str, Any]:
    """Write another discretisation from its own answer, and which of its branches is which."""
    return {key: answer[key] for key in _OWN} | {"alike": [_match(one) for one in matches]}


def _match(match: MatchedBranch) -> dict[str, Any]:
    """Write which eigenvalue of the other discretisation a branch is, and how far off."""
    return {
        "label": match.branch.label,
        "branch": [int(k) if k >= 0 else None for k in match.index],
        "likeness": match.mac,
        "ratio": match.ratio,
    }


def _branches(loci: Loci) -> list[dict[str, Any]]:
    return [_branch(one, dominant=k in loci.dominant) for k, one in enumerate(loci.branches)]


def _branch(branch: Branch, *, dominant: bool) -> dict[str, Any]:
    return {
        "label": branch.label,
        "re": branch.values.real,
        "im": branch.values.imag,
        **attributes(branch, "frequency damping"),
        "participation": dict(branch.participation),
        "leads": [{"from": start, "motion": motion} for start, motion in branch.leads],
        "dominant": dominant,
    }


def _limits(loci: Loci) -> list[dict[str, Any]]:
    """Write where branches cross the imaginary axis."""
    return [
        {
            "value": one.s,
            "frequency": abs(one.value.imag),
            "label": loci.branches[one.branch].label,
            "branch": one.branch,
            "direction": f"unstable {one.unstable}",
            "loop": one.whole,
        }
        for one in loci.crossings
    ]


def _events(loci: Loci) -> list[dict[str, Any]]:
    """Write where branches meet or could not be joined safely."""
    return [
        {
            "kind": event.kind,
            "from": event.start,
            "to": event.end,
            "branches": list(event.branches),
            "re": event.value.real,
            "im": event.value.imag,
            "why": event.why,
        }
        for event in loci.events
    ]
