"""Remedies for a loop that tolerates less than is required, side by side.

Feedback through a wrong stiffness adds energy to or removes it from every mode that its torques
excite, the more the larger the gains are; lower gains therefore tolerate a larger error. To first
order a mode becomes unstable at alpha = zeta w / Re(d lambda/d alpha), proportional to its damping;
with more inertia the same error of the torques accelerates the joints less. Damping and inertia
change the true arm and the design arm; gains that a design computes itself, of a second loop or an
observer, are redesigned. None of this is monotone: see `search.tolerance_search`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flexctl.control import make_reference
from flexctl.errors import InputError
from flexctl.model import Design, Gains, with_inertia, written_ratios
from flexctl.robustness import Case, StiffnessMargin
from flexctl.search.bias_advice import bias_for, bias_on_softer_arms, margin_intervals
from flexctl.search.bias_run import BiasRun, BiasRuns
from flexctl.search.tolerance_search import Requirement, first_to_tolerate, log_grid
from flexctl.search.variants import (
    damped,
    faster,
    gain_families,
    rebuilt,
    scale_gains,
    under_gains,
)

# values tried: the least, the largest, and how many per decade
SCALES = (0.01, 20.0, 20)  # of the joint loop's bandwidth, in units of the design's
EFFORTS = (1e-4, 1e4, 3)  # of the effort weight of a second loop, in units of the design's
RATIOS = (1e-3, 0.3, 6)  # of damping
INERTIAS = (0.01, 100.0, 3)  # in units of the arm's own


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """The largest bandwidth s of the joint loop that tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Requirement on s [-], the factor of the joint loop's bandwidth: s^2 Gp, s Gv, s^3 Gi; 1 is
        the design.
    gains
        Joint gains at the answer, or else at the best value; None where no s is stable.
    """

    requirement: Requirement
    gains: Gains | None


@dataclass(frozen=True, kw_only=True)
class SecondBandwidth:
    """The least effort weight of a second loop with which it tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Requirement on the factor of the effort weight [-]; 1 is the design. The smaller the weight,
        the faster the loop.
    effort
        Effort weight at the answer, or else at the best value; None where none is stable.
    slowest, fastest
        Poles [rad/s] of that loop on its design plant with the largest and the least real part; NaN
        where none is stable.
    """

    requirement: Requirement
    effort: float | None
    slowest: complex
    fastest: complex


@dataclass(frozen=True, kw_only=True)
class AddedDamping:
    """The least damping ratio of all links with which a loop tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Requirement on the damping ratio [-] of all modes of all links, known to the controller.
    own
        Damping ratios of the flexible links in the arm's file [-].
    """

    requirement: Requirement
    own: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class AddedInertia:
    """The least inertia to add at all joints so that a loop tolerates a required overestimate.

    Attributes
    ----------
    joints
        Names of the joints.
    requirement
        Requirement on the inertia added at each joint, in units of `own`.
    own
        Inertia of the arm about each joint at the final pose, all other coordinates held [kg m^2,
        or kg for a sliding joint].
    """

    joints: tuple[str, ...]
    requirement: Requirement
    own: tuple[float, ...]

    @property
    def added(self) -> tuple[float, ...] | None:
        """Inertia to add at each joint [kg m^2 or kg]; None where no inertia suffices."""
        answer = self.requirement.answer
        return tuple(answer.value * own for own in self.own) if answer else None


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


def largest_bandwidth(case: Case, expected: float) -> Bandwidth:
    """Find the largest s of `SCALES` at which the gross motion has alpha_upper >= `expected`.

    The loop is judged at the final pose and along the motion under the law of the gross motion;
    values 12 % apart are tried in descending order, and a narrower band is missed. Above the
    frequencies of the modes alpha_upper rises again with s, so a wide range may give gains that no
    actuator can realise: torque limits and unmodelled dynamics are not judged.
    """
    families = gain_families(case)
    requirement = first_to_tolerate(
        lambda s: under_gains(families, faster(s)), log_grid(*SCALES)[::-1], expected, own=1.0
    )
    best = requirement.best
    gains = scale_gains(case.design.joint_gains, faster(best.value)) if best else None
    return Bandwidth(requirement=requirement, gains=gains)


def fastest_second_loop(case: Case, expected: float) -> SecondBandwidth:
    """Find the least effort weight at which the second loop has alpha_upper >= `expected`.

    The loop is redesigned for every weight, in ascending order, and judged at the final pose. Where
    unmodelled modes make it unstable even without an error, the answer is close to that limit, as
    its `alpha_lower` near 0 shows, and a slower loop is advisable.
    """
    final = replace(case, n_path=0)
    loops = rebuilt(lambda factor: replace(final, design=with_effort(case.design, factor)))
    requirement = first_to_tolerate(loops, log_grid(*EFFORTS), expected, own=1.0)
    if requirement.best is None:
        return SecondBandwidth(requirement=requirement, effort=None, slowest=np.nan, fastest=np.nan)
    best = with_effort(case.design, requirement.best.value)
    feedback = case.close(best).controller.feedback
    assert feedback is not None
    assert best.second_loop is not None
    ordered = feedback.poles[np.argsort(feedback.poles.real)]
    return SecondBandwidth(
        requirement=requirement,
        effort=best.second_loop.weights.effort,
        slowest=complex(ordered[-1]),
        fastest=complex(ordered[0]),
    )


def with_effort(design: Design, factor: float) -> Design:
    """Return a design with the effort weight of its second loop multiplied by `factor`."""
    second = design.second_loop
    assert second is not None
    weights = second.weights.model_copy(update={"effort": factor * second.weights.effort})
    changed = second.model_copy(update={"weights": weights})
    return design.model_copy(update={"second_loop": changed})


def least_damping(case: Case, expected: float) -> AddedDamping:
    """Find the least damping ratio of all links with alpha_upper >= `expected` at the worst pose.

    0 is tried first, then `RATIOS` in ascending order; a narrower band of suitable ratios is
    missed. Dampers of springs do not change.
    """
    requirement = first_to_tolerate(damped(case), [0.0, *log_grid(*RATIOS)], expected)
    return AddedDamping(requirement=requirement, own=written_ratios(case.setup.true_arm))


def least_inertia(case: Case, expected: float) -> AddedInertia:
    """Find the least inertia to add to `joint_inertia` with alpha_upper >= `expected`.

    Each joint receives the same multiple of the inertia of the arm about it, as turning and sliding
    joints have different units. 0 is tried first, then `INERTIAS` in ascending order; a narrower
    band is missed. Joint gains, which are accelerations per error, do not change, so torques grow
    with the inertia.
    """
    truth, joints = case.truth, case.setup.design_arm.joints
    M = truth.mass_matrix(truth.straight(make_reference(case.design).final))
    rows = [truth.joints.index(joint) for joint in joints]
    own = dict(zip(joints, M[rows, rows].tolist(), strict=True))

    def heavier(factor: float) -> Case:
        return case.changed(lambda arm: with_inertia(arm, {j: factor * J for j, J in own.items()}))

    return AddedInertia(
        joints=joints,
        requirement=first_to_tolerate(rebuilt(heavier), [0.0, *log_grid(*INERTIAS)], expected),
        own=tuple(own.values()),
    )
