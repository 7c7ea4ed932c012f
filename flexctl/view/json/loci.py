"""Branches of eigenvalues as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

from flexctl.loci import Branch, EigenvalueLoci


def branches_json(loci: EigenvalueLoci) -> list[dict[str, Any]]:
    """Write every branch with what it is."""
    return [_branch(one, dominant=k in loci.dominant) for k, one in enumerate(loci.branches)]


def _branch(branch: Branch, *, dominant: bool) -> dict[str, Any]:
    return {
        "label": branch.label,
        "re": branch.values.real,
        "im": branch.values.imag,
        "frequency": branch.frequency,
        "damping": branch.damping,
        "participation": dict(branch.participation),
        "leads": [{"from": start, "motion": motion} for start, motion in branch.leads],
        "dominant": dominant,
    }


def limits_json(loci: EigenvalueLoci) -> list[dict[str, Any]]:
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


def places_json(loci: EigenvalueLoci) -> list[dict[str, Any]]:
    """Write where branches meet or could not be joined safely."""
    return [
        {
            "kind": place.kind,
            "from": place.start,
            "to": place.end,
            "branches": list(place.branches),
            "re": place.value.real,
            "im": place.value.imag,
            "why": place.why,
        }
        for place in loci.events
    ]
