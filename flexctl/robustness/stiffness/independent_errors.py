"""Independent errors at the judged pose and along the motion, within one time limit.

A nonlinear run just beyond a worst case shows the growth of the mode that becomes unstable there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flexctl.checks import Array
from flexctl.control import controller_at, design_controller
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    close_loop,
    eigenvectors,
    linearise_loop,
)
from flexctl.model import Reference
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.lft import Deadline, WorstCase
from flexctl.robustness.stiffness.pose_loop import Case, PoseLoop, loop_at
from flexctl.robustness.stiffness.record import (
    GrowthRun,
    IndependentErrorsAt,
    PoseMargin,
    guaranteed_errors,
)
from flexctl.robustness.stiffness.structured_errors import bound_errors
from flexctl.simulation import Tolerance, simulate

_BEYOND = 1.05  # of the worst case: there the mode grows visibly
_LOWEST = -0.999  # relative error of a stiffness, which must stay positive
_AMPLITUDE = 1e-5  # rad or m: its square is negligible
_EXPONENT = 1.0  # the mode grows or decays by at most e^1 in a run
_MOST_PERIODS = 400  # of the mode in a run
_LEAST_RATE = 1e-3  # 1/s: slower growth of other modes is negligible
_OTHERS_EXPONENT = 8.0  # the fastest growing mode grows by at most e^8
_TOLERANCE = Tolerance.of(1e-11)


@dataclass(frozen=True, kw_only=True)
class IndependentStudy:
    """Which independent errors of a case are bounded, and how long that may take.

    `errors` are kinds of errors and their sizes [-], as in `structured_loop`, empty for none. The
    bounds at all poses together may take `time_limit` [s]; with `run` the nonlinear loop is run
    just beyond each worst case, for which no time is counted.
    """

    case: Case
    errors: Mapping[str, float]
    pose_chosen: bool
    run: bool
    time_limit: float
    say: Callable[[str], None]

    def bounds(
        self, judged: PoseLoop, path: Sequence[PoseMargin]
    ) -> tuple[IndependentErrorsAt, ...]:
        """Bound the errors at the judged pose, and where the motion tolerates least.

        Empty where there are no errors: none are named, or only the stiffness may be wrong and the
        law computes with none. With a second pose to come, the first may take half of the time.
        """
        if not self.errors or not (judged.loop.D.size or set(self.errors) & {"damping", "payload"}):
            return ()
        worst, left = _worst(path), self.time_limit
        first = None
        if not judged.interval.marginal:
            deadline = Deadline.within(left).part(0.5 if worst else 1.0)
            where = "the chosen pose" if self.pose_chosen else "the final pose"
            end = judged.closed.controller.reference.duration
            first = self._bounded(judged, t=end, where=where, deadline=deadline)
            left -= min(deadline.used, left / 2)
        if worst is None:
            return (first,) if first else ()
        deadline = replace(Deadline.within(left), whole=self.time_limit)
        second = self._along_motion(judged, path, worst, first, deadline)
        return (first, second) if first else (second,)

    def _along_motion(
        self,
        judged: PoseLoop,
        path: Sequence[PoseMargin],
        worst: PoseMargin,
        first: IndependentErrorsAt | None,
        deadline: Deadline,
    ) -> IndependentErrorsAt:
        """Bound the errors at the worst pose of the motion; of a payload alone, at all poses.

        `first` are the bounds at the judged pose, which may be the last pose of the motion.
        """
        poses, known, least = [worst], None, "with the least stiffness margin"
        if set(self.errors) == {"payload"}:  # one number, bounded at every stable pose
            least = "that tolerates the least payload error"
            poses = [pose for pose in path if pose.interval and not pose.interval.marginal]
            same_law = not judged.second_loop_weight and not self.pose_chosen
            known = first if same_law and first and poses[-1].t == first.t else None
        stable = "stable " * any(pose.interval is None for pose in path)
        where = f"the {stable}pose of the motion {least}"
        found = self._least(judged, poses, where, known, deadline)
        cut = found.bounds.stopped and len(poses) > 1
        return replace(found, where="the poses of the motion" if cut else where)

    def _least(
        self,
        judged: PoseLoop,
        poses: Sequence[PoseMargin],
        where: str,
        known: IndependentErrorsAt | None,
        deadline: Deadline,
    ) -> IndependentErrorsAt:
        """Bound errors at poses of the motion, each up to the least bound so far; return the least.

        `known` are the bounds at the last pose, where they are known already. The poses are taken
        from the last to the first: an arm that sags is often nearest to its fold at the end.
        Nothing is guaranteed unless all poses were judged.
        """
        closed = judged.closed
        at = partial(self._bounded, where=where, deadline=deadline)
        joints = closed.controller.reference.sample(np.array([pose.t for pose in poses]))[0].T
        left, least = [*zip(poses, joints, strict=True)], known
        if least is None:
            pose, q = left[-1]
            least = at(loop_at(closed, q, 0.0), t=pose.t)
        for pose, q in reversed(left[:-1]):
            if least.bounds.stopped:
                break
            if deadline.passed:
                why = f"{deadline.reached} before all poses were judged"
                return _unfinished(least, why, self.errors)
            reach = least.bounds.guaranteed_fraction
            one = at(loop_at(closed, q, 0.0), t=pose.t, reach=reach)
            if one.bounds.stopped and one.bounds.worst_case is None:
                least = _unfinished(least, one.bounds.stopped, self.errors)
            elif one.bounds.stopped or one.bounds.guaranteed_fraction < reach:
                least = one
        return least

    def _bounded(
        self, at: PoseLoop, *, t: float, where: str, deadline: Deadline, reach: float = np.inf
    ) -> IndependentErrorsAt:
        """Bound the errors at one pose, and run the loop just beyond the worst case."""
        self.say(f"independent errors at {where}")
        bounded = bound_errors(
            at.closed,
            at.joints,
            at.second_loop_weight,
            self.errors,
            t=t,
            where=where,
            deadline=deadline,
            reach=reach,
            say=self.say,
        )
        if not self.run or bounded.bounds.worst_case is None:
            return bounded
        self.say(f"a run beyond the worst case at {where}")
        stiffness = _worst_stiffness(bounded.bounds.worst_case, self.errors)
        wrong = close_wrong(
            self.case, stiffness, at.joints, second_loop=bool(at.second_loop_weight)
        )
        return replace(bounded, run=run_along_mode(wrong, bounded.bounds.worst_case.eigenvalue))


def _unfinished(
    known: IndependentErrorsAt, why: str, errors: Mapping[str, float]
) -> IndependentErrorsAt:
    """Guarantee nothing, as not all poses were judged; the worst case found stays one."""
    bounds = replace(
        known.bounds, guaranteed_fraction=0.0, mu_peak=np.inf, proven=False, stopped=why
    )
    return replace(known, bounds=bounds, guaranteed=guaranteed_errors(0.0, errors))


def _worst(path: Sequence[PoseMargin]) -> PoseMargin | None:
    """Pose that tolerates the least error in either direction; none if it tolerates none at all."""
    widths = [(p.interval.width, p) for p in path if p.interval and not p.interval.marginal]
    return min(widths, key=lambda pair: pair[0])[1] if widths else None


def _worst_stiffness(worst: WorstCase, errors: Mapping[str, float]) -> dict[str, float]:
    """Relative errors of the stiffness, by part or link, slightly beyond a worst case.

    Raises
    ------
    InputError
        When there are other kinds of errors, of the arm, which a run does not support.
    """
    size = errors.get("modes", errors.get("links"))
    if size is None or len(errors) > 1:
        expected, got = "errors of modes or of links alone", ", ".join(errors)
        raise InputError(f"run: expected {expected}, got {got}")
    deltas = zip(worst.names, worst.delta.tolist(), strict=True)
    return {name: max(_BEYOND * delta * size, _LOWEST) for name, delta in deltas}


def close_wrong(
    case: Case, stiffness: Mapping[str, float], joints: Array, *, second_loop: bool
) -> ClosedLoop:
    """Close a controller with a wrong stiffness around the true arm, held at joints (m,).

    `stiffness` are relative errors by name of the part, link or spring, or "alpha" of all.

    Raises
    ------
    InputError
        When the gains are scheduled along the path of the reference, which is replaced here.
    """
    design = case.design
    if design.follows_path or (design.fast_loop and design.fast_loop.schedule):
        raise InputError(f"{design.label}: expected gains that do not follow the path, got others")
    held = Reference.model_validate(
        {"kind": "setpoint", "from": tuple(joints), "to": tuple(joints)}
    )
    update: dict[str, object] = {"reference": held}
    if not second_loop:
        update["second_loop"] = None
    fixed = design.model_copy(update=update)
    rest = stiffness.get("alpha", 0.0)
    controller = design_controller(
        case.designed_for, fixed, case.setup.design_basis, parameters=(STIFFNESS_ERROR,)
    )
    parts = controller.plant.stiffness_parts
    own = [stiffness.get(k, stiffness.get(k.split(".")[0], rest)) for k in parts]
    controller = controller_at(controller, {STIFFNESS_ERROR: own})
    return close_loop(controller, case.setup.true_arm, case.truth.basis)


def run_along_mode(loop: ClosedLoop, value: complex) -> GrowthRun:
    """Start a loop that holds a pose in the mode whose eigenvalue is next to `value`, and run it.

    The amplitude of the mode is the product of its left eigenvector with the state, to which no
    other mode contributes.

    Raises
    ------
    InputError
        When the law has states, which this initial state does not include.
    RunError, ComputationError
        As `simulate`.
    """
    controller = loop.controller
    if controller.n_state:
        raise InputError(f"{controller.design.label}: expected a law without states, got one")
    joints = controller.reference.final
    linear = linearise_loop(loop, joints, controller.final_second_loop_weight)
    values, W, V = eigenvectors(linear.A + linear.B @ linear.K)
    k = int(np.abs(values - value).argmin())
    n, eigenvalue = loop.truth.n, complex(values[k])
    shape = V[:, k] / np.abs(V[:n, k]).max()
    begun = _AMPLITUDE * shape.real
    fastest = max(float(values.real.max()), _LEAST_RATE)
    duration = min(
        _EXPONENT / abs(eigenvalue.real),
        _MOST_PERIODS * 2 * np.pi / max(abs(eigenvalue.imag), 1.0),
        _OTHERS_EXPONENT / fastest,
    )
    run = simulate(
        loop,
        times=np.array([0.0, duration]),
        duration=duration,
        start=(linear.plant.q0 + begun[:n], begun[n:]),
        tolerance=_TOLERANCE,
    )
    state = np.vstack([run.q - linear.plant.q0[:, None], run.v])
    amplitude = np.abs(W[:, k].conj() @ state)
    return GrowthRun(
        rate=float(np.log(amplitude[1] / amplitude[0])) / duration,
        eigenvalue=eigenvalue,
        duration=duration,
    )
