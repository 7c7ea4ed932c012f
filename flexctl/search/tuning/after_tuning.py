"""What a tuning leaves: its design, as its file will have it: going on from there is possible."""

from __future__ import annotations

from typing import Any

from flexctl.model import Design, TuneChoice, build_file
from flexctl.search.tuning.record import Tuning

_TUNED = ", tuned"
_SOURCE = "flexctl tune"


def tuned_design(tuning: Tuning, name: str | None = None) -> Design:
    """Return the design that a tuning ends with, which says in its table `tune` what was asked for.

    Tuning it again goes on from there. Its basis is the one that it was judged with, and figures
    that its file expects are left out.
    """
    own, start = tuning.tuned, tuning.design
    table = {key: value for key, value in own.table().items() if key != "expect"}
    table["summary"] = start.summary.removesuffix(_TUNED) + _TUNED
    if not start.source.startswith(_SOURCE):
        table["source"] = f"{_SOURCE}, from {start.name} ({start.source})"
    if tuning.after.basis != own.basis:
        table["basis"] = tuning.after.basis.table()
    table["tune"] = _asked(tuning).table()
    return build_file(Design, table, name or own.name, own.path)


def _asked(tuning: Tuning) -> TuneChoice:
    """Return what was asked for, as a table of a design file."""
    bounds = {one.name: (one.lower, one.upper) for one in tuning.free}
    asked: dict[str, Any] = {
        "free": bounds,
        "minimise": tuning.objective.texts,
        "subject_to": [str(one.requirement) for one in tuning.constraints],
    }
    if tuning.over:
        asked["over"] = dict(tuning.over)
    if tuning.quantile is not None:
        asked["quantile"] = tuning.quantile
    if tuning.untied:
        asked["untied"] = True
    return TuneChoice.model_validate(asked)
