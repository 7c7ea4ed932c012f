"""What margins say in words: gain and delay, how wrong the stiffness may be, how soft the arm."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

import numpy as np

from flexctl.loop import in_words
from flexctl.robustness import (
    AssumedAtPose,
    AssumedStiffness,
    Bound,
    Certificate,
    Guaranteed,
    IndependentErrorsAt,
    Interval,
    PoseMargin,
    StiffnessMargin,
    TimeScaleMargin,
)
from flexctl.verdict import SensorMargins, StabilityMargins
from flexctl.view.words.numbers import (
    ALMOST_ALL,
    basis_words,
    counted,
    figure,
    growth_words,
    limit_words,
    percent,
)
from flexctl.view.words.responses import reading_name

_AT_THE_END = 1.02  # of a guaranteed range: a worst case there is what ends it
_FEW = 3  # errors of a worst case that a sentence names
_NO_ERROR = 1e-9  # round-off of a search
_LESS = 0.98  # of another margin: the difference is worth a word


def stability_margin_words(margins: StabilityMargins) -> str:
    """Say the stability margins of every joint, and of all joints together."""
    joints = zip(margins.gain_db, margins.phase_deg, margins.delay_seconds, strict=True)
    each = [
        f"joint{k + 1}: {_limited(gain, 1, 'dB')}, {_limited(phase, 1, 'deg')}, "
        f"{_limited(delay, 1e3, 'ms of delay')}"
        for k, (gain, phase, delay) in enumerate(joints)
    ]
    bound = " Delay margins are upper bounds." if margins.delay_may_be_less else ""
    return (
        f"Stability margins at {'; '.join(each)}. All joints together: "
        f"{_limited(margins.common_delay_seconds, 1e3, 'ms of delay')}, disk margin "
        f"{margins.disk:.3g} (smallest at {figure(margins.disk_frequency)} rad/s). Sensitivity "
        f"peaks: Ms {margins.joint_sensitivity_peak.max():.3g}, Mt "
        f"{margins.joint_complementary_peak.max():.3g} of one joint.{bound}"
    )


def sensor_margin_words(margins: SensorMargins) -> str:
    """Say the stability margins of every reading, and of all readings together."""
    readings = zip(
        margins.readings, margins.gain_db, margins.phase_deg, margins.delay_seconds, strict=True
    )
    each = [
        f"{reading_name(name)}: {_limited(gain, 1, 'dB')}, {_limited(phase, 1, 'deg')}, "
        f"{_limited(delay, 1e3, 'ms of delay')}"
        for name, gain, phase, delay in readings
    ]
    bound = " Delay margins are upper bounds." if margins.delay_may_be_less else ""
    return (
        f"Stability margins at the sensors, {'; '.join(each)}. All readings together: disk margin "
        f"{margins.disk:.3g} (smallest at {figure(margins.disk_frequency)} rad/s). Sensitivity "
        f"peaks: Ms {margins.reading_sensitivity_peak.max():.3g}, Mt "
        f"{margins.reading_complementary_peak.max():.3g} of one reading.{bound}"
    )


def _limited(value: float, factor: float, unit: str) -> str:
    if np.isfinite(value):
        return f"{factor * value:.3g} {unit}"
    return f"no limit in {unit.removeprefix('ms of ')}"


def certificate_words(certificate: Certificate) -> str:
    """Say what a certificate proves, and of what."""
    error, bound = certificate.relative_error, certificate.spectral_abscissa
    of_all = f"for all loops whose entries differ by up to {error:.3g} of their size"
    about = of_all if error else "for this loop"
    if not np.isfinite(bound) and not certificate.proven:
        return f"Not proven to be stable: no bound was found {about}. It may still be stable."
    decays = f"every disturbance decays at {_at_least(-bound):.4g} 1/s at least"
    grows = f"no disturbance grows faster than at {-_at_least(-bound):.4g} 1/s"
    proven = f"roven in interval arithmetic {about}: {decays if bound < 0 else grows}."
    if certificate.proven:
        return f"P{proven}"
    if bound < 0:  # stable, but slower than wanted
        wanted = f"{certificate.decay:.4g} 1/s"
        return f"A decay at {wanted} is not proven. P{proven} It may still be faster."
    return f"Not proven to be stable. P{proven} It may still be stable."


def _at_least(value: float) -> float:
    """Round to three significant digits, never upwards."""
    if not value or not np.isfinite(value):
        return value
    digits = Decimal(repr(float(value)))
    unit = Decimal(1).scaleb(digits.adjusted() - 2)
    return float(digits.quantize(unit, rounding=ROUND_FLOOR))


def bound_words(at: IndependentErrorsAt) -> str:
    """Say what independent errors may be, and how that is known."""
    bounds, about = at.bounds, f"Independent errors at {at.where}"
    if bounds.stopped and not bounds.guaranteed_fraction:
        return f"{about}: no bound was found, as {bounds.stopped} (--time-limit)"
    proof = "proven" if bounds.proven else "not proven at every frequency"
    proof = f"proven so far; {bounds.stopped}" if bounds.stopped else proof
    peak = f"; mu peak {bounds.mu_peak:.4g} {_at(bounds.frequency)}"
    if bounds.followed:
        proof, peak = "by continuation, not proven", ""
    ranges = ", ".join(map(range_words, at.guaranteed))
    alone = [one.kind for one in at.guaranteed] == ["payload"]  # a single number
    tolerated = f"{ranges} is tolerated" if alone else f"all of {ranges} together are tolerated"
    return f"{about}: {tolerated} ({proof}{peak})"


def lost_words(at: IndependentErrorsAt) -> str:
    """Say what a worst case of independent errors does."""
    worst = at.bounds.worst_case
    if at.ends == "torque":
        return f"exceeds the torque limit of {in_words(at.mode)}"
    if at.ends == "fold":
        return f"ends the equilibrium in a fold, critical mode {in_words(at.mode)}"
    return f"destabilises {in_words(at.mode)} {_at(worst.frequency if worst else np.nan)}"


def _at(frequency: float) -> str:
    return (
        f"at {figure(frequency, 4)} rad/s" if np.isfinite(frequency) else "at no finite frequency"
    )


def range_words(guaranteed: Guaranteed) -> str:
    """Name a range of errors, rounded towards 0: ``payload +-4.5 %``, or from its physical end."""
    below = "any physical value from -100 % up to +" if guaranteed.any_below else "+-"
    return f"{guaranteed.kind} {below}{percent(_at_least(guaranteed.upper))}"


def lemma_words(margin: StiffnessMargin) -> str:
    """Write alpha* with the order of its basis, without which it means nothing.

    A law that uses no stiffness has none.
    """
    if no_stiffness(margin):
        return "does not apply"
    alpha = margin.lemma.alpha_star
    size = percent(alpha) if np.isfinite(alpha) else "infinity"
    return f"{size} ({basis_words(margin.basis.described())})"


def grown(pose: PoseMargin) -> str:
    """Say what grows at a pose that is unstable without an error, or why it has no margin."""
    return str(pose.growing or pose.reason)


def all_grow(lost: Sequence[PoseMargin]) -> bool:
    """Whether poses without a margin are all unstable, and none of them is without a rest."""
    return all(pose.growing for pose in lost)


def judged_where(margin: StiffnessMargin) -> str:
    """Say at which pose was judged, in a sentence: ``at the final pose under the second loop``."""
    where = "at the chosen pose" if margin.pose_chosen else "at the final pose"
    return where + " under the second loop" if margin.second_loop else where


def judged_pose(margin: StiffnessMargin) -> str:
    """Name the judged pose, in a title or a legend: ``final pose, second loop``."""
    pose = "chosen pose" if margin.pose_chosen else "final pose"
    return pose + ", second loop" if margin.second_loop else pose


def loop_title(margin: StiffnessMargin | TimeScaleMargin) -> str:
    """Name loop and discretisations, as the title of a table."""
    truth, basis = (basis_words(one.described()) for one in (margin.truth, margin.basis))
    return (
        f"{margin.model}, judged on {truth} per link and plane, {margin.design} designed on {basis}"
    )


def margin_words(margin: StiffnessMargin, advice: str = "") -> str:
    """Say in a few sentences what an engineer can act on.

    A stiffness that was given comes first, then what is unstable without any error; `advice` is
    what is said of a bias on purpose.
    """
    where = judged_where(margin)
    given = given_words(margin.assumed_stiffness, where) if margin.assumed_stiffness else ""
    said = f"{_said(margin, where, advice)}{_certified(margin, where)}"
    return f"{given}{_unstable(margin)}{said}{_independent(margin)}"


def _said(margin: StiffnessMargin, where: str, advice: str) -> str:
    name = f"{margin.design} on {margin.model}"
    if no_stiffness(margin):
        said = f"{name}: the control law uses no stiffness at run time, so that an error of the "
        said += "one it computes with has no effect on stability"
        return f"{said}; the lemma does not apply to such a law.{_unmoved(margin)}"
    if not margin.exact.alpha_upper:
        first = f"Any overestimate of the stiffness, however small, destabilises {name} {where}"
        if margin.exact.upper:
            first += f" ({limit_words(margin.exact.upper)}, an undamped mode)"
        return f"{first}. {_rest(margin, where, advice)}"
    known = "damping unknown to the controller" if margin.unknown_damping else "the stated damping"
    first = f"With {known}, {name} tolerates {_above(margin, where)}{_above_moving(margin)}"
    return f"{first}. {_rest(margin, where, advice)}"


def _certified(margin: StiffnessMargin, where: str) -> str:
    """Say for which errors stability of the linear loops is proven, and what that leaves open."""
    here, along = margin.certified, margin.certified_along
    if here is None:
        return ""
    places = []
    if here.alpha_lower is not None and here.alpha_upper is not None:
        places.append(f"{certified_range(here.alpha_lower, here.alpha_upper)} {where}")
    if along:
        all_poses = f"all {len(margin.path)} poses" if len(margin.path) > 1 else "the judged pose"
        places.append(f"{certified_range(*along)} at {all_poses} of the motion")
    said = ""
    if places:
        proven = f"the linear loop is stable for errors {', and '.join(places)}"
        said = (
            f" Proven in interval arithmetic: {proven}; this says nothing of the nonlinear arm, "
            "nor of dry friction."
        )
    if not here.proven:
        said += f" Nothing is proven in interval arithmetic {where}: {here.why}."
    left = [pose for pose in margin.path if pose.certified and not pose.certified.proven]
    if left and left[0].certified:
        count = f"{len(left)} of {counted(len(margin.path), 'pose')} of the motion"
        said += f" Nothing is proven so at {count}: {left[0].certified.why}."
    return said


def certified_range(lower: float, upper: float) -> str:
    """Write proven errors, rounded towards 0: ``from -99.9 % to +14.5 %``."""
    if np.isinf(upper):
        return "of any size"
    return f"from -{percent(_at_least(-lower))} to +{percent(_at_least(upper))}"


def _independent(margin: StiffnessMargin) -> str:
    """Say what independent errors are tolerated; how that is known stands in the table."""
    known = [
        at for at in margin.independent if at.bounds.guaranteed_fraction or not at.bounds.stopped
    ]
    places = [f"{', '.join(map(range_words, at.guaranteed))} {_where(at)}" for at in known]
    said = f" Independent errors tolerated: {'; '.join(places)}." if places else ""
    unknown = [at for at in margin.independent if at not in known]
    return said + "".join(f" {bound_words(at)}{_nearest(at)}." for at in unknown)


def _where(at: IndependentErrorsAt) -> str:
    """Name the pose, what ends the range, or why it may be larger."""
    if at.bounds.stopped:
        return f"at {at.where} (at least: {at.bounds.stopped}{_nearest(at)})"
    about = [] if at.bounds.proven else ["not proven"]
    if at.ends and at.bounds.gap <= _AT_THE_END:
        limits = {"fold": "fold of the equilibrium", "torque": "torque limit of an actuator"}
        about.append(f"limit: {limits[at.ends]}")
    return f"at {at.where}" + (f" ({'; '.join(about)})" if about else "")


def _nearest(at: IndependentErrorsAt) -> str:
    """Name the nearest errors that were found to be too large."""
    if at.bounds.worst_case is None:
        return ""
    errors = largest_errors(at)
    shown = [f"{in_words(name)} {100 * error:+.3g} %" for name, error in errors[:_FEW]]
    more = ["and others"] if len(errors) > _FEW else []
    return f"; too large is {', '.join([*shown, *more])}"


def largest_errors(at: IndependentErrorsAt) -> list[tuple[str, float]]:
    """Errors of a worst case by name, the largest first, without those that are zero."""
    errors = sorted(at.worst_errors.items(), key=lambda error: -abs(error[1]))
    return [(name, error) for name, error in errors if abs(error) > _NO_ERROR]


def no_stiffness(margin: StiffnessMargin) -> bool:
    """Whether the exact margin has nothing to depend on.

    Where a second loop acts, the law of the motion before it must have nothing either.
    """
    before = margin.path if margin.second_loop else ()
    moving = (pose.interval for pose in before if pose.interval)
    return all(map(independent_of_errors, (margin.exact, *moving)))


def independent_of_errors(exact: Interval) -> bool:
    """Whether the errors do not enter the loop; a followed one has no unknowns either."""
    return exact.proven and not exact.unknowns and exact.upper is exact.lower is None


def _rest(margin: StiffnessMargin, where: str, advice: str) -> str:
    parts = (_growth(margin), _followed(margin), _lemma(margin), ".", advice, _unmoved(margin))
    return f"{_below(margin, where)}. {''.join(parts)}"


def _above(margin: StiffnessMargin, where: str) -> str:
    upper = margin.exact.upper
    if upper is None:
        return f"any overestimate of the stiffness {where}"
    size = percent(upper.alpha)
    return f"a stiffness overestimate of up to {size} {where} (limit: {limit_words(upper)})"


def _above_moving(margin: StiffnessMargin) -> str:
    """Say how much less is tolerated at the worst pose of the motion, held still."""
    worst = margin.worst
    if worst is None or worst.interval is None:
        return ""
    there, here = worst.interval, margin.exact.alpha_upper
    if there.upper is None or there.alpha_upper >= here:
        return ", and at least as much at every pose of the motion"
    if there.alpha_upper >= _LESS * here:
        return ", and about the same at all poses of the motion"
    size = f"only {percent(there.upper.alpha)}" if there.upper.alpha else "none"
    place = f"when held still at t = {worst.t:.3g} s of the motion"
    return f", but {size} {place} ({limit_words(there.upper)})"


def _below(margin: StiffnessMargin, where: str) -> str:
    ends = [(margin.exact.alpha_lower, margin.exact.lower, where)]
    if (pose := margin.worst_below) and pose.interval:
        here = f"when held still at t = {pose.t:.3g} s of the motion"
        ends.append((pose.interval.alpha_lower, pose.interval.lower, here))
    alpha, loss, place = max(ends, key=lambda end: end[0])
    if loss is None or -alpha >= ALMOST_ALL:
        return "It tolerates any underestimate"
    if not alpha:
        return f"It tolerates no underestimate {place}: {limit_words(loss)}"
    size = percent(-alpha)
    return f"It tolerates underestimates of up to {size} (limit: {limit_words(loss)}, {place})"


def _growth(margin: StiffnessMargin) -> str:
    growth = margin.path_growth
    if growth is None:
        return ""
    said = growth_words(growth.error, growth.factor, growth.duration)
    return f"{said[0].upper()}{said[1:]}. "


def _followed(margin: StiffnessMargin) -> str:
    """Say where limits are not proven."""
    known = [margin.exact, *(pose.interval for pose in margin.path if pose.interval)]
    if all(interval.proven for interval in known):
        return ""
    why = "The error moves the equilibrium, or enters the law many times"
    if any(interval.repeats for interval in known):
        why = "The law repeats after several samples"
    return f"{why}: the limits were found by continuation and are not proven. "


def _lemma(margin: StiffnessMargin) -> str:
    """Say which of the two margins to use, and why."""
    least = least_upper(margin)
    star, order = margin.lemma.alpha_star, basis_words(margin.basis.described())
    if np.isinf(star):
        if np.isinf(least):
            return f"The lemma gives no limit either (alpha* infinite, {order})"
        return f"The lemma gives no limit (alpha* infinite, {order}), as it neglects joint error"
    lemma = f"the lemma's {percent(star)} ({order})"
    if least > star:
        what = "concerns the flexible block alone and does not limit this loop"
        return f"{lemma[0].upper()}{lemma[1:]} {what}"
    if not least:
        return f"{lemma[0].upper()}{lemma[1:]} is not a margin: it neglects the joint error"
    why = "which neglects joint error and damping"
    return f"Use this margin, which includes all terms, not {lemma}, {why}"


def least_upper(margin: StiffnessMargin) -> float:
    """Return the least upper end [-] of the judged pose and the motion."""
    worst = margin.worst
    moving = worst.interval.alpha_upper if worst and worst.interval else np.inf
    return min(margin.exact.alpha_upper, moving)


def _unmoved(margin: StiffnessMargin) -> str:
    if not margin.exact.unmoved:
        return ""
    names = ", ".join(dict.fromkeys(in_words(name) for name in margin.exact.unmoved))
    return f" Undamped for every error, and therefore not judged: {names}."


def _unstable(margin: StiffnessMargin) -> str:
    lost = [pose for pose in margin.path if pose.interval is None]
    if not lost:
        return ""
    count = "every" if len(lost) == len(margin.path) else f"{len(lost)} of {len(margin.path)}"
    poses = "pose" if count == "every" else "poses"
    what = "Unstable without any error" if all_grow(lost) else "No margin"
    first = f"at t = {lost[0].t:.3g} s {grown(lost[0])}"
    return f"{what} at {count} {poses} of the motion, held still: {first}. "


def given_words(assumed: AssumedStiffness, where: str) -> str:
    """Say in a sentence or two what an engineer can act on; `where` names the judged pose."""
    star, count = assumed.lemma.alpha_star, len(assumed.errors)
    name, error = max(assumed.errors.items(), key=lambda item: abs(item[1]))
    most = f"{name} {100 * error:+.3g} %"
    most += f", the largest of {count} errors" if count > 1 else ""
    allowed = "it" if star > 1 else f"{percent(star)} of it"
    said = f"The stiffness given ({most}) {_tolerated(assumed, where)}"
    return f"{said}; the lemma alone allows {allowed}. "


def _tolerated(assumed: AssumedStiffness, where: str) -> str:
    at, lost, count = assumed.worst, [at for at in assumed.at if not at.stable], len(assumed.at)
    place, share = place_words(at, where), share_words(at)
    if not lost and count == 1:
        return f"is tolerated {place}, and {share} there"
    if not lost:
        return f"is tolerated at all {count} poses, and {share} {place}"
    grows = f"there {in_words(at.mode)} grows at {figure(at.abscissa)} 1/s"
    if np.isinf(at.abscissa):  # no equilibrium is left about which something could grow
        grows = at.why
    upper = at.interval.upper if at.interval else None
    loss = f" (limit: {limit_words(upper)})" if upper else ""
    poses = f"at {len(lost)} of {count} poses, worst " if count > 1 else ""
    return f"destabilises the loop {poses}{place}: {grows}; {share} is tolerated there{loss}"


def place_words(at: AssumedAtPose, where: str) -> str:
    """Say at which pose; `where` is the judged one, which has no time."""
    return where if at.t is None else f"at t = {at.t:.3g} s"


def share_words(at: AssumedAtPose) -> str:
    """Say how much of the error is tolerated, or what is not where all of it is."""
    if at.interval is None:
        return "the loop without it is unstable" if at.stable else "none of that error"
    if at.interval.upper is None:
        return "any multiple of that error that leaves the stiffness positive"
    interval = at.interval.alpha_upper
    if interval >= 1:
        return f"{figure(interval)} times that error"
    if at.stable:
        return f"of smaller errors only those up to {percent(interval)} of it"
    return f"{percent(interval)} of that error"


def time_scale_words(margin: TimeScaleMargin) -> str:
    """Say in a sentence or two how far the arm is from losing its time scales."""
    worst, name = margin.worst, f"{margin.design} on {margin.model}"
    where = f"on {worst.order} {margin.truth.kind}, at the pose of t = {worst.t:.3g} s"
    if worst.why:
        never = "the loop is stable at no stiffness"
        if margin.stable is True:
            never = "stable as it is, but there is no stiffness above which the loop stays so,"
        return f"{name}: {never} {where}: {worst.why}."
    down = f"stable down to {worst.s_star:.3g} times the arm's stiffness"
    if worst.refused:
        return f"{name}: {down}; softer arms were not judged: {worst.refused}."
    if not worst.s_star and not worst.exact:
        return f"{name}: no loss of stability was found at any stiffness that was tried."
    if not worst.s_star:
        return f"{name}: the loop is stable at every stiffness."
    lost = f"{crossing(worst)} {swing(worst)} becomes unstable"
    if worst.s_star < 1:
        return f"{name}: {down}; below it {lost} ({where})."
    unstable = margin.stable is False
    own = "unstable" if unstable else "stable as it is, but unstable at some higher stiffness,"
    return (
        f"{name}: {own} although both subsystems are stable: the time scales separate only above "
        f"{worst.s_star:.3g} times the arm's stiffness (below it {lost} {where})."
    )


def crossing(bound: Bound) -> str:
    """Name what becomes unstable."""
    return bound.motion or "a mode"


def swing(bound: Bound) -> str:
    """Name the frequency of what crosses, or say that it is a real eigenvalue."""
    return f"at {figure(bound.frequency)} rad/s" if bound.frequency else "(real eigenvalue)"
