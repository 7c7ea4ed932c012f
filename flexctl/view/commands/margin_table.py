"""The tables of `flexctl margin` in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from flexctl.loop import in_words
from flexctl.robustness import (
    IndependentErrorsAt,
    Interval,
    ModeRate,
    OrderMargin,
    StabilityLimit,
    StiffnessMargin,
)
from flexctl.search import Remedies, Searched
from flexctl.view.output import literal, notes, number, plain_table
from flexctl.view.words.bias import strays
from flexctl.view.words.margins import (
    all_grow,
    bound_words,
    certified_range,
    grown,
    independent_of_errors,
    judged_where,
    largest_errors,
    lemma_words,
    loop_title,
    lost_words,
    no_stiffness,
    place_words,
    share_words,
)
from flexctl.view.words.numbers import (
    MOST,
    basis_words,
    counted,
    decay,
    growth,
    lost_at,
    percent,
    tolerated_above,
    tolerated_below,
)

_N_RATES = 6  # rows
_N_ERRORS = 8
_REMEDIES = {
    "bandwidth": "bandwidth of the joint gains, times",
    "second_loop": "effort of the second loop (at the final pose alone), times",
    "damping": "damping ratio of all links",
    "inertia": "inertia added at every joint, times the arm's own about it",
}


def margin_table(
    margin: StiffnessMargin, verdict: str, remedies: Remedies | None = None
) -> RenderableType:
    """Put everything found under each other, the verdict last."""
    where = judged_where(margin)
    columns = ("stiffness", "tolerated", "limit", "of", "at rad/s")
    parts = [plain_table(loop_title(margin), *columns, rows=_rows(margin, where))]
    if margin.rates and not independent_of_errors(margin.exact):
        parts.append(_rates(margin, where))
    parts += [_independent(at) for at in margin.independent]
    if margin.orders:
        title = f"The gain set designed on other plants, {where}"
        columns = ("designed on", "overestimate tolerated", "underestimate", "lemma", "limit")
        parts.append(plain_table(title, *columns, rows=map(_order, margin.orders)))
    if remedies:
        parts.append(_remedies(remedies, margin))
    lemma = [
        f"lemma: {one.text}{'' if one.holds else ' (does not hold here)'}"
        for one in margin.lemma.assumptions
        if not no_stiffness(margin)
    ]
    said = notes([*lemma, *margin.assumptions])
    return Group(*parts, *said, literal(verdict, "bold"))


def _remedies(remedies: Remedies, margin: StiffnessMargin) -> Table:
    """Say of every remedy how much of it is needed, or that none is effective."""
    where = "at the final pose and along the motion" if margin.path else "at the final pose"
    title = f"Remedies with which an overestimate of {percent(remedies.until)} is tolerated"
    bias = "not needed" if remedies.bias == 0 else percent(remedies.bias)
    bias = "none found" if remedies.bias is None else bias
    ran = strays(remedies.bias_run) if remedies.bias_run else ""
    rows = [(_REMEDIES[name], *_searched(found.searched)) for name, found in remedies.found.items()]
    bias_row = ("deliberate underestimate of K_hat", bias, ran)
    return plain_table(f"{title} {where}", "", "", "", rows=[bias_row, *rows])


def _searched(searched: Searched) -> tuple[str, str]:
    """Answer and what it tolerates, or what the best one tried does."""
    best = searched.best
    tolerated = best and (
        f"tolerated overestimates: {tolerated_above(best.alpha_upper)}, "
        f"underestimates: {tolerated_below(best.alpha_lower)}"
    )
    if searched.answer is not None:
        edge = " (the first tried)" if searched.fails is None else ""
        return f"{searched.answer.value:.4g}{edge}", tolerated or ""
    span = f"{min(searched.values):.3g} .. {max(searched.values):.3g}"
    best_words = f"; the best, {best.value:.3g}, {tolerated}" if best is not None else ""
    return "none found", f"in {span}{best_words}"


def _rows(margin: StiffnessMargin, where: str) -> Iterator[tuple[str, ...]]:
    """Both margins above, then the exact one below, each at the judged and at the worst pose."""
    lemma, exact = margin.lemma, margin.exact
    none = lemma.loss == "none" or no_stiffness(margin)
    seen = "-" if none else lemma.loss
    block = "" if none else f"lambda_max(H) = {lemma.lambda_max:.4g}"
    yield "overestimate, lemma alpha*", lemma_words(margin), seen, block, ""
    lost = [pose for pose in margin.path if pose.interval is None]
    there = f"at the {'worst of the stable poses' if lost else 'worst pose'}"
    yield _above(exact, where)
    if (pose := margin.worst) and pose.interval:
        yield _above(pose.interval, f"{there}, t = {pose.t:.3g} s")
    yield _below(exact, where)
    if (pose := margin.worst_below) and pose.interval:
        yield _below(pose.interval, f"{there}, t = {pose.t:.3g} s")
    yield from _certified(margin, where)
    if margin.assumed_stiffness:
        at = margin.assumed_stiffness.worst
        limit = at.interval.upper if at.interval else None
        ends = _lost(limit) if limit else ("-", in_words(at.mode), "")
        share = f"{'yes' if at.stable else 'no'}, {share_words(at)}"
        yield f"given stiffness, {place_words(at, where)}", share, *ends
    if lost:
        what = "unstable without error" if all_grow(lost) else "no margin"
        label = f"{what} at {len(lost)} of {counted(len(margin.path), 'pose')}"
        yield label, "none", "", grown(lost[0]), ""


def _certified(margin: StiffnessMargin, where: str) -> Iterator[tuple[str, ...]]:
    """Write what is proven in interval arithmetic, at the judged pose and along the motion."""
    here, along, label = margin.certified, margin.certified_along, "proven in interval arithmetic"
    if here is None:
        return
    if here.alpha_lower is None or here.alpha_upper is None:
        yield f"{label} {where}", "nothing", "-", here.why, ""
    else:
        pieces = f"in {here.pieces} pieces" if here.pieces > 1 else "in one piece"
        short = f", {here.why}" if here.why else ""
        proven = certified_range(here.alpha_lower, here.alpha_upper)
        yield f"{label} {where}", proven, "-", f"{pieces}{short}", ""
    if along:
        yield f"{label} at all poses of the motion", certified_range(*along), "-", "", ""


def _above(interval: Interval, at: str) -> tuple[str, ...]:
    tolerated = tolerated_above(interval.alpha_upper)
    return f"overestimate, {_how(interval)} {at}", tolerated, *_lost(interval.upper)


def _below(interval: Interval, at: str) -> tuple[str, ...]:
    tolerated = tolerated_below(interval.alpha_lower)
    return f"underestimate, {_how(interval)} {at}", tolerated, *_lost(interval.lower)


def _how(interval: Interval) -> str:
    """Tell an end that is proven from one found by continuation of an equilibrium that moves."""
    return "exact" if interval.proven else "by continuation"


def _lost(loss: StabilityLimit | None) -> tuple[str, str, str]:
    if loss is None:
        return "-", "", ""
    return loss.kind, in_words(loss.mode), number(loss.frequency) if loss.frequency else ""


def _rates(margin: StiffnessMargin, where: str) -> Table:
    title = f"Fastest-growing modes to first order {where}: a guide, the margin is above"
    columns = ("mode", "at rad/s", "decay 1/s", "loss of decay per 1 %")
    columns = (*columns, "no decay left at (first order)")
    rows = (
        (
            in_words(rate.mode),
            number(rate.value.imag),
            number(decay(rate), 3),
            number(growth(rate) / 100, 3) if growth(rate) > 0 else "-",
            _all_lost(rate),
        )
        for rate in margin.rates[:_N_RATES]
    )
    return plain_table(title, *columns, rows=rows, numeric=(1, 2, 3, 4))


def _all_lost(rate: ModeRate) -> str:
    """Write where a mode's decay is used up, no further than a derivative at 0 tells."""
    at = lost_at(rate)
    return f"over {percent(MOST)}" if MOST < at < np.inf else percent(at)


