"""Closed loops of controllers with a wrong stiffness, rebuilt number by number: no linear form."""

import numpy as np

from flexctl.control import design_controller, design_on
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_at, linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from tests.arms import wrong_plant


def unknown_loop(arm, design, basis, truth):
    """Loop of a controller whose stiffness errors are free."""
    free = ("stiffness_error",)
    controller = design_controller(arm, design, basis, interpreted=True, parameters=free)
    return close_around(controller, truth)


def rebuilt_loop(arm, design, basis, truth, errors):
    """Loop of a controller made with these numbers; one for all parts, or one each."""
    return close_around(design_on(wrong_plant(arm, basis, errors), design), truth)


def final(loop):
    """Where a loop is judged: joints (m,) and share of the second loop."""
    return loop.controller.reference.final, float(loop.controller.feedback is not None)


def matrix(loop, errors=None, at=None, rest=None):
    """State matrix (N, N), of one sample if it is sampled; errors (p,) that are free.

    At `rest` if one is passed, which need not be the equilibrium of the loop.
    """
    joints, share = at or final(loop)
    loop = loop if errors is None else loop.at({"stiffness_error": errors})
    linear = linearise_at(loop, rest, share) if rest else linearise_loop(loop, joints, share)
    if linear.sampled:
        return sampled_loop(linear, linear.sample_time, linear.delay)
    return linear.A + linear.B @ linear.K


def growth(loop, errors=None):
    """How unstable a loop is: largest real part [1/s], or |multiplier| - 1 of a sampled one."""
    values = np.linalg.eigvals(matrix(loop, errors))
    return float(np.abs(values).max() - 1 if loop.controller.sample_time else values.real.max())


def all_parts(loop, alpha):
    """The error alpha of every part (p,) of a loop whose errors are free."""
    return np.full(len(loop.controller.plant.stiffness_parts), alpha)


def bisect(unstable, inside, outside, relative=1e-9):
    """Where `unstable(alpha)` turns true between two errors."""
    assert unstable(outside)
    assert not unstable(inside)
    while abs(outside - inside) > relative * abs(outside):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if unstable(middle) else (middle, outside)
    return (inside + outside) / 2


def ends(interval):
    """Ends of an interval that something loses, away from 0."""
    found = (interval.lower, interval.upper)
    return [end.alpha for end in found if end is not None and end.alpha]


def scan(interval, count, least=-0.99, most=20.0):
    """Errors (count,) in an interval, cut where it never ends."""
    low, high = max(interval.alpha_lower, least), min(interval.alpha_upper, most)
    return np.linspace(low, high, count + 2)[1:-1]
