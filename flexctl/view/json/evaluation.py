"""Evaluations as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from flexctl.records import plain
from flexctl.verdict import find_reasons
from flexctl.view.words.verdict import verdict

if TYPE_CHECKING:
    from flexctl.loop import FinalEquilibrium
    from flexctl.robustness import StiffnessTolerance
    from flexctl.verdict import Comparison, Evaluation, Stability, StabilityMargins


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Write a comparison, its sentences among it."""
    truth = {"drop_above": None, **comparison.truth.described(), "backend": comparison.backend}
    return {
        "model": comparison.model,
        "truth": truth,
        "evaluations": [evaluation_json(evaluation) for evaluation in comparison.evaluations],
        "ranking": list(comparison.ranking),
        "winner": comparison.winner,
        "verdict": verdict(comparison),
        "motions": [list(names) for names in comparison.motions],
    }


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Write an evaluation as nested dictionaries and lists; the unknown and infinite are None."""
    e = evaluation
    return plain(
        {
            "design": e.name,
            "method": e.method,
            "basis": e.basis.described(),
            "truth": e.truth.described(),
            "tracking": asdict(e.tracking) if e.tracking else None,
            "rest": _rest(e.rest) if e.rest else None,
            "residual": asdict(e.residual) if e.residual else None,
            "effort": asdict(e.effort) if e.effort else None,
            "stability": _stability(e.stability) if e.stability else None,
            "margins": e.margins
            and {**margins_json(e.margins), "min_sampling_rate": e.min_sampling_rate},
            "stiffness": _stiffness(e.stiffness),
            "spillover": {
                "order": e.stability.orders if e.stability else [],
                "spectral_abscissa": e.stability.abscissae if e.stability else [],
            },
            "saturated_seconds": e.effort.saturated_seconds if e.effort else None,
            "cost": e.cost,
            "energy_residual": (
                np.abs(e.trajectory.energy.residual).max() if e.trajectory is not None else None
            ),
            "assumptions": e.assumptions,
            "settle_within": e.settle_within,
            "no_rest": e.no_rest,
            "failed": e.failed,
            "not_computed": dict(e.not_computed),
            "reasons": [{"code": r.code, **r.facts} for r in find_reasons(e)],
        }
    )


def _rest(rest: FinalEquilibrium) -> dict[str, Any]:
    """Write where a loop rests; what has no value, as a torque without limit, becomes None."""
    return {
        "exists": rest.exists,
        "joint": rest.joint,
        "offset": rest.offset,
        "tip_offset": rest.tip_offset,
        "holding_torque": rest.holding_torque,
        "limit": rest.limit,
        "holds": rest.holds,
        "falls": rest.falls,
        "elsewhere": rest.elsewhere,
    }


def _stability(s: Stability) -> dict[str, Any]:
    return {
        "spectral_abscissa": s.spectral_abscissa,
        "min_damping_ratio": s.min_damping_ratio,
        "stable": s.stable,
        "settles_at_order": s.settles_at_order,
        "path_spectral_abscissa": s.path_abscissa,
        "path_t": s.path_t,
        "poles": {"re": s.poles.real, "im": s.poles.imag},
    }


def margins_json(margins: StabilityMargins) -> dict[str, Any]:
    """Write the margins of a stable loop; what is infinite is None."""
    numbers = {
        "gain_db": margins.gain_db,
        "gain_up_db": margins.gain_up_db,
        "gain_down_db": margins.gain_down_db,
        "phase_deg": margins.phase_deg,
        "delay_seconds": margins.delay_seconds,
        "common_delay_seconds": margins.common_delay_seconds,
        "delay_may_be_less": margins.delay_may_be_less,
        "disk": margins.disk,
        "disk_frequency": margins.disk_frequency,
    }
    return plain(numbers)


def _stiffness(s: StiffnessTolerance | None) -> dict[str, Any] | None:
    """Both stiffness margins, the lemma's never without its basis."""
    if s is None:
        return None
    first = (s.exact.upper or s.exact.lower) if s.exact else None
    basis = s.lemma.basis
    return {
        "lemma": {
            "lambda_max_H": s.lemma.lambda_max,
            "alpha_star": s.lemma.alpha_star,
            "basis": basis.described() if basis else None,
        },
        "exact": s.exact
        and {
            "alpha_upper": s.exact.alpha_upper,
            "alpha_lower": s.exact.alpha_lower,
            "mode": first.mode if first else None,
            "crossing_frequency": first.frequency if first else None,
            "proven": s.exact.proven,
            "path_alpha_upper": s.path_upper,
            "path_t": s.path_t,
            "path_growth": s.path_growth.factor if s.path_growth else None,
            "path_growth_error": s.path_growth.error if s.path_growth else None,
            "path_growth_from": s.path_growth.start if s.path_growth else None,
            "path_growth_to": s.path_growth.end if s.path_growth else None,
        },
    }
