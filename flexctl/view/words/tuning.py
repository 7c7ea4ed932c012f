"""What tuning gained, in sentences: before and after, limits, how it was searched and verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from flexctl.robustness import Certificate
from flexctl.search import Constraint, Objective, Requirement, TradeOff, Tuning, Unseen
from flexctl.verdict import MORE_IS_BETTER, UNITS, Evaluation, find_reasons, unstable_orders
from flexctl.view.words.margins import certificate_words
from flexctl.view.words.metrics import metric_name, metric_value, units_for
from flexctl.view.words.numbers import counted, figure, limit_name, listed, percent
from flexctl.view.words.sweep import shape_sentences
from flexctl.view.words.verdict import off_reference, reason_words, rings_words

_NEAR = 0.01  # of a limit: a value so close to it is held there by it
_SETTLING = "residual.settling_time"
_NOTHING = 1e-9  # a violation or a loss that is none
_LONGER = "Take a longer run (loop.duration) or another metric, such as residual.tip_error_max"
_ABSCISSA = "stability.spectral_abscissa"
_SENSITIVE = 0.5  # of the gain, that is lost where a number is slightly off
_CLEARLY = 0.1  # of the value before: a smaller loss is not worth a word
_APART = 0.02  # of the best objective: ends of searches that are no longer the same
_UNFINISHED = {
    "limit": "The search used up its evaluations before it reached a minimum; more (--evaluations)",
    "stalled": "The search stalled before it reached a minimum; more starts (--starts)",
}  # by status of a search
_OWN_SENTENCE = (  # codes of reasons
    "unstable-at-pose",
    "no-rest-at-poses",
    "spillover",
    "spillover-at-pose",
    "no-rest-on-finer-truth",
)
_WORTH_KNOWING = (
    _SETTLING,
    "residual.tip_error_max",
    "stability.min_damping_ratio",
    "stability.spectral_abscissa",
    "margins.gain_db",
    "margins.phase_deg",
    "margins.disk",
    "margins.common_delay_seconds",
    "margins.min_sampling_rate",
    "margins.sensors.disk",
    "stiffness.exact.path_alpha_upper",
    "noise.tip_rms",
    "noise.torque_rms",
    "effort.peak",
    "effort.energy",
    "friction.sticking_offset",
)
_SIGNS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_AMPLE = {
    "margins.gain_db": 12.0,
    "margins.phase_deg": 60.0,
    "margins.disk": 1.0,
    "margins.sensors.disk": 1.0,
    "stiffness.exact.path_alpha_upper": 1.0,
}  # as much of a margin is no loss, however much there was before


def tuning_words(tuning: Tuning) -> str:
    """Say what was gained, which limits are kept, and how it was searched and verified."""
    return " ".join(tuning_sentences(tuning))


def tuning_sentences(tuning: Tuning) -> Iterator[str]:
    """Write a sentence for the objective, the limits, the bounds, the search, and other arms."""
    yield _gained(tuning)
    if (
        tuning.improved
        and tuning.objective_after == np.inf
        and tuning.objective.texts == (_SETTLING,)
    ):
        yield f"{_LONGER}."
    yield from _sensitive(tuning)
    yield from _limits(tuning)
    yield from _unstable_along(tuning)
    yield from _worse(tuning)
    yield from _warned(tuning)
    yield from _of_its_own_noise(tuning)
    yield from _at_bounds(tuning)
    yield from _searched(tuning)
    if tuning.unseen:
        yield from _unseen(tuning, tuning.unseen)
    if tuning.certificate is not None:
        yield from _certified(tuning.after, tuning.certificate)
    yield from shape_sentences(tuning)


def trade_off_words(found: TradeOff) -> str:
    """Say what the ends of a trade-off are, and how many designs lie between."""
    first, second = objective_name(found.first), objective_name(found.second)
    cost = f"{counted(found.evaluations, 'evaluation')} in {found.seconds:.0f} s"
    more = " It was interrupted, and more may be found." if found.interrupted else ""
    if not found.front:
        return f"No design keeps all limits ({cost}).{more}"
    units = trade_off_units(found)
    ends = [
        f"{first} {objective_value(found.first, one.first, units)} with "
        f"{second} {objective_value(found.second, one.second, units)} ({one.design.name})"
        for one in (found.front[0], found.front[-1])
    ]
    if len(found.front) == 1:
        said = f"No other design that was found is better in either: {ends[0]}."
    else:
        said = (
            f"{len(found.front)} designs, none of which is better in both than another, from "
            f"{ends[0]} to {ends[1]}."
        )
    ended = [one.tuning.starts[0].status for one in found.front if one.tuning and one.tuning.starts]
    if (short := ended.count("limit")) and not found.interrupted:
        of = "this design" if len(found.front) == 1 else f"{short} of these designs"
        searches = "search" if short == 1 else "searches"
        more = (
            f" The {searches} of {of} used up all evaluations; more (--evaluations) may move the "
            "front."
        )
    return f"{said} Found with {cost}.{more}"


def trade_off_units(found: TradeOff) -> Mapping[str, str]:
    """Units of metrics for the joints of the arm."""
    known = [one.tuning for one in found.front if one.tuning]
    return units_for(known[0].after) if known else UNITS


def active_limits(tuning: Tuning) -> list[int]:
    """List indices of the limits that are met and hold the objective back."""
    held = tuning.starts[0].multipliers if tuning.starts and tuning.improved else {}
    return [
        k
        for k, one in enumerate(tuning.constraints)
        if one.met and (held.get(k, 0.0) > 0 or _near(one))
    ]


def _near(one: Constraint) -> bool:
    limit = one.requirement.limit.value
    return bool(limit and np.isfinite(limit) and abs(one.value - limit) <= _NEAR * abs(limit))


def objective_value(objective: Objective, value: float, units: Mapping[str, str] = UNITS) -> str:
    """Write a value of an objective: of a single metric with its unit."""
    key = objective.metric
    if key is None or objective.sums[0][key] != 1:
        return figure(value, 4) if np.isfinite(value) else "none"
    if key in MORE_IS_BETTER:  # of what is not computed or has no loop the objective is infinite
        return "not known" if value == np.inf else metric_value(key, -value, units)
    return metric_value(key, value, units)


def objective_name(objective: Objective) -> str:
    """Name an objective: a single metric in words, else as it was written."""
    key = objective.metric
    single = key is not None and objective.sums[0][key] == 1
    return metric_name(str(key)) if single else str(objective)


def limit_text(one: Requirement, units: Mapping[str, str] = UNITS) -> str:
    """Write a limit: ``at least 6 dB``, ``within the torque limits``."""
    if one.torque_limits:
        unit = units[one.key]
        alike = unit in ("N m", "N", "A", "V")  # of joints with unlike commands it lists several
        text = f"within the {limit_name(unit)}s" if alike else "within the limits of the actuators"
    else:
        value = metric_value(one.key, one.limit.value, units)
        text = f"{_SIGNS[one.limit.sign]} {value}"
    return f"{text} on the nominal arm" if one.nominal else text


def arm_words(tuning: Tuning, arm: Mapping[str, float]) -> str:
    """Name an arm by the numbers in which it differs, factors with a star."""
    if not arm:
        return "the nominal arm"
    return ", ".join(
        f"{key.removeprefix('truth.')} = {'*' if key in tuning.scaled else ''}{x:.4g}"
        for key, x in arm.items()
    )


def _gained(tuning: Tuning) -> str:
    objective = tuning.objective
    name = objective_name(objective)
    units = units_for(tuning.after)
    now = objective_value(objective, tuning.objective_after, units)
    was = objective_value(objective, tuning.objective_before, units)
    marginal = tuning.before.stability and tuning.before.stability.stable == "marginal"
    state = "marginally stable" if marginal else "unstable"
    if not np.isfinite(tuning.objective_before) and _is_unstable(tuning.before):
        was = state
    where = f" {on_arms(tuning)}" if _of_several(tuning) else ""
    if not tuning.improved and not tuning.feasible and _is_unstable(tuning.before):
        return (
            f"No loop was found that is stable and whose run succeeds; {tuning.design.name} itself "
            f"is {state}. Try wider bounds, other free numbers or more starts (--starts)."
        )
    if not tuning.improved and not tuning.feasible:
        return (
            "No design within the bounds was found that keeps all limits, nor one that violates "
            f"them less than {tuning.design.name} does ({name} {now}{where})."
        )
    if not tuning.improved and objective.metric == _SETTLING and not tuning.objective_after:
        return (
            f"{tuning.design.name} has settled when the motion ends: no design settles sooner. "
            "Minimise another metric, such as residual.tip_error_max."
        )
    if not tuning.improved:
        never = objective.metric == _SETTLING and not np.isfinite(tuning.objective_after)
        other = f" {_LONGER}." if never else ""
        return (
            f"Nothing clearly better than {tuning.design.name} was found within bounds and limits: "
            f"{name} {now}{where}.{other}"
        )
    gain = tuning.objective_before - tuning.objective_after
    if now == was and 0 < gain < np.inf:  # the same in the digits that are written
        was = f"better by {figure(100 * gain / abs(tuning.objective_before), 1)} %"
    else:
        was = "before: never" if was == "never" else f"was {was}"
    if objective.texts == (_SETTLING,):
        settles = f"settles in {now}"
        if not tuning.objective_after:
            settles = "has settled when the motion ends"
        elif tuning.objective_after == np.inf:
            settles = "does not settle within its run"
            was = "nor before" if was == "before: never" else was
        first = f"{tuning.tuned.name} {settles} ({was}){where}"
    else:
        first = f"{tuning.tuned.name}: {name} {now} ({was}){where}"
    if tuning.feasible:
        return f"{first}."
    return f"No design within the bounds was found that keeps all limits. The nearest: {first}."


def _sensitive(tuning: Tuning) -> Iterator[str]:
    """Say that a number slightly off loses much of what was gained."""
    before, after = tuning.objective_before, tuning.objective_after
    if not (tuning.nearby and tuning.improved and tuning.feasible and after < before):
        return
    name, value = max(tuning.nearby.items(), key=lambda item: item[1])
    gain = before - after if np.isfinite(before) else abs(after)
    if value - after <= _SENSITIVE * gain or (gain == 0 and np.isfinite(value)):
        return
    what = f"{objective_name(tuning.objective)} is "
    what += objective_value(tuning.objective, value, units_for(tuning.after))
    if not np.isfinite(value):
        settles = tuning.objective.metric == _SETTLING
        what = "the tip does not settle" if settles else "there is no run to judge it by"
    yield f"It is sensitive: with {name} 1 % off, {what}."


def _is_unstable(verdict: Evaluation) -> bool:
    return verdict.stability is not None and verdict.stability.stable is not True


def on_arms(tuning: Tuning) -> str:
    """Say on which arms limits are kept: ``on the worst of 3 arms``."""
    if tuning.quantile is None:
        return f"on the worst of {len(tuning.judged_on)} arms"
    share = percent(tuning.quantile)
    n = len(tuning.judged_on) - 1
    return f"on the nominal arm and {share} of {n} other{'s' if n != 1 else ''}"


def _of_several(tuning: Tuning) -> bool:
    return len(tuning.judged_on) > 1 and not tuning.objective.nominal


def on_other_models(after: Evaluation) -> Iterator[str]:
    """Say on which orders it is unstable, at rest or along its motion alone, or does not rest."""
    reasons = {reason.code: reason.facts for reason in find_reasons(after)}
    along, no_rest = (
        reasons.get(code, {}).get("orders", [])
        for code in ("spillover-at-pose", "no-rest-on-finer-truth")
    )
    at_rest = [order for order in unstable_orders(after) if order not in (*along, *no_rest)]
    for said, orders, why in (
        ("It is unstable", at_rest, " (spillover)"),
        ("Held still at poses of its motion it is unstable", along, " (spillover)"),
        ("It has no equilibrium at its reference", no_rest, ""),
    ):
        if orders:
            models = "other models" if len(orders) > 1 else "another model"
            kind = after.truth.kind.removesuffix("s") if orders == [1] else after.truth.kind
            of = f"{listed([*map(str, orders)])} {kind}"
            yield f"{said} on {models} of the arm, of {of} per link{why}."


def _limits(tuning: Tuning) -> Iterator[str]:
    units = units_for(tuning.after)
    lost = [one for one in tuning.constraints if not one.met]
    if not tuning.feasible:
        beyond = [one for one in lost if not _holds(one, one.value)]
        finer = [] if _is_unstable(tuning.after) else unstable_orders(tuning.after)
        if finer:
            yield from on_other_models(tuning.after)
        stability, failed = tuning.after.stability, tuning.after.failed
        if failed:
            yield f"{tuning.after.name} has no full verdict: {failed.rstrip('.')}."
        if stability is not None and stability.stable is not True:
            rate = figure(stability.spectral_abscissa)
            yield (
                "It is not stable at rest at the end of the motion (spectral abscissa "
                f"{rate} 1/s), so that it has no margins."
            )
        elif tuning.no_verdict and tuning.no_verdict[0]:
            where = arm_words(tuning, tuning.no_verdict[0])
            yield f"On {where}: {tuning.no_verdict[1].rstrip('.')}."
        elif not failed and (len(beyond) < len(lost) or not (lost or finer)):
            yield "On an arm that was judged the loop is not stable, or its run fails."
        if beyond:
            yield f"Not kept: {'; '.join(_lost(one, units) for one in beyond)}."
        yield from _against(tuning)
        return
    known = tuning.constraints
    won = [_short(one.requirement, units) for one in known if one.met and not one.was_met]
    if won:
        how = ", by a loop that is stable" if _is_unstable(tuning.before) else ", and not before"
        yield f"Kept now{how}: {listed(won)}."
    active = [_short(known[k].requirement, units) for k in active_limits(tuning)]
    if tuning.improved and tuning.starts and tuning.starts[0].multipliers.get(-1, 0.0) > 0:
        active.append(_stability(tuning))
    if known:
        held = f"; the objective is held back by {listed(active)}" if active else "; none is active"
        count = len(known)
        which = f"All {count} limits are" if count > 1 else "The limit is"
        yield f"{which} kept{held if tuning.improved else ''}."
    elif active:
        yield f"The objective is held back by {listed(active)}."


def _lost(one: Constraint, units: Mapping[str, str]) -> str:
    key = one.requirement.key
    value = metric_value(key, one.value, units)
    late = ""
    if key == _SETTLING and np.isfinite(one.violation):
        late = f" (after that {_late(one.violation)})"
    return f"{metric_name(key)} {value}, to be {limit_text(one.requirement, units)}{late}"


def _late(violation: float) -> str:
    """Write the violation of a settling time, the logarithm of an error over the band."""
    return f"the tip error is up to {figure(np.exp(violation))} times the band"


def _by(one: Requirement, violation: float) -> str:
    """Write by how much a limit is violated."""
    late = one.key == _SETTLING and not one.limit.least
    if not np.isfinite(violation):
        return "beyond measure"
    return f"({_late(violation)} after that)" if late else f"by {percent(violation)}"


def _short(one: Requirement, units: Mapping[str, str]) -> str:
    return f"{metric_name(one.key)} {limit_text(one, units)}"


def _holds(one: Constraint, value: float) -> bool:
    """Whether a value keeps a limit, as far as it alone tells."""
    if one.requirement.torque_limits:
        return one.violation <= _NOTHING  # the peak alone does not say it
    return bool(one.requirement.limit.holds(np.array(value)))


def _stability(tuning: Tuning) -> str:
    """Say what stability itself asks for: see `watched_over` of the search."""
    own = any(one.requirement.key == _ABSCISSA for one in tuning.constraints)
    if own or _is_unstable(tuning.before):
        return "stability"
    return f"a decay at a tenth of the start's rate (--subject '{_ABSCISSA}<=...' changes it)"


def _against(tuning: Tuning) -> Iterator[str]:
    """Say which limits stand against each other where not all can be kept, and what is bought."""
    held = tuning.starts[0].multipliers if tuning.starts else {}
    units = units_for(tuning.after)
    limits = [one.requirement for one in tuning.constraints]
    names = [_short(limits[k], units) if k >= 0 else _stability(tuning) for k in sorted(held)]
    if len(names) > 1:
        yield f"There these stand against each other: {listed(names)}."
    for one in tuning.conflict:
        name = _short(one.requirement, units)
        if one.violation <= _NOTHING and one.objective == np.inf:
            never = tuning.objective.metric == _SETTLING
            no = "but does not settle within its run" if never else "with no value of the objective"
            bought = f"a short search, not verified, keeps all others, {no}"
        elif one.violation <= _NOTHING:
            value = objective_value(tuning.objective, one.objective, units)
            what = objective_name(tuning.objective)
            bought = f"a short search, not verified, keeps all others, with {what} {value}"
        elif np.isfinite(one.violation) and one.worst is not None:
            much = "" if one.worst.is_margin else f" {_by(one.worst, one.violation)}"
            bought = f"{_short(one.worst, units)} is still violated{much}"
        else:
            continue
        yield f"Without {name}: {bought}."


def _unstable_along(tuning: Tuning) -> Iterator[str]:
    """Say that the tuned loop is unstable, held still, at poses of the motion."""
    stability = tuning.after.stability
    if stability is None or stability.stable is not True:  # which is said, and comes first
        return
    rates = np.nan_to_num(stability.path_abscissa, nan=np.inf)
    count = int((rates > 0).sum())
    if count:
        key = "stability.path_spectral_abscissa"
        yield (
            f"Held still, the loop is unstable or without equilibrium at {count} of {len(rates)} "
            f"poses of the motion; --subject '{key}<=0' forbids it."
        )


def _worse(tuning: Tuning) -> Iterator[str]:
    """Say what was given for the objective: figures without a limit that are clearly worse now."""
    if not tuning.improved:
        return
    units = units_for(tuning.after)
    asked = {tuning.objective.metric, *(one.requirement.key for one in tuning.constraints)}
    lost = []
    for key in _WORTH_KNOWING:
        was, now = tuning.worst_before[key], tuning.worst_after[key]
        own_noise = key.startswith("noise.") and _noise_is_free(tuning)
        if key not in asked and not own_noise and _clearly_worse(key, was, now):
            lost.append(
                f"{metric_name(key)} {_now(key, now, units)} (was {metric_value(key, was, units)})"
            )
    if lost:
        yield f"Worse than before: {listed(lost)}."


def _warned(tuning: Tuning) -> Iterator[str]:
    """Say what speaks against the tuned design, as its own verdict does, unless it is said."""
    reasons = find_reasons(tuning.after)
    warnings = [reason_words(one) for one in reasons if one.code not in _OWN_SENTENCE]
    warnings += off_reference(tuning.after)
    if warnings:
        yield f"Warning: {'; '.join(warnings)}."


def _of_its_own_noise(tuning: Tuning) -> Iterator[str]:
    """Say that a verdict takes the noise that was tuned for that of the arm."""
    if tuning.improved and tuning.after.noise and _noise_is_free(tuning):
        yield (
            "observer.noise was tuned: the rms values of tip and torque before and after assume "
            "different noise and cannot be compared."
        )


def _noise_is_free(tuning: Tuning) -> bool:
    return any(one.key.startswith("observer.noise.") for one in tuning.free)


def _clearly_worse(key: str, was: float, now: float) -> bool:
    if key in _AMPLE and now >= _AMPLE[key]:
        return False
    change = was - now if key in MORE_IS_BETTER else now - was
    lost = np.isfinite(was) and np.isnan(now)
    return bool(lost or change == np.inf or change > max(_CLEARLY * abs(was), _NOTHING))


def _now(key: str, value: float, units: Mapping[str, str]) -> str:
    """Write a value; an infinite settling time says that this run ended before."""
    never = key == _SETTLING and value == np.inf
    return "beyond the end of this run" if never else metric_value(key, value, units)


def _certified(after: Evaluation, certificate: Certificate) -> Iterator[str]:
    """Say what is proven of the loop at rest, and how the arm rings where friction holds it."""
    words = certificate_words(certificate)
    if after.stability is None or after.stability.stable is not True:
        return  # which is said
    dry = after.friction is not None
    which = "the linear loop without dry friction" if dry else "the linear loop"
    yield f"Of {which}, at rest at the end of the motion: {words[0].lower()}{words[1:]}"
    if rings := rings_words(after):
        yield f"Dry friction may hold the joints there; then {rings}."


def _at_bounds(tuning: Tuning) -> Iterator[str]:
    ends, allowed = list[str](), list[str]()
    for one in tuning.free:
        value = tuning.values[one.name][1]
        if tuning.improved and value in (one.lower, one.upper):
            end = "lower" if value == one.lower else "upper"
            which = allowed if end in one.widest else ends
            which.append(f"{one.name} at its {end} bound {value:.4g}")
    if ends:
        yield f"Wider bounds may give more: {listed(ends)}."
    if allowed:
        yield f"The design allows no wider bounds: {listed(allowed)}."


def _searched(tuning: Tuning) -> Iterator[str]:
    cost = f"{counted(tuning.evaluations, 'evaluation')} in {tuning.seconds:.0f} s"
    if tuning.interrupted:
        yield f"Interrupted after {cost}: this is the best so far."
    else:
        resumed = f", {counted(tuning.resumed, 'result')} from the ledger" if tuning.resumed else ""
        yield f"Searched over {counted(len(tuning.free), 'free number')}: {cost}{resumed}."
        yield from _ended(tuning)
    if others := [arm for arm in tuning.judged_on if arm]:
        watched = sum(arm in tuning.arms for arm in others) or "none"
        yield (
            f"Verified on {counted(len(others), 'arm')} beside the nominal one; the search had to "
            f"watch {watched} of them.{_worst_arm(tuning)}"
        )


def _worst_arm(tuning: Tuning) -> str:
    """Name the worst of the arms that count; not of an objective of the nominal arm alone."""
    if tuning.objective.nominal:
        return ""
    which = "The worst" if tuning.quantile is None else "Of those that count the worst"
    return f" {which} is {arm_words(tuning, tuning.worst_arm)}."


def _ended(tuning: Tuning) -> Iterator[str]:
    """Say where the search may have ended before a minimum, and how far apart its ends are."""
    best = tuning.starts[0] if tuning.starts and tuning.feasible else None
    if best is None:
        return
    aims = tuning.objective.metric == _SETTLING and best.status == "stalled"  # its usual end
    if best.status in _UNFINISHED and not aims:
        yield f"{_UNFINISHED[best.status]} may improve the result."
    last = max(one.round for one in tuning.starts)  # others were asked for less
    ends = [one.objective for one in tuning.starts if one.violation == 0 and one.round == last]
    if len(ends) > 1 and max(ends) - min(ends) > _APART * abs(min(ends)):
        units = units_for(tuning.after)
        first, last = (objective_value(tuning.objective, x, units) for x in (min(ends), max(ends)))
        yield (
            f"{len(ends)} of its searches ended between {first} and {last}; more starts (--starts) "
            "may find better ones."
        )


def _on_a_share(tuning: Tuning, unseen: Unseen, value: str) -> str:
    """Say what the objective is on the share of the arms that is asked for."""
    objective, share = tuning.objective, percent(tuning.quantile)
    name, key = objective_name(objective), objective.metric
    if unseen.objective == np.inf:
        lacking = "the tip settles" if key == _SETTLING else f"{name} has a finite value"
        return f"{lacking} on less than {share} of them"
    if unseen.objective == -np.inf:
        return f"on {share} of them {name} has no limit"
    more = key in MORE_IS_BETTER and objective.sums[0][str(key)] == 1
    return f"on {share} of them {name} is {'at least' if more else 'at most'} {value}"


def _unseen(tuning: Tuning, unseen: Unseen) -> Iterator[str]:
    worst, arms = arm_words(tuning, unseen.worst), counted(unseen.n, "arm")
    name = objective_name(tuning.objective)
    value = objective_value(tuning.objective, unseen.objective, units_for(tuning.after))
    none = "the loop is stable and its run succeeds"  # what is counted without limits
    every, some = ("all limits are kept", "limits are kept") if tuning.constraints else (none, none)
    if unseen.met == unseen.n and tuning.objective.nominal:
        yield f"On {arms} that tuning had not seen {every}."
        return
    if tuning.quantile is not None:
        said = "" if tuning.objective.nominal else f"{_on_a_share(tuning, unseen, value)}; "
        yield (
            f"Of {arms} that tuning had not seen, {some} on {unseen.met}; {said}the worst "
            f"is {worst}."
        )
        return
    if unseen.met == unseen.n:
        yield (
            f"On {arms} that tuning had not seen {every}; the worst, {worst}, has {name} {value}."
        )
        return
    if unseen.lost is None:
        why = f"there is no stable loop, or no full verdict, on {worst}"
    else:
        units = units_for(tuning.after)
        by = _by(unseen.lost, unseen.violation)
        why = f"on {worst}, the worst, {_short(unseen.lost, units)} is violated {by}"
    yield f"Of {arms} that tuning had not seen, {some} on {unseen.met}; {why}."
