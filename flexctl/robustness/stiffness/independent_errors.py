"""Independent errors at the judged pose and along the motion, within one time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flexctl.robustness.lft import Deadline
from flexctl.robustness.stiffness.case import Case
from flexctl.robustness.stiffness.growth_run import close_wrong, run_along_mode
from flexctl.robustness.stiffness.interval import guaranteed_errors
from flexctl.robustness.stiffness.pose_loop import PoseLoop, loop_at
from flexctl.robustness.stiffness.record import IndependentErrorsAt, PoseMargin
from flexctl.robustness.stiffness.structured_errors import bound_errors, worst_stiffness


@dataclass(frozen=True, kw_only=True)
class IndependentStudy:
    """Which independent errors of a case are bounded, and how long that may take.

    Attributes
    ----------
    case
        Arm and design.
    errors
        Kinds of errors and their sizes [-], as in `structured_loop`; empty for none.
    pose_chosen
        Whether the judged pose was chosen by the caller; the final pose otherwise.
    run
        Whether the nonlinear loop is run just beyond the worst case.
    time_limit
        Time [s] for the bounds at all poses together, runs not counted.
    say
        Called with a sentence before every longer piece of work.
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
            first = self._at_judged_pose(judged, deadline)
            left -= min(deadline.used, left / 2)
        if worst is None:
            return (first,) if first else ()
        deadline = replace(Deadline.within(left), whole=self.time_limit)
        second = self._along_motion(judged, path, worst, first, deadline)
        return (first, second) if first else (second,)

    def _at_judged_pose(self, judged: PoseLoop, deadline: Deadline) -> IndependentErrorsAt:
        """Bound the errors at the judged pose."""
        where = "the chosen pose" if self.pose_chosen else "the final pose"
        end = judged.closed.controller.reference.duration
        return self._bounded(judged, t=end, where=where, deadline=deadline)

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
        payload = set(self.errors) == {"payload"}
        poses = _payload_poses(path) if payload else [worst]
        where = _where(path, payload=payload)
        same_law = not judged.second_loop_weight and not self.pose_chosen
        known = first if payload and same_law and first and poses[-1].t == first.t else None
        least = self._least(judged, poses, where, known, deadline)
        cut = least.bounds.stopped and len(poses) > 1
        return replace(least, where="the poses of the motion" if cut else where)

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
        stiffness = worst_stiffness(bounded.bounds.worst_case, self.errors)
        wrong = close_wrong(
            self.case, stiffness, at.joints, second_loop=bool(at.second_loop_weight)
        )
        return replace(bounded, run=run_along_mode(wrong, bounded.bounds.worst_case.eigenvalue))


def _payload_poses(path: Sequence[PoseMargin]) -> list[PoseMargin]:
    """Poses at which a payload, a single number, is bounded: all that are stable without error."""
    return [pose for pose in path if pose.interval and not pose.interval.marginal]


def _unfinished(
    known: IndependentErrorsAt, why: str, errors: Mapping[str, float]
) -> IndependentErrorsAt:
    """Guarantee nothing, as not all poses were judged; the worst case found stays one."""
    bounds = replace(
        known.bounds, guaranteed_fraction=0.0, mu_peak=np.inf, proven=False, stopped=why
    )
    return replace(known, bounds=bounds, guaranteed=guaranteed_errors(0.0, errors))


def _where(path: Sequence[PoseMargin], *, payload: bool) -> str:
    """Name the pose of a motion at which independent errors are judged."""
    stable = "stable " * any(pose.interval is None for pose in path)
    least = (
        "that tolerates the least payload error" if payload else "with the least stiffness margin"
    )
    return f"the {stable}pose of the motion {least}"


def _worst(path: Sequence[PoseMargin]) -> PoseMargin | None:
    """Pose that tolerates the least error in either direction; none if it tolerates none at all."""
    widths = [(p.interval.width, p) for p in path if p.interval and not p.interval.marginal]
    return min(widths, key=lambda pair: pair[0])[1] if widths else None
