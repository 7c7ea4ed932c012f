"""Margins as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

from flexctl.design import Lemma
from flexctl.design.partial_errors import FARTHEST
from flexctl.loop.margin.record import Interval, Loss, Margin, ModeRate, OrderMargin, StructuredAt
from flexctl.loop.verdict_json import basis_json, plain


def margin_json(found: Margin) -> dict[str, Any]:
    """Write margins as nested dictionaries and lists; the unknown and infinite are None."""
    return plain(
        {
            "model": found.model,
            "design": found.design,
            "truth": basis_json(found.truth),
            "basis": basis_json(found.basis),
            "pose": dict(found.pose),
            "second_loop": found.second_loop,
            "lemma": _lemma(found.lemma)
            | {
                "parts": {name: _limit(lemma) for name, lemma in found.partial.items()},
                "given": _lemma(found.given) if found.given else None,
            },
            "exact": _interval(found.exact) | {"rates": [_rate(rate) for rate in found.rates]},
            "path": _path(found),
            "orders": [_order(order) for order in found.orders],
            "structured": _structured(found.structured[0]) if found.structured else None,
            "structured_at": [_structured(one) for one in found.structured],
            "assumptions": {
                "damping": "unknown" if found.unknown_damping else "known",
                "gains": "those of alpha = 0",
                "basis": basis_json(found.basis),
                "truth": basis_json(found.truth),
                "sentences": found.assumptions,
            },
        }
    )


def _lemma(lemma: Lemma) -> dict[str, Any]:
    return {
        "lambda_max_H": lemma.lambda_max,
        "alpha_star": lemma.alpha_star,
        "loss": lemma.loss,
        "basis": basis_json(lemma.basis) if lemma.basis else None,
        "assumptions": [{"text": a.text, "holds": a.holds} for a in lemma.assumptions],
    }


def _limit(lemma: Lemma) -> dict[str, Any]:
    """Limit of an error of one part, as far as it was looked for."""
    if lemma.alpha_star > FARTHEST:
        return {"alpha_star": None, "loss": f"none up to {FARTHEST:g}"}
    return {"alpha_star": lemma.alpha_star, "loss": lemma.loss}


def _rate(rate: ModeRate) -> dict[str, Any]:
    return {
        "mode": rate.mode,
        "re": rate.value.real,
        "im": rate.value.imag,
        "rate_re": rate.rate.real,
        "rate_im": rate.rate.imag,
    }


def _path(found: Margin) -> dict[str, Any]:
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
    }


def _loss(loss: Loss | None) -> dict[str, Any] | None:
    if loss is None:
        return None
    return {
        "alpha": loss.alpha,
        "mode": loss.mode,
        "frequency": loss.frequency,
        "kind": loss.kind,
    }


def _mode(interval: Interval | None) -> str | None:
    return interval.upper.mode if interval and interval.upper else None


def _order(order: OrderMargin) -> dict[str, Any]:
    found = order.interval
    return {
        **basis_json(order.basis),
        "stable": found is not None,
        "spectral_abscissa": order.abscissa,
        "alpha_upper": found.alpha_upper if found else None,
        "alpha_lower": found.alpha_lower if found else None,
        "alpha_star": order.alpha_star,
        "mode": _mode(found),
        "why": order.why,
    }


def _structured(at: StructuredAt) -> dict[str, Any]:
    found = at.found
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
        "worst_case": worst
        and {
            "fraction": worst.gamma,
            "errors": dict(zip(worst.names, worst.delta.tolist(), strict=True)),
            "relative": dict(at.worst_errors),
            "frequency": worst.frequency,
            "mode": at.mode,
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
