"""All remedies for a loop that tolerates less than is required, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flexctl.errors import InputError
from flexctl.robustness import Case, StiffnessMargin
from flexctl.search.added_damping import AddedDamping, AddedInertia, least_damping, least_inertia
from flexctl.search.bandwidth import (
    Bandwidth,
    SecondBandwidth,
    fastest_second_loop,
    largest_bandwidth,
)
from flexctl.search.bias_run import BiasRun, BiasRuns
from flexctl.search.other_arms import bias_on_softer_arms
from flexctl.search.remedies import bias_for, margin_intervals


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Changes with which a loop tolerates an overestimate of `expected` [-].

    Attributes
    ----------
    bias
        Deliberate underestimate [-], tried on arms softer by up to `expected`; None where none
        suffices.
    bias_run
        The nonlinear run with that bias; None without runs or without a bias.
    bandwidth
        Slower joint gains; None for a law that computes with no stiffness.
    second_loop
        A slower second loop; None without one.
    damping
        More damping of the links; None where no link bends.
    inertia
        More inertia at all joints; None for a law that computes with no stiffness.
    """

    expected: float
    bias: float | None
    bias_run: BiasRun | None
    bandwidth: Bandwidth | None
    second_loop: SecondBandwidth | None
    damping: AddedDamping | None
    inertia: AddedInertia | None


def find_remedies(
    case: Case,
    margin: StiffnessMargin,
    expected: float,
    progress: Callable[[str], None] | None = None,
    runs: BiasRuns | None = None,
) -> Remedies:
    """Find all remedies by which a loop tolerates an overestimate of its stiffness.

    Parameters
    ----------
    case
        Arm, design, and the number of poses of the motion that are judged.
    margin
        The stiffness margin of the unchanged loop.
    expected
        Required alpha_upper [-], above 0.
    progress
        Called with a sentence before every longer piece of work.
    runs
        Runs of the case, to simulate the bias; None for no simulation.

    Raises
    ------
    InputError
        When `expected` is not above 0 and finite.
    """
    if not 0 < expected < float("inf"):
        raise InputError(f"need: expected an overestimate above 0, got {expected:g}")
    say = progress or (lambda _words: None)
    say("remedies: a deliberate underestimate")
    bias = bias_for(margin_intervals(margin), expected)
    if bias is not None and margin.exact.unknowns:
        bias = bias_on_softer_arms(case, bias, expected)
    here = partial(
        Remedies, expected=expected, bias=bias, bias_run=runs.run(bias) if runs and bias else None
    )
    if not margin.exact.unknowns:
        return here(bandwidth=None, second_loop=None, damping=None, inertia=None)
    say("remedies: slower joint gains")
    bandwidth, second, damping = largest_bandwidth(case, expected), None, None
    if margin.second_loop:
        say("remedies: a slower second loop")
        second = fastest_second_loop(case, expected)
    if any(link.flexible for link in case.setup.design_arm.links):
        say("remedies: more damping")
        damping = least_damping(case, expected)
    say("remedies: more inertia at the joints")
    return here(
        bandwidth=bandwidth,
        second_loop=second,
        damping=damping,
        inertia=least_inertia(case, expected),
    )
