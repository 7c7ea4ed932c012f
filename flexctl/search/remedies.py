"""Remedies for a loop that tolerates less than is required, side by side.

Feedback through a wrong stiffness adds energy to or removes it from every mode that its torques
excite, the more the larger the gains are; lower gains therefore tolerate a larger error. To first
order a mode becomes unstable at alpha = zeta w / Re(d lambda/d alpha), proportional to its damping;
with more inertia the same error of the torques accelerates the joints less. Damping and inertia
change the true arm and the design arm. None of this is monotone: see `search.one_number`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flexctl.control import make_reference
from flexctl.errors import InputError
from flexctl.model import written_ratios
from flexctl.robustness import Case, StiffnessMargin
from flexctl.search.bias_advice import bias_for, bias_on_softer_arms, common_ends
from flexctl.search.bias_run import BiasRun, BiasRuns
from flexctl.search.changed_loops import (
    EFFORT,
    over_damping,
    over_effort,
    over_gains,
    over_inertia,
    scaled_gains,
)
from flexctl.search.one_number import Searched, log_grid, search_over

# values tried: the least, the largest, and how many per decade
SCALES = (0.01, 20.0, 20)  # of the joint loop's bandwidth, in units of the design's
EFFORTS = (1e-4, 1e4, 3)  # of the effort weight of a second loop, in units of the design's
RATIOS = (1e-3, 0.3, 6)  # of damping
INERTIAS = (0.01, 100.0, 3)  # in units of the arm's own


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """The value of one number with which a loop tolerates a required overestimate.

    Attributes
    ----------
    searched
        The search over that number.
    means
        What the answer, or else the best value, amounts to, by name; None where there is none.
    """

    searched: Searched
    means: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Changes with which a loop tolerates an overestimate of `until` [-].

    Attributes
    ----------
    until
        Required alpha_upper [-].
    bias
        Deliberate underestimate [-], tried on arms softer by up to `until`; None where none
        suffices.
    bias_run
        The nonlinear run with that bias; None without runs or without a bias.
    found
        For a law that computes with a stiffness "bandwidth" of the joint gains, where they act, and
        "inertia" at all joints, "second_loop" where there is one, "damping" where a link bends.
    """

    until: float
    bias: float | None
    bias_run: BiasRun | None
    found: Mapping[str, Remedy] = field(default_factory=dict[str, Remedy])


def find_remedies(
    case: Case,
    margin: StiffnessMargin,
    until: float,
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
    until
        Required alpha_upper [-], above 0.
    progress
        Called with a sentence before every longer piece of work.
    runs
        Runs of the case, to simulate the bias; None for no simulation.

    Raises
    ------
    InputError
        When `until` is not above 0 and finite.
    """
    if not 0 < until < float("inf"):
        raise InputError(f"need: expected an overestimate above 0, got {until:g}")
    say = progress or (lambda _words: None)
    say("remedies: a deliberate underestimate")
    ends = common_ends(margin)
    bias = bias_for(ends, until) if ends else None
    if bias is not None and margin.exact.unknowns:
        bias = bias_on_softer_arms(case, bias, until)
    searches, second = {}, case.design.second_loop
    if not case.design.follows_path:  # or joint gains do nothing
        searches["bandwidth"] = ("slower joint gains", largest_bandwidth)
    if margin.second_loop and second and second.weights:  # a given gain has no effort
        searches["second_loop"] = ("a slower second loop", fastest_second_loop)
    if any(link.flexible for link in case.setup.design_arm.links):
        searches["damping"] = ("more damping", least_damping)
    searches["inertia"] = ("more inertia at the joints", least_inertia)
    found = dict[str, Remedy]()
    for name, (words, find) in searches.items() if margin.exact.unknowns else ():
        say(f"remedies: {words}")
        found[name] = find(case, until)
    run = runs.run(bias) if runs and bias else None
    return Remedies(until=until, bias=bias, bias_run=run, found=found)


def largest_bandwidth(case: Case, until: float) -> Remedy:
    """Find the largest bandwidth at which the gross motion has alpha_upper >= `until`.

    s times the bandwidth at the same damping ratios is s^2 Gp, s Gv, s^3 Gi. The loop is judged at
    the final pose and along the motion under the law of the gross motion; s of `SCALES`, 12 %
    apart, are tried in descending order, and a narrower band is missed. Above the frequencies of
    the modes alpha_upper rises again with s, so a wide range may give gains that no actuator can
    realise: torque limits and unmodelled dynamics are not judged.
    """

    def faster(s: float) -> dict[str, float]:
        return {"Gp": s**2, "Gv": s, "Gi": s**3}

    searched = search_over(over_gains(case, faster), log_grid(*SCALES)[::-1], until, own=1.0)
    best = searched.best
    gains = scaled_gains(case.design, faster(best.value)) if best else {}
    return Remedy(
        searched=searched, means={name: gains.get(f"gains.{name}") for name in ("Gp", "Gv")}
    )


def fastest_second_loop(case: Case, until: float) -> Remedy:
    """Find the least effort weight at which the second loop has alpha_upper >= `until`.

    The smaller the weight, the faster the loop: factors of it are tried in ascending order, at the
    final pose. Where unmodelled modes make the loop unstable even without an error, the answer is
    close to that limit, as its `alpha_lower` near 0 shows, and a slower loop is advisable.
    `slowest` and `fastest` are the real parts [1/s] of poles of that loop on its design plant.
    """
    searched = search_over(over_effort(case), log_grid(*EFFORTS), until, own=1.0)
    second, best = case.design.second_loop, searched.best
    if best is None or second is None or second.weights is None:
        return Remedy(searched=searched, means=dict.fromkeys(("effort", "slowest", "fastest")))
    effort = best.value * second.weights.effort
    feedback = case.closed.at({EFFORT: effort}).controller.feedback
    assert feedback is not None
    decays = feedback.poles.real
    means = {"effort": effort, "slowest": decays.max(), "fastest": decays.min()}
    return Remedy(searched=searched, means=means)


def least_damping(case: Case, until: float) -> Remedy:
    """Find the least damping ratio of all links with alpha_upper >= `until` at the worst pose.

    0 is tried first, then `RATIOS` in ascending order; a narrower band of suitable ratios is
    missed. Dampers of springs do not change. `own` has the ratios of the arm's file.
    """
    searched = search_over(over_damping(case), [0.0, *log_grid(*RATIOS)], until)
    return Remedy(searched=searched, means={"own": written_ratios(case.setup.true_arm)})


def least_inertia(case: Case, until: float) -> Remedy:
    """Find the least inertia to add to `joint_inertia` with alpha_upper >= `until`.

    Each joint receives the same multiple of the inertia of the arm about it at the final pose, all
    other coordinates held, as turning and sliding joints have different units. 0 is tried first,
    then `INERTIAS` in ascending order; a narrower band is missed. Joint gains, which are
    accelerations per error, do not change, so torques grow with the inertia. `added` is the answer
    at each of `joints` [kg m^2 or kg].
    """
    truth, joints = case.truth, case.setup.design_arm.joints
    M = truth.mass_matrix(truth.straight(make_reference(case.design).final))
    own = {joint: float(M[row, row]) for row, joint in enumerate(truth.joints) if joint in joints}
    searched = search_over(over_inertia(case, own), [0.0, *log_grid(*INERTIAS)], until)
    answer = searched.answer
    added = tuple(answer.value * J for J in own.values()) if answer else None
    return Remedy(searched=searched, means={"joints": joints, "added": added})
