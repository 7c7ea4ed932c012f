"""Evaluations as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from flexctl.records import plain
from flexctl.robustness import StiffnessTolerance
from flexctl.verdict import (
    Comparison,
    Evaluation,
    FrictionVerdict,
    SensorMargins,
    Stability,
    StabilityMargins,
    find_reasons,
)
from flexctl.view.json import attributes
from flexctl.view.json.margins import ends_json
from flexctl.view.json.responses import neglected_json
from flexctl.view.words.verdict import verdict

_REST = "exists joint offset tip_offset holding_torque limit holds falls elsewhere"


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
        "run_lengths": [
            {"seconds": length, "designs": list(names)} for length, names in comparison.run_lengths
        ],
    }


def evaluation_json(e: Evaluation) -> dict[str, Any]:
    """Write an evaluation as nested dictionaries and lists; the unknown and infinite are None."""
    return plain(
        {
            "design": e.name,
            "method": e.method,
            "basis": e.basis.described(),
            "truth": e.truth.described(),
            "tracking": e.tracking and asdict(e.tracking),
            "rest": e.rest and attributes(e.rest, _REST),
            "residual": e.residual and asdict(e.residual),
            "effort": e.effort and asdict(e.effort),
            "stability": e.stability and _stability(e.stability),
            "margins": e.margins and _margins(e, e.margins),
            "noise": e.noise and asdict(e.noise),
            "neglected": e.neglected and neglected_json(e.neglected),
            "stiffness": _stiffness(e.stiffness),
            "friction": e.friction and _friction(e.friction),
            "spillover": {
                "order": e.stability.orders if e.stability else [],
                "spectral_abscissa": e.stability.abscissae if e.stability else [],
                "path_spectral_abscissa": e.stability.path_abscissae if e.stability else [],
            },
            "saturated_seconds": e.effort.saturated_seconds if e.effort else None,
            "position_excess": e.positions.excess if e.positions else None,
            "cost": e.cost,
            "energy_residual": (
                np.abs(e.trajectory.energy.residual).max() if e.trajectory is not None else None
            ),
            "assumptions": e.assumptions,
            **attributes(e, "settle_within no_rest failed"),
            "not_computed": dict(e.not_computed),
            "reasons": [{"code": r.code, **r.facts} for r in find_reasons(e)],
        }
    )


def _stability(s: Stability) -> dict[str, Any]:
    return {
        **attributes(s, "spectral_abscissa min_damping_ratio stable settles_at_order"),
        "design_abscissa": s.design_abscissa,
        "path_spectral_abscissa": s.path_abscissa,
        "path_t": s.path_t,
        "poles": {"re": s.poles.real, "im": s.poles.imag},
    }


def _margins(e: Evaluation, margins: StabilityMargins) -> dict[str, Any]:
    return {
        **stability_margins_json(margins),
        "min_sampling_rate": e.min_sampling_rate,
        "sampling_rate_limited_by": e.sampling_rate_limited_by,
        "sensors": e.sensor_margins and sensor_margins_json(e.sensor_margins),
        "no_sensors": e.no_sensors,
    }


def sensor_margins_json(margins: SensorMargins) -> dict[str, Any]:
    """Write the margins of a stable loop at its sensors; what is infinite is None."""
    names = (
        "readings gain_db gain_up_db gain_down_db phase_deg delay_seconds delay_may_be_less disk "
        "disk_frequency reading_disk reading_sensitivity_peak reading_complementary_peak"
    )
    return plain(attributes(margins, names))


def stability_margins_json(margins: StabilityMargins) -> dict[str, Any]:
    """Write the margins of a stable loop; what is infinite is None."""
    names = (
        "gain_db gain_up_db gain_down_db phase_deg delay_seconds common_delay_seconds "
        "delay_may_be_less disk disk_frequency sensitivity_peak sensitivity_frequency "
        "complementary_peak complementary_frequency joint_sensitivity_peak joint_complementary_peak"
    )
    return plain(attributes(margins, names))


def _friction(f: FrictionVerdict) -> dict[str, Any]:
    """Write the loop with any damper at its joints; an amplitude of 0 means that none vibrates."""
    return {
        **attributes(
            f,
            "stable slides amplitude sticking_offset hunts creeps held_frequency "
            "held_damping_ratio",
        ),
        "weak": [f"joint{joint + 1}" for joint in f.weak],
        "dampers": [
            {
                "joint": None if own.joint is None else f"joint{own.joint + 1}",
                "stuck_joint": None if own.stuck_joint is None else f"joint{own.stuck_joint + 1}",
                **attributes(own, "least stable amplitude threshold frequency slides stuck"),
                "unstable": [[range_.low, range_.high] for range_ in own.unstable],
            }
            for own in f.dampers
        ],
    }


def _stiffness(s: StiffnessTolerance | None) -> dict[str, Any] | None:
    """Both stiffness margins, the lemma's never without its basis."""
    if s is None:
        return None
    basis, growth = s.lemma.basis, s.path_growth
    return {
        "lemma": {
            "lambda_max_H": s.lemma.lambda_max,
            "alpha_star": s.lemma.alpha_star,
            "basis": basis.described() if basis else None,
        },
        "exact": s.exact
        and {
            **ends_json(s.exact),
            "proven": s.exact.proven,
            "path_alpha_upper": s.path_upper,
            "path_t": s.path_t,
            "path_alpha_lower": s.path_lower,
            "path_t_lower": s.path_lower_t,
            "path_growth": growth.factor if growth else None,
            "path_growth_error": growth.error if growth else None,
            "path_growth_from": growth.start if growth else None,
            "path_growth_to": growth.end if growth else None,
        },
    }
