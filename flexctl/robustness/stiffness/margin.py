"""How wrong the stiffness of a controller's model may be: the lemma, the exact margin, and mu.

alpha = K_hat/K - 1: the arm keeps the stiffness K of its file, and K_hat stands wherever the
controller computes with one. M_hat = M, D_hat = D unless the damping is unknown to it, and gains
stay those of alpha = 0. The loop is linear, at rest, at frozen poses; all its terms count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError, NoRestError
from flexctl.loop import N_PATH, ClosedLoop, motion_poses
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.robustness.lft import Deadline
from flexctl.robustness.stiffness.assumed_stiffness import judge_assumed, part_errors
from flexctl.robustness.stiffness.case import Case
from flexctl.robustness.stiffness.growth_run import close_wrong, run_along_mode
from flexctl.robustness.stiffness.interval import NoMarginError, guaranteed_errors
from flexctl.robustness.stiffness.lemma import Lemma, lemma_along, stiffness_lemma
from flexctl.robustness.stiffness.model_errors import by_link, by_mode
from flexctl.robustness.stiffness.partial_errors import lemma_by_part, lemma_of_true_arm
from flexctl.robustness.stiffness.path_growth import ERROR, PathGrowth, growth_or_none
from flexctl.robustness.stiffness.pose_loop import PoseLoop, loop_at
from flexctl.robustness.stiffness.record import (
    AssumedStiffness,
    IndependentErrorsAt,
    OrderMargin,
    PoseMargin,
    StiffnessMargin,
)
from flexctl.robustness.stiffness.structured_errors import (
    bound_errors,
    check_errors,
    worst_stiffness,
)

ORDERS = tuple(
    BasisChoice(kind=kind, order=order) for kind in ("modes", "elements") for order in (1, 2, 3, 4)
)
TIME_LIMIT = 20.0  # s for independent errors, at all poses together
_FEW = 12  # parts of a stiffness that are looked at one by one in the lemma


def stiffness_margin(
    arm: Arm | str | Path,
    design: Design | str | Path,
    *,
    true_arm: Arm | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    pose: Mapping[str, float] | None = None,
    n_path: int = N_PATH,
    errors: Mapping[str, float] | None = None,
    stiffness: Mapping[str, float] | None = None,
    orders: Sequence[BasisChoice] = (),
    unknown_damping: bool = False,
    run: bool = False,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[str], None] | None = None,
) -> StiffnessMargin:
    """Find how wrong the stiffness of a design's model may be.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it but for its stiffness, and the design; names or paths too.
    true_arm, truth_basis, design_basis
        As in `compare`. Errors are counted from the stiffness of `arm`.
    pose
        Joint variables to judge at in place of the final pose, under the law of the gross motion.
    n_path
        Number of poses along the motion; 0 leaves it out.
    errors
        What may be wrong independently: see `structured_loop`; nothing leaves that out.
    stiffness
        A stiffness that the controller computes with, K_hat/K [-] by part, link or spring, to be
        judged as it is: see `part_errors`.
    orders
        Discretisations of the design to be judged on the same truth.
    unknown_damping
        Whether the controller is made for the arm without its damping.
    run
        Whether the nonlinear loop is run just beyond the worst case of independent errors.
    time_limit
        What bounds of independent errors may take [s], at all poses together: they then stop with
        what is proven and found so far, and say so.
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the design measures nothing, the arm is rigid, or an error or part is not known.
    DesignError
        When the loop is unstable without any error; the mode is named.

    Examples
    --------
    >>> import flexctl
    >>> margin = flexctl.stiffness_margin("planar-two-link", "two-link-decoupling", n_path=0)
    >>> round(margin.exact.alpha_upper, 4)
    0.0056
    """
    arm, design = load_model(arm), load_design(design)
    case = Case.of(
        arm,
        design,
        true_arm=true_arm,
        truth_basis=truth_basis,
        design_basis=design_basis,
        unknown_damping=unknown_damping,
        n_path=n_path,
    )
    if errors:
        check_errors(errors)
    checks.positive("time_limit", time_limit)
    study = _Study(case=case, pose=pose, say=progress or (lambda _words: None))
    study.say("the linear fractional transformation of the loop")
    closed = case.close()
    if stiffness:
        part_errors(closed.controller.plant, stiffness)
    judged, path = study.judged(closed), study.along(closed, n_path)
    return StiffnessMargin(
        model=arm.name,
        design=design.name,
        truth=closed.truth.basis,
        basis=closed.controller.plant.basis,
        pose=dict(zip(closed.truth.joints, judged.joints.tolist(), strict=True)),
        pose_asked=pose is not None,
        second_loop=bool(judged.second_loop_weight),
        lemma=_lemma(judged),
        partial=_partial_lemmas(judged),
        true_arm_lemma=_true_arm_lemma(judged, case.setup.true_arm),
        assumed_stiffness=study.assumed_stiffness(judged, path, stiffness) if stiffness else None,
        exact=judged.interval,
        rates=judged.rates,
        locus=judged.locus,
        path=path,
        path_growth=study.growth(closed, path),
        orders=tuple(study.at_order(basis) for basis in orders),
        independent=study.independent(judged, path, errors, limit=time_limit, run=run)
        if errors
        else (),
        unknown_damping=unknown_damping,
        assumptions=(*_assumed(case), *closed.assumptions),
    )


def _assumed(case: Case) -> tuple[str, ...]:
    known = (
        "the damping of the arm is unknown to the controller: its design plant is the undamped arm"
        if case.unknown_damping
        else "the damping of the arm is known to the controller"
    )
    other = (
        " (and the arm as it is differs from the file's)"
        if case.setup.true_arm != case.setup.design_arm
        else ""
    )
    return (
        f"alpha = K_hat/K - 1: K is the stiffness of the arm's file{other}, the controller "
        "computes with K_hat; its masses are right, its gains are those of alpha = 0",
        known,
        "the loop is linear, held still at poses of the reference"
        + (_SAG if any(case.setup.true_arm.gravity) else ""),
    )


_SAG = (
    ", each at the equilibrium of the closed loop under gravity; where the error moves that, "
    "limits are found by continuation and are not proven"
)


def _lemma(judged: PoseLoop) -> Lemma:
    """Lemma of the controller's own model at a pose."""
    plant = judged.closed.controller.plant.nominal
    return stiffness_lemma(plant, plant.straight(judged.joints))