def _independent(at: IndependentErrorsAt) -> Table:
    bounds, worst = at.bounds, at.bounds.worst_case
    table = plain_table(bound_words(at), "worst case found, error of", "size", numeric=(1,))
    if worst is None:
        undamped = bounds.guaranteed_fraction == 0 and not bounds.stopped
        why = "none needed: an undamped mode lies on the imaginary axis"
        table.add_row(why if undamped else "no physical one found", "-")
        return table
    errors = largest_errors(at)
    for name, error in errors[:_N_ERRORS]:
        table.add_row(literal(in_words(name)), f"{100 * error:+.3g} %")
    if more := len(at.worst_errors) - len(errors[:_N_ERRORS]):
        cut = len(errors) >= _N_ERRORS
        table.add_row(*((f"{more} more, none larger", "") if cut else ("all others", "0 %")))
    by = "the holding torque" if at.ends == "torque" else "eigenvalues"
    verified = f"verified by {by}" if worst.verified else "not verified"
    if at.run:
        rates = f"{at.run.rate:.4g} 1/s, linear {at.run.eigenvalue.real:.4g} 1/s"
        verified += f"; a nonlinear run 5 % beyond it grows at {rates}"
    lost = f"{lost_words(at)}, {verified}"
    table.add_row(literal(lost, "dim"), "")
    return table


def _order(order: OrderMargin) -> tuple[str, ...]:
    made = basis_words(order.basis.described())
    star = percent(order.alpha_star) if not np.isinf(order.alpha_star) else "infinity"
    if order.interval is None:
        return made, "unstable" if np.isfinite(order.abscissa) else "-", "", star, order.why
    interval = order.interval
    lost = in_words(interval.upper.mode) if interval.upper else ""
    return (
        made,
        tolerated_above(interval.alpha_upper),
        tolerated_below(interval.alpha_lower),
        star,
        lost,
    )
