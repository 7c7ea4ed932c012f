"""Margins as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flexctl.records import plain
from flexctl.robustness import (
    FARTHEST,
    AssumedStiffness,
    IndependentErrorsAt,
    Interval,
    Lemma,
    ModeRate,
    OrderMargin,
    StabilityLimit,
    StiffnessMargin,
)
from flexctl.search import BiasAdvice, BiasRun, OfferedBias, Remedies, Requirement, Trial


def margin_json(found: StiffnessMargin) -> dict[str, Any]:
    """Write margins as nested dictionaries and lists; the unknown and infinite are None."""
    return plain(
        {
            "model": found.model,
            "design": found.design,
            "truth": found.truth.described(),
            "basis": found.basis.described(),
            "pose": dict(found.pose),
            "second_loop": found.second_loop,
            "lemma": _lemma(found.lemma)
            | {
                "parts": {name: _limit(lemma) for name, lemma in found.partial.items()},
                "given": _lemma(found.true_arm_lemma) if found.true_arm_lemma else None,
            },
            "given_stiffness": _given(found.assumed_stiffness) if found.assumed_stiffness else None,
            "exact": _interval(found.exact) | {"rates": [_rate(rate) for rate in found.rates]},
            "path": _path(found),
            "orders": [_order(order) for order in found.orders],
            "structured": _structured(found.independent[0]) if found.independent else None,
            "structured_at": [_structured(one) for one in found.independent],
            "assumptions": {
                "damping": "unknown" if found.unknown_damping else "known",
                "gains": "those of alpha = 0",
                "basis": found.basis.described(),
                "truth": found.truth.described(),
                "sentences": found.assumptions,
            },
        }
    )


def _lemma(lemma: Lemma) -> dict[str, Any]:
    return {
        "lambda_max_H": lemma.lambda_max,
        "alpha_star": lemma.alpha_star,
        "loss": lemma.loss,
        "basis": lemma.basis.described() if lemma.basis else None,
        "assumptions": [{"text": a.text, "holds": a.holds} for a in lemma.assumptions],
    }


def _limit(lemma: Lemma) -> dict[str, Any]:
    """Limit of an error of one part, as far as it was looked for."""
    if lemma.alpha_star > FARTHEST:
        return {"alpha_star": None, "loss": f"none up to {FARTHEST:g}"}
    return {"alpha_star": lemma.alpha_star, "loss": lemma.loss}


def _given(found: AssumedStiffness) -> dict[str, Any]:
    """Write what a given stiffness does; shares are of its whole error."""
    poses = found.at
    return {
        "errors": dict(found.errors),
        "lemma": _lemma(found.lemma),
        "stable": all(at.stable for at in poses),
        "poses": [
            {
                "t": at.t,
                "stable": at.stable,
                "abscissa": at.abscissa,
                "mode": at.mode,
                "share": at.interval.alpha_upper if at.interval else 0.0,
                "upper": _loss(at.interval.upper) if at.interval else None,
                "why": at.why,
            }
            for at in poses
        ],
    }


def _rate(rate: ModeRate) -> dict[str, Any]:
    return {
        "mode": rate.mode,
        "re": rate.value.real,
        "im": rate.value.imag,
        "rate_re": rate.rate.real,
        "rate_im": rate.rate.imag,
    }


def _path(found: StiffnessMargin) -> dict[str, Any]:
    """Write what is found along the motion, a list by pose each."""
    poses, worst = found.path, found.worst
    return {
        "t": [pose.t for pose in poses],
        "lemma": [pose.alpha_star for pose in poses],
        "exact": [pose.interval.alpha_upper if pose.interval else None for pose in poses],
        "exact_lower": [pose.interval.alpha_lower if pose.interval else None for pose in poses],
        "mode": [_mode(pose.interval) for pose in poses],
        "why": [pose.why for pose in poses],
        "worst_t": worst.t if worst else None,
        "growth": asdict(found.path_growth) if found.path_growth else None,
    }


def _interval(interval: Interval) -> dict[str, Any]:
    """Write both ends; what the key alone means is the upper one, or the lower if there is none."""
    first = interval.upper or interval.lower
    return {
        "alpha_upper": interval.alpha_upper,
        "alpha_lower": interval.alpha_lower,
        "mode": first.mode if first else None,
        "crossing_frequency": first.frequency if first else None,
        "upper": _loss(interval.upper),
        "lower": _loss(interval.lower),
        "unmoved": interval.unmoved,
        "unknowns": interval.unknowns,
        "counted": interval.counted,
        "proven": interval.proven,
    }


def _loss(loss: StabilityLimit | None) -> dict[str, Any] | None:
    if loss is None:
        return None
    return {
        "alpha": loss.alpha,
        "mode": loss.mode,
        "frequency": loss.frequency,
        "kind": loss.kind,
        "ends": loss.ends or None,
    }


def _mode(interval: Interval | None) -> str | None:
    return interval.upper.mode if interval and interval.upper else None


def _order(order: OrderMargin) -> dict[str, Any]:
    found = order.interval
    return {
        **order.basis.described(),
        "stable": found is not None,
        "spectral_abscissa": order.abscissa,
        "alpha_upper": found.alpha_upper if found else None,
        "alpha_lower": found.alpha_lower if found else None,
        "alpha_star": order.alpha_star,
        "mode": _mode(found),
        "why": order.why,
    }


def _structured(at: IndependentErrorsAt) -> dict[str, Any]:
    found = at.bounds
    worst = found.worst_case
    return {
        "t": at.t,
        "where": at.where,
        "second_loop": at.second_loop,
        "mu_peak": found.mu_peak,
        "frequency": found.frequency,
        "guaranteed_fraction": found.guaranteed_fraction,
        "guaranteed": {
            one.kind: {"lower": one.lower, "upper": one.upper, "any_below": one.any_below}
            for one in at.guaranteed
        },
        "proven": found.proven,
        "not_proven": found.not_proven,
        "stopped": found.stopped or None,
        "followed": found.followed,
        "worst_case": worst
        and {
            "fraction": worst.gamma,
            "errors": dict(zip(worst.names, worst.delta.tolist(), strict=True)),
            "relative": dict(at.worst_errors),
            "frequency": worst.frequency,
            "mode": at.mode,
            "ends": at.ends or None,
            "verified": worst.verified,
            "tried": worst.tried,
            "run": at.run
            and {
                "rate": at.run.rate,
                "linear_rate": at.run.eigenvalue.real,
                "duration": at.run.duration,
            },
        },
        "grid": {"frequency": found.grid, "mu": found.mu},
        "notes": found.notes,
    }


def bias_json(advice: BiasAdvice) -> dict[str, Any]:
    """Write the bias that evens out the margin at rest, its runs, and the one that is advised."""
    return _offered(advice.at_rest) | {
        "run": [bias_run_json(run) for run in advice.runs] or None,
        "advised": advice.advised and _offered(advice.advised),
        "smallest": advice.smallest and _offered(advice.smallest),
        "own_tip_at_rest": advice.own_tip_at_rest,
    }


def _offered(offered: OfferedBias) -> dict[str, Any]:
    return {
        "bias": offered.bias,
        "tolerates": offered.tolerates,
        "lower": offered.lower,
        "upper": offered.upper,
        "other_arms": offered.other_arms,
        "tip_at_rest": offered.tip_at_rest,
    }


def bias_run_json(run: BiasRun) -> dict[str, Any]:
    """Write a run with a bias, and whether it serves."""
    return asdict(run) | {"failed": run.failed or None, "serves": run.serves}


def remedies_json(found: Remedies) -> dict[str, Any]:
    """Write remedies as dictionaries; what does not help has `found` null, and the best tried."""
    joint, second = found.bandwidth, found.second_loop
    damping, inertia = found.damping, found.inertia
    return {
        "need": found.expected,
        "bias_for_need": found.bias,
        "bias_for_need_run": found.bias_run and bias_run_json(found.bias_run),
        "bandwidth": joint
        and _searched(joint.requirement)
        | {
            "Gp": joint.gains.Gp if joint.gains else None,
            "Gv": joint.gains.Gv if joint.gains else None,
        },
        "second_loop": second
        and _searched(second.requirement)
        | {"effort": second.effort, "slowest": second.slowest.real, "fastest": second.fastest.real},
        "damping": damping and _searched(damping.requirement) | {"own": damping.own},
        "inertia": inertia
        and _searched(inertia.requirement) | {"joints": inertia.joints, "added": inertia.added},
    }


def _searched(searched: Requirement) -> dict[str, Any]:
    return {
        "found": searched.answer.value if searched.answer else None,
        "best": _trial(searched.best) if searched.best else None,
        "tried": [searched.grid[0], searched.grid[-1]],
        "variants": searched.variants,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "value": trial.value,
        "alpha_upper": trial.alpha_upper,
        "alpha_lower": trial.alpha_lower,
        "mode": trial.loss.mode if trial.loss else None,
    }