def _partial_lemmas(judged: PoseLoop) -> dict[str, Lemma]:
    """Lemmas of single links and modes; none of a mesh, where they take minutes."""
    plant = judged.closed.controller.plant.nominal
    if len(plant.stiffness_parts) > _FEW:
        return {}
    groups = {group.name: group.parts for group in (*by_link(plant), *by_mode(plant))}
    return lemma_by_part(plant, plant.straight(judged.joints), groups)


def _true_arm_lemma(judged: PoseLoop, body: Arm) -> Lemma | None:
    """Lemma of the error that the controller's model has beside the arm as it is."""
    plant = judged.closed.controller.plant.nominal
    return lemma_of_true_arm(plant, body, plant.straight(judged.joints))


@dataclass(frozen=True, kw_only=True)
class _Study:
    """One search for a margin: of what, at which pose, and what is told of its progress."""

    case: Case
    pose: Mapping[str, float] | None
    say: Callable[[str], None]

    def judged(self, closed: ClosedLoop) -> PoseLoop:
        """Return the loop at the pose asked for, or at the final one under the second loop."""
        if self.pose is not None:
            return loop_at(closed, closed.truth.pose(self.pose)[: closed.truth.m], 0.0)
        controller = closed.controller
        return loop_at(closed, controller.reference.final, float(controller.feedback is not None))

    def along(self, closed: ClosedLoop, count: int) -> tuple[PoseMargin, ...]:
        """Find both margins at `count` poses along the motion."""
        if not count:
            return ()
        times, poses = motion_poses(closed.controller.reference, count)
        self.say(f"{len(times)} poses along the motion" if len(times) > 1 else "the final pose")
        plant = closed.controller.plant.nominal
        stars = lemma_along(plant, plant.straight(poses.T)).alpha_star
        triples = zip(times.tolist(), poses, stars.tolist(), strict=True)
        return tuple(_at_pose(closed, *triple) for triple in triples)

    def growth(self, closed: ClosedLoop, path: Sequence[PoseMargin]) -> PathGrowth | None:
        """Find what a disturbance does over the motion, where a pose does not tolerate 10 %."""
        known = [pose.interval for pose in path if pose.interval]
        if len(known) < max(len(path), 2) or min(i.alpha_upper for i in known) >= ERROR:
            return None
        self.say("growth of a disturbance over the motion")
        return growth_or_none(closed)

    def assumed_stiffness(
        self, judged: PoseLoop, path: Sequence[PoseMargin], stiffness: Mapping[str, float]
    ) -> AssumedStiffness:
        """Judge a given stiffness at the judged pose and at all of the motion."""
        closed, times = judged.closed, np.array([pose.t for pose in path])
        self.say("the stiffness that was given")
        poses = closed.controller.reference.sample(times)[0].T if path else ()
        return judge_assumed(judged, list(zip(times.tolist(), poses, strict=True)), stiffness)

    def at_order(self, basis: BasisChoice) -> OrderMargin:
        """Find the same of the gain set made on another plant."""
        self.say(f"the gain set made on {basis.order} {basis.kind}")
        here = partial(OrderMargin, basis=basis)
        try:
            judged = self.judged(self.case.close(basis=basis))
        except (DesignError, ComputationError, InputError) as error:
            return here(interval=None, abscissa=np.nan, alpha_star=np.nan, why=str(error))
        here = partial(here, abscissa=judged.abscissa, alpha_star=_lemma(judged).alpha_star)
        try:
            return here(interval=judged.interval)
        except DesignError as error:
            return here(interval=None, why=str(error))

    def independent(
        self,
        judged: PoseLoop,
        path: Sequence[PoseMargin],
        errors: Mapping[str, float],
        *,
        limit: float,
        run: bool,
    ) -> tuple[IndependentErrorsAt, ...]:
        """Bound independent errors at the judged pose, and where the motion tolerates least.

        Nowhere if there are none: where only the stiffness may be wrong, and the law computes with
        none. At two poses the first may take half of the `limit` [s], runs not counted.
        """
        closed, bounded = judged.closed, []
        if not judged.loop.D.size and not set(errors) & {"damping", "payload"}:
            return ()
        at = partial(self._bounded, errors=errors, run=run)
        worst, left = _worst(path), limit
        if not judged.interval.marginal:
            where = "the pose asked for" if self.pose is not None else "the final pose"
            end = closed.controller.reference.duration
            deadline = Deadline.within(limit).part(0.5 if worst else 1.0)
            bounded.append(at(judged, t=end, where=where, deadline=deadline))
            left = limit - min(deadline.used, limit / 2)
        if worst:
            alone = set(errors) == {"payload"}
            poses = _payload_poses(path) if alone else [worst]
            where = _where(path, payload=alone)
            within = replace(Deadline.within(left), whole=limit)
            same = alone and bounded and not judged.second_loop_weight and self.pose is None
            known = bounded[0] if same and poses[-1].t == bounded[0].t else None
            least = _least(closed, poses, partial(at, where=where), known, within, errors)
            cut = least.bounds.stopped and len(poses) > 1
            bounded.append(replace(least, where="the poses of the motion" if cut else where))
        return tuple(bounded)

    def _bounded(
        self,
        at: PoseLoop,
        *,
        errors: Mapping[str, float],
        run: bool,
        t: float,
        where: str,
        deadline: Deadline,
        reach: float = np.inf,
    ) -> IndependentErrorsAt:
        self.say(f"independent errors at {where}")
        bounded = bound_errors(
            at.closed,
            at.joints,
            at.second_loop_weight,
            errors,
            t=t,
            where=where,
            deadline=deadline,
            reach=reach,
            say=self.say,
        )
        if not run or bounded.bounds.worst_case is None:
            return bounded
        self.say(f"a run beyond the worst case at {where}")
        named = worst_stiffness(bounded.bounds.worst_case, errors)
        wrong = close_wrong(self.case, named, at.joints, second_loop=bool(at.second_loop_weight))
        return replace(bounded, run=run_along_mode(wrong, bounded.bounds.worst_case.eigenvalue))


