"""What a separation bound says in words: how far an arm is from losing its time scales."""

from __future__ import annotations

from flexctl.robustness import Bound, TimeScaleMargin


def time_scale_words(margin: TimeScaleMargin) -> str:
    """Say in a sentence or two how far the arm is from losing its time scales."""
    worst, name = margin.worst, f"{margin.design} on {margin.model}"
    where = f"on {worst.order} {margin.truth.kind}, at the pose of t = {worst.t:.3g} s"
    if worst.why:
        return f"{name}: the loop is stable at no stiffness {where}: {worst.why}."
    if worst.refused:
        down = f"stable down to {worst.s_star:.3g} times the arm's stiffness"
        return f"{name}: {down}; softer arms were not judged: {worst.refused}."
    if not worst.s_star and not worst.exact:
        return f"{name}: no loss of stability was found at any stiffness that was tried."
    if not worst.s_star:
        return f"{name}: the loop is stable at every stiffness."
    lost = f"{crossing(worst)} {swing(worst)} becomes unstable"
    if worst.s_star < 1:
        down = f"stable down to {worst.s_star:.3g} times the arm's stiffness"
        return f"{name}: {down}; below it {lost} ({where})."
    own = (
        "unstable"
        if margin.stable is False
        else "stable as it is, but unstable at some higher stiffness,"
    )
    return (
        f"{name}: {own} although both subsystems are stable: the time scales separate only above "
        f"{worst.s_star:.3g} times the arm's stiffness (below it {lost} {where})."
    )


def crossing(bound: Bound) -> str:
    """Name what becomes unstable."""
    return bound.motion or "a mode"


def swing(bound: Bound) -> str:
    """Name the frequency of what crosses, or say that it is a real eigenvalue."""
    return f"at {bound.frequency:.3g} rad/s" if bound.frequency else "(real eigenvalue)"
