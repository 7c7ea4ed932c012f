"""``flexctl separation``: how soft an arm may be before a composite design is unstable on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexctl.loop import Separation, find_separation
from flexctl.loop.separation.record import Bound
from flexctl.loop.softening import FixedDamping
from flexctl.view.options import Asked
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.provenance import provenance, redesigned
from flexctl.view.request import (
    basis_words,
    design_basis,
    load_arm,
    load_gains,
    truth_arm,
    truth_basis,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


def separate(asked: Asked, model: str, word: str, fixed_damping: FixedDamping) -> Result:
    """Find what `flexctl separation` prints."""
    check_targets(asked)
    arm = load_arm(model, asked)
    design = load_gains(word, arm)
    basis, as_it_is = design_basis(asked), truth_arm(arm, asked)
    with progress() as say:
        found = find_separation(
            arm,
            design,
            truth_arm=as_it_is,
            truth_basis=truth_basis(as_it_is, basis or design.basis, asked),
            design_basis=basis,
            fixed_damping=fixed_damping,
            progress=say,
        )
    answer = found.to_json()
    answer["truth"]["settings"] = [*asked.settings, *asked.truth_set]
    answer["verdict"] = verdict(found)

    def figure() -> Any:
        from flexctl.view.figures import plot_separation

        return plot_separation(found)

    made = provenance(model, [design], gains=lambda: redesigned(arm, design, basis))
    return Result(
        answer=answer, table=lambda: _table(found, answer), figure=figure, provenance=made
    )


def verdict(found: Separation) -> str:
    """Say in a sentence or two how far the arm is from losing its time scales."""
    worst, name = found.worst, f"{found.design} on {found.model}"
    where = f"on {worst.order} {found.truth.kind}, at the pose of t = {worst.t:.3g} s"
    if worst.why:
        return f"{name}: the loop is stable at no stiffness {where}: {worst.why}."
    if worst.refused:
        down = f"stable down to {worst.s_star:.3g} times the arm's stiffness"
        return f"{name}: {down}; softer arms were not judged: {worst.refused}."
    if not worst.s_star and not worst.exact:
        return f"{name}: no loss of stability was found at any stiffness that was tried."
    if not worst.s_star:
        return f"{name}: the loop is stable at every stiffness."
    crossing = f"{_crossing(worst)} {_swing(worst)} becomes unstable"
    if worst.s_star < 1:
        down = f"stable down to {worst.s_star:.3g} times the arm's stiffness"
        return f"{name}: {down}; below it {crossing} ({where})."
    own = (
        "unstable"
        if found.stable is False
        else "stable as it is, but unstable at some higher stiffness,"
    )
    return (
        f"{name}: {own} although both subsystems are stable: the time scales separate only above "
        f"{worst.s_star:.3g} times the arm's stiffness (below it {crossing} {where})."
    )


def _crossing(bound: Bound) -> str:
    return bound.what or "a mode"


def _swing(bound: Bound) -> str:
    """Name the frequency of what crosses, or say that it is a real eigenvalue."""
    return f"at {bound.frequency:.3g} rad/s" if bound.frequency else "(real eigenvalue)"


def _table(found: Separation, answer: dict[str, Any]) -> RenderableType:
    from rich.console import Group

    from flexctl.view.tables import literal, plain_table

    title = (
        f"{found.model}, judged on {basis_words(answer['truth'])} per link and plane, "
        f"{found.design} designed on {basis_words(answer['basis'])}"
    )
    table = plain_table(title, "", "", "")
    for label, value, unit in _rows(found):
        table.add_row(literal(label), literal(value), literal(unit, "dim"))
    orders = plain_table(
        "Over truth orders", found.truth.kind, "s*", "what crosses", "", numeric=(0, 1)
    )
    for bound in found.orders:
        lost = np.isfinite(bound.frequency)
        what, at = (_crossing(bound), _swing(bound)) if lost else ("-", bound.why)
        orders.add_row(str(bound.order), _number(bound.s_star), literal(what), literal(at))
    notes = [literal(f"- {assumption}", "dim") for assumption in found.assumptions]
    return Group(table, orders, *notes, literal(answer["verdict"], "bold"))


def _rows(found: Separation) -> list[tuple[str, str, str]]:
    """Figures of the worst bound, each with its label and unit; of no crossing, only s*."""
    worst = found.worst
    label = "stiffness factor s* where stability is lost"
    if worst.refused:
        label = "stiffness factor s down to which it is stable"
    rows = [(label, _number(worst.s_star), "of the arm's")]
    if np.isfinite(worst.frequency):
        rows += [
            ("mu* (mu of the arm)", f"{_number(found.mu_star)} ({found.mu:.4g})", ""),
            ("what crosses there", _crossing(worst), ""),
            ("at", _number(worst.frequency), "rad/s"),
            ("worst pose", f"t = {worst.t:.3g}", "s"),
            ("worst truth", f"{worst.order} {found.truth.kind}", "per link and plane"),
        ]
    stable = "marginally" if found.stable == "marginal" else "yes" if found.stable else "no"
    return [
        *rows,
        ("stable at its own stiffness", stable, _judged(found)),
        ("found by", "the guardian map" if worst.exact else "bracketing", ""),
    ]


def _judged(found: Separation) -> str:
    """Name what was judged: poses of the motion and truth orders, as far as there are several."""
    several = {
        "poses": len({bound.t for bound in (*found.path, *found.orders)}) > 1,
        "orders": len({bound.order for bound in (*found.path, *found.orders)}) > 1,
    }
    kinds = [kind for kind, many in several.items() if many]
    return f"at all {' and '.join(kinds)}" if kinds else "at the only pose and order"


def _number(value: float) -> str:
    return f"{value:.5g}" if np.isfinite(value) else "-"