def _at_pose(closed: ClosedLoop, t: float, joints: Array, alpha_star: float) -> PoseMargin:
    here = partial(PoseMargin, t=t, alpha_star=alpha_star)
    try:
        return here(interval=loop_at(closed, joints, 0.0).interval)
    except NoRestError:
        return here(interval=None, why=_NO_REST, reason=_NO_REST)
    except NoMarginError as error:
        reason, growing = error.reason, error.growing
        return here(interval=None, why=str(error), reason=reason, growing=growing)
    except DesignError as error:
        return here(interval=None, why=str(error), reason=str(error))


_NO_REST = "the loop has no equilibrium at its reference"


def _payload_poses(path: Sequence[PoseMargin]) -> list[PoseMargin]:
    """Poses at which a payload, a single number, is bounded: all that are stable without error."""
    return [pose for pose in path if pose.interval and not pose.interval.marginal]


def _least(
    closed: ClosedLoop,
    poses: Sequence[PoseMargin],
    at: Callable[..., IndependentErrorsAt],
    known: IndependentErrorsAt | None,
    deadline: Deadline,
    errors: Mapping[str, float],
) -> IndependentErrorsAt:
    """Bound errors at poses of the motion, each up to the least bound so far; return the least.

    `known` is what is known of the last pose already. Begun from the end, where an arm that sags
    is often nearest to its fold. Of poses that were not all judged nothing is guaranteed.
    """
    joints = closed.controller.reference.sample(np.array([pose.t for pose in poses]))[0].T
    left, least = [*zip(poses, joints, strict=True)], known
    if least is None:
        pose, q = left[-1]
        least = at(loop_at(closed, q, 0.0), t=pose.t, deadline=deadline)
    for pose, q in reversed(left[:-1]):
        if least.bounds.stopped:
            break
        if deadline.passed:
            return _unfinished(least, f"{deadline.reached} before all poses were judged", errors)
        reach = least.bounds.guaranteed_fraction
        one = at(loop_at(closed, q, 0.0), t=pose.t, deadline=deadline, reach=reach)
        if one.bounds.stopped and one.bounds.worst_case is None:
            least = _unfinished(least, one.bounds.stopped, errors)
        elif one.bounds.stopped or one.bounds.guaranteed_fraction < reach:
            least = one
    return least


def _unfinished(
    known: IndependentErrorsAt, why: str, errors: Mapping[str, float]
) -> IndependentErrorsAt:
    """Guarantee nothing, as not all poses were judged: what is too large at one stays so."""
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
