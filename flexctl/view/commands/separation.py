"""``flexctl separation``: how soft an arm may be before a composite design is unstable on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl.robustness import Bound, TimeScaleMargin, time_scale_margin
from flexctl.view.json.margins import time_scale_json
from flexctl.view.options import SeparationOptions
from flexctl.view.output import Result, check_targets, literal, notes, plain_table, progress
from flexctl.view.provenance import provenance, redesigned
from flexctl.view.request import judged_on, load_arm, load_gain_set, truth_settings
from flexctl.view.words.margins import crossing, loop_title, swing, time_scale_words


def separate(options: SeparationOptions, model: str, word: str) -> Result:
    """Find what `flexctl separation` prints."""
    check_targets(options)
    arm = load_arm(model, options)
    design = load_gain_set(word, arm)
    judged = judged_on(options, arm, design)
    with progress() as say:
        margin = time_scale_margin(
            arm,
            design,
            **judged,
            fixed_damping=options.fixed_damping,
            progress=say,
        )
    answer = time_scale_json(margin)
    answer["truth"]["settings"] = truth_settings(options)
    answer["verdict"] = time_scale_words(margin)

    def figure() -> Any:
        from flexctl.view.figures.separation import plot_separation

        return plot_separation(margin)

    made = provenance(
        model, [design], gains=lambda: redesigned(arm, design, judged["design_basis"])
    )
    return Result(
        answer=answer,
        table=lambda: _table(margin, answer["verdict"]),
        figure=figure,
        provenance=made,
    )


def _table(margin: TimeScaleMargin, verdict: str) -> RenderableType:
    rows = [(label, value, literal(unit, "dim")) for label, value, unit in _rows(margin)]
    table = plain_table(loop_title(margin), "", "", "", rows=rows)
    columns = (margin.truth.kind, "s*", "what crosses", "")
    crossings = map(_crossing, margin.orders)
    orders = plain_table("Over truth orders", *columns, rows=crossings, numeric=(0, 1))
    return Group(table, orders, *notes(margin.assumptions), literal(verdict, "bold"))


def _crossing(bound: Bound) -> tuple[str, ...]:
    lost = np.isfinite(bound.frequency)
    what, at = (crossing(bound), swing(bound)) if lost else ("-", bound.why)
    return str(bound.order), _number(bound.s_star), what, at


def _rows(margin: TimeScaleMargin) -> list[tuple[str, str, str]]:
    """Figures of the worst bound, each with its label and unit; of no crossing, only s*."""
    worst = margin.worst
    label = "stiffness factor s* where stability is lost"
    if worst.refused:
        label = "stiffness factor s down to which it is stable"
    rows = [(label, _number(worst.s_star), "of the arm's")]
    if np.isfinite(worst.frequency):
        rows += [
            ("mu* (mu of the arm)", f"{_number(margin.mu_star)} ({margin.mu:.4g})", ""),
            ("what crosses there", crossing(worst), ""),
            ("at", _number(worst.frequency), "rad/s"),
            ("worst pose", f"t = {worst.t:.3g}", "s"),
            ("worst truth", f"{worst.order} {margin.truth.kind}", "per link and plane"),
        ]
    stable = "marginally" if margin.stable == "marginal" else "yes" if margin.stable else "no"
    return [
        *rows,
        ("stable at its own stiffness", stable, _judged(margin)),
        ("found by", "the guardian map" if worst.exact else "bracketing", ""),
    ]


def _judged(margin: TimeScaleMargin) -> str:
    """Name what was judged: poses of the motion and truth orders, as far as there are several."""
    several = {
        "poses": len({bound.t for bound in (*margin.path, *margin.orders)}) > 1,
        "orders": len({bound.order for bound in (*margin.path, *margin.orders)}) > 1,
    }
    kinds = [kind for kind, many in several.items() if many]
    return f"at all {' and '.join(kinds)}" if kinds else "at the only pose and order"


def _number(value: float) -> str:
    return f"{value:.5g}" if np.isfinite(value) else "-"
