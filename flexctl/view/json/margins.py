"""Margins as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from flexctl.checks import ComplexArray
from flexctl.records import plain
from flexctl.robustness import (
    FARTHEST,
    AssumedStiffness,
    Certificate,
    IndependentErrorsAt,
    Interval,
    Lemma,
    ModeRate,
    OrderMargin,
    StabilityLimit,
    StiffnessMargin,
    TimeScaleMargin,
)
from flexctl.view.json import attributes

if TYPE_CHECKING:  # most commands search nothing
    from flexctl.search import BiasAdvice, BiasRun, OfferedBias, Remedies, Remedy, Trial


def margin_json(margin: StiffnessMargin) -> dict[str, Any]:
    """Write margins as nested dictionaries and lists; the unknown and infinite are None."""
    return plain(
        {
            **attributes(margin, "model design"),
            "truth": margin.truth.described(),
            "basis": margin.basis.described(),
            "pose": dict(margin.pose),
            "second_loop": margin.second_loop,
            "lemma": _lemma(margin.lemma)
            | {
                "parts": {name: _limit(lemma) for name, lemma in margin.partial.items()},
                "given": margin.true_arm_lemma and _lemma(margin.true_arm_lemma),
            },
            "given_stiffness": margin.assumed_stiffness and _given(margin.assumed_stiffness),
            "exact": _interval(margin.exact) | {"rates": [_rate(rate) for rate in margin.rates]},
            "path": _path(margin),
            "certified": _certified(margin),
            "not_certified": margin.certified.why or None if margin.certified else None,
            "orders": [_order(order) for order in margin.orders],
            "structured": _structured(margin.independent[0]) if margin.independent else None,
            "structured_at": [_structured(one) for one in margin.independent],
            "assumptions": {
                "damping": "unknown" if margin.unknown_damping else "known",
                "gains": "those of alpha = 0",
                "basis": margin.basis.described(),
                "truth": margin.truth.described(),
                "sentences": margin.assumptions,
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


def _given(assumed: AssumedStiffness) -> dict[str, Any]:
    """Write what a given stiffness does; shares are of its whole error."""
    poses = assumed.at
    return {
        "errors": dict(assumed.errors),
        "lemma": _lemma(assumed.lemma),
        "stable": all(at.stable for at in poses),
        "poses": [
            {
                **attributes(at, "t stable abscissa mode"),
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


def _path(margin: StiffnessMargin) -> dict[str, Any]:
    """Write what is found along the motion, a list by pose each."""
    poses, worst, below = margin.path, margin.worst, margin.worst_below
    certified = [pose.certified for pose in poses if pose.certified]
    return {
        "t": [pose.t for pose in poses],
        "lemma": [pose.alpha_star for pose in poses],
        "exact": [pose.interval.alpha_upper if pose.interval else None for pose in poses],
        "exact_lower": [pose.interval.alpha_lower if pose.interval else None for pose in poses],
        "mode": [_mode(pose.interval) for pose in poses],
        "why": [pose.why for pose in poses],
        "worst_t": worst.t if worst else None,
        "worst_t_lower": below.t if below else None,
        "growth": asdict(margin.path_growth) if margin.path_growth else None,
        "certified_lower": [c.alpha_lower for c in certified],
        "certified_upper": [c.alpha_upper for c in certified],
        "not_certified": [c.why or None for c in certified],
    }


def _certified(margin: StiffnessMargin) -> dict[str, Any] | None:
    """Write what is proven of the exact margin; None where that was not asked, or nothing is."""
    certified, along = margin.certified, margin.certified_along
    if certified is None or not certified.proven:
        return None
    return {
        **attributes(certified, "alpha_lower alpha_upper pieces relative_error"),
        "path_alpha_lower": along[0] if along else None,
        "path_alpha_upper": along[1] if along else None,
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        **ends_json(interval),
        "upper": _loss(interval.upper),
        "lower": _loss(interval.lower),
        **attributes(interval, "unmoved unknowns counted proven"),
    }


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """Write a certificate; what is not proven is None."""
    names = "proven spectral_abscissa states relative_error decay sample_time T"
    radius = None if certificate.sample_time is None else certificate.bound
    return plain({**attributes(certificate, names), "spectral_radius": radius})


def ends_json(interval: Interval) -> dict[str, Any]:
    """Write both ends, and what the upper one loses, or the lower if there is none."""
    first = interval.upper or interval.lower
    return {
        "alpha_upper": interval.alpha_upper,
        "alpha_lower": interval.alpha_lower,
        "mode": first.mode if first else None,
        "crossing_frequency": first.frequency if first else None,
    }


def _loss(loss: StabilityLimit | None) -> dict[str, Any] | None:
    return loss and {**attributes(loss, "alpha mode frequency kind"), "ends": loss.ends or None}


def _mode(interval: Interval | None) -> str | None:
    return interval.upper.mode if interval and interval.upper else None


def _order(order: OrderMargin) -> dict[str, Any]:
    interval = order.interval
    return {
        **order.basis.described(),
        "stable": interval is not None,
        "spectral_abscissa": order.abscissa,
        "alpha_upper": interval.alpha_upper if interval else None,
        "alpha_lower": interval.alpha_lower if interval else None,
        "alpha_star": order.alpha_star,
        "mode": _mode(interval),
        "why": order.why,
    }


def _structured(at: IndependentErrorsAt) -> dict[str, Any]:
    bounds = at.bounds
    worst = bounds.worst_case
    return {
        **attributes(at, "t where second_loop"),
        **attributes(bounds, "mu_peak frequency guaranteed_fraction"),
        "guaranteed": {one.kind: attributes(one, "lower upper any_below") for one in at.guaranteed},
        **attributes(bounds, "proven not_proven"),
        "stopped": bounds.stopped or None,
        "followed": bounds.followed,
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
        "grid": {"frequency": bounds.grid, "mu": bounds.mu},
        "notes": bounds.notes,
    }


def bias_json(advice: BiasAdvice) -> dict[str, Any]:
    """Write the bias that evens out the margin at rest, its runs, and the one that is advised."""
    return _offer(advice.at_rest) | {
        "run": [bias_run_json(run) for run in advice.runs] or None,
        "advised": advice.advised and _offer(advice.advised),
        "smallest": advice.smallest and _offer(advice.smallest),
        "own_tip_at_rest": advice.own_tip_at_rest,
    }


def _offer(offered: OfferedBias) -> dict[str, Any]:
    return attributes(offered, "bias tolerates lower upper other_arms tip_at_rest")


def bias_run_json(run: BiasRun) -> dict[str, Any]:
    """Write a run with a bias, and whether it serves."""
    return asdict(run) | {"failed": run.failed or None, "serves": run.serves}


def remedies_json(remedies: Remedies) -> dict[str, Any]:
    """Write remedies as dictionaries; what does not help has `found` null, and the best tried."""
    found = {name: _remedy(remedy) for name, remedy in remedies.found.items()}
    return {
        "need": remedies.until,
        "bias_for_need": remedies.bias,
        "bias_for_need_run": remedies.bias_run and bias_run_json(remedies.bias_run),
        **(dict.fromkeys(("bandwidth", "second_loop", "damping", "inertia")) | found),
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    searched = remedy.searched
    return {
        "found": searched.answer.value if searched.answer else None,
        "best": _trial(searched.best) if searched.best else None,
        "tried": [searched.values[0], searched.values[-1]],
        "variants": searched.variants,
        **remedy.means,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {**attributes(trial, "value alpha_upper alpha_lower"), "mode": trial.mode or None}


def time_scale_json(margin: TimeScaleMargin) -> dict[str, Any]:
    """Write a separation bound."""
    worst, spectra = margin.worst, margin.spectra
    return plain(
        {
            **attributes(margin, "model design"),
            "basis": margin.basis.described(),
            "truth": margin.truth.described(),
            "s_star": worst.s_star,
            **attributes(margin, "mu_star mu epsilon"),
            "crossing_frequency": worst.frequency,
            "what_crosses": worst.motion or None,
            "worst": {
                "t": worst.t,
                "modes": worst.order,
                "why": worst.why or worst.refused or None,
            },
            "exact": worst.exact,
            "stable": margin.stable,
            "stable_ranges": spectra.ranges,
            "path": {name: [getattr(at, name) for at in margin.path] for name in ("t", "s_star")},
            "orders": {
                name: [getattr(at, name) for at in margin.orders] for name in ("order", "s_star")
            },
            "slow_poles": _slowest_first(spectra.slow),
            "fast_poles": _slowest_first(spectra.fast),
            "full_poles": _slowest_first(spectra.full),
            "assumptions": margin.assumptions,
        }
    )


def _slowest_first(values: ComplexArray) -> list[tuple[float, float]]:
    """Real and imaginary parts."""
    ordered = sorted(values, key=lambda value: (abs(value), value.imag))
    return [(value.real, value.imag) for value in ordered]
