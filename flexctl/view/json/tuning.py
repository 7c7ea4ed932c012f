"""Tunings as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flexctl.records import plain
from flexctl.search import Compromise, Constraint, Found, Objective, TradeOff, Tuning
from flexctl.verdict import MORE_IS_BETTER
from flexctl.view.json import attributes
from flexctl.view.json.evaluation import evaluation_json
from flexctl.view.json.sweep import shape_error_json
from flexctl.view.words.tuning import active_limits, trade_off_words, tuning_words


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """Write a tuning with both verdicts; what is infinite, or unknown, is None."""
    unseen, active = tuning.unseen, active_limits(tuning)
    return plain(
        {
            "model": tuning.model,
            "design": tuning.design.name,
            "truth": tuning.before.truth.described(),
            "improved": tuning.improved,
            "feasible": tuning.feasible,
            "objective": {
                "name": str(tuning.objective),
                "metrics": [dict(one) for one in tuning.objective.sums],
                "nominal": tuning.objective.nominal,
                "before": tuning.objective_before,
                "after": tuning.objective_after,
            },
            "constraints": [
                _constraint(one, active=k in active) for k, one in enumerate(tuning.constraints)
            ],
            "values": {name: after for name, (_, after) in tuning.values.items()},
            "values_before": {name: before for name, (before, _) in tuning.values.items()},
            "free": [
                {"name": one.name, "key": one.key, "lower": one.lower, "upper": one.upper}
                for one in tuning.free
            ],
            "untied": tuning.untied,
            "over": dict(tuning.over),
            "quantile": tuning.quantile,
            "scaled": sorted(tuning.scaled),
            "arms": [dict(arm) for arm in tuning.arms],
            "judged_on": [dict(arm) for arm in tuning.judged_on],
            "worst_arm": dict(tuning.worst_arm),
            "nearby": dict(tuning.nearby),
            "conflict": [
                {
                    "text": str(one.requirement),
                    **attributes(one, "violation objective"),
                    "worst": one.worst and str(one.worst),
                }
                for one in tuning.conflict
            ],
            "unseen": unseen
            and {
                **attributes(unseen, "n met violation objective"),
                "worst": dict(unseen.worst),
                "lost": unseen.lost and str(unseen.lost),
            },
            "certified": tuning.certificate is not None and tuning.certificate.proven,
            "shape_error": shape_error_json(tuning),
            "starts": [_start(one, tuning) for one in tuning.starts],
            **attributes(tuning, "evaluations seconds interrupted resumed"),
            "no_verdict": tuning.no_verdict
            and {"arm": dict(tuning.no_verdict[0]), "why": tuning.no_verdict[1]},
            "worst": {"before": dict(tuning.worst_before), "after": dict(tuning.worst_after)},
            "before": evaluation_json(tuning.before),
            "after": evaluation_json(tuning.after),
            "tuned": tuning.tuned.table(),
            "verdict": tuning_words(tuning),
        }
    )


def _constraint(one: Constraint, *, active: bool) -> dict[str, Any]:
    requirement = one.requirement
    return {
        "key": requirement.key,
        "text": str(requirement),
        "sign": requirement.limit.sign,
        "limit": "limits" if requirement.torque_limits else requirement.limit.value,
        "nominal": requirement.nominal,
        "before": one.before,
        "value": one.value,
        "met": one.met,
        "active": active,
    }


def _start(found: Found, tuning: Tuning) -> dict[str, Any]:
    excess = zip(*(step.excess for step in found.history), strict=True)
    return {
        **attributes(found, "objective violation stationarity status evaluations"),
        "multipliers": {str(k): x for k, x in found.multipliers.items()},
        "place": found.u,
        "history": {
            "evaluations": [step.evaluations for step in found.history],
            "objective": [step.objective for step in found.history],
            "violation": [step.violation for step in found.history],
            "excess": {
                str(one.requirement): list(values)
                for one, values in zip(tuning.constraints, excess, strict=False)
            },
        },
    }


def trade_off_json(found: TradeOff, files: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Write a trade-off; `files` are those of its designs by name."""
    return plain(
        {
            "model": found.model,
            "design": found.start.design.name,
            "objective": str(found.first),
            "against": str(found.second),
            "limits": [str(one) for one in found.requirements],
            "start": _compromise(found, found.start, None),
            "front": [
                _compromise(found, one, (files or {}).get(one.design.name)) for one in found.front
            ],
            "tried": [_as_metric(found.second, value) for value in found.tried],
            **attributes(found, "dominated evaluations seconds interrupted"),
            "verdict": trade_off_words(found),
        }
    )


def _compromise(found: TradeOff, one: Compromise, file: Path | None) -> dict[str, Any]:
    tuning = one.tuning
    return {
        "design": one.design.name,
        "metrics": {
            str(found.first): _as_metric(found.first, one.first),
            str(found.second): _as_metric(found.second, one.second),
        },
        "values": tuning and {name: after for name, (_, after) in tuning.values.items()},
        "constraints": tuning and tuning_json(tuning)["constraints"],
        "evaluation": tuning and evaluation_json(tuning.after),
        "tuned": one.design.table(),
        "file": file and file.name,
    }


def _as_metric(objective: Objective, value: float) -> float:
    """Value of an objective of one metric as that metric has it."""
    return -value if objective.metric in MORE_IS_BETTER else value
