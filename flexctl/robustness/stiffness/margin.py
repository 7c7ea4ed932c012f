"""Stiffness margin of a design: the lemma, the exact margin, and bounds of independent errors.

alpha = K_hat/K - 1: the arm has the stiffness K of its file, the controller computes with K_hat.
M_hat = M, D_hat = D unless the damping is unknown to the controller, and gains are those of
alpha = 0. The loop is linearised at rest at frozen poses, without neglecting terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import Controller, Recipe, design_on
from flexctl.errors import ComputationError, DesignError, InputError, NoEquilibriumError
from flexctl.loop import N_PATH, ClosedLoop, LinearPoses, motion_poses
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.parallel import on_one_thread
from flexctl.plant import Plant
from flexctl.robustness.certificates.lyapunov import RELATIVE_ERROR
from flexctl.robustness.certificates.record import CertifiedErrors
from flexctl.robustness.stiffness.assumed_stiffness import judge_assumed, part_errors
from flexctl.robustness.stiffness.certified import JudgedPose, certify_poses
from flexctl.robustness.stiffness.independent_errors import IndependentStudy
from flexctl.robustness.stiffness.lemma import (
    Lemma,
    lemma_along,
    lemma_by_part,
    lemma_of_true_arm,
    stiffness_lemma,
)
from flexctl.robustness.stiffness.model_errors import by_link, by_mode
from flexctl.robustness.stiffness.path_growth import ERROR, PathGrowth, growth_or_reason
from flexctl.robustness.stiffness.pose_loop import (
    Case,
    PoseLoop,
    final_loop,
    loop_at,
)
from flexctl.robustness.stiffness.record import (
    AssumedStiffness,
    Interval,
    NoMarginError,
    OrderMargin,
    PoseMargin,
    StiffnessMargin,
)
from flexctl.robustness.stiffness.structured_errors import check_errors

_T = TypeVar("_T")
ORDERS = tuple(
    BasisChoice(kind=kind, order=order) for kind in ("modes", "elements") for order in (1, 2, 3, 4)
)
TIME_LIMIT = 20.0  # s for independent errors, at all poses together
_MOST_PARTS = 12  # of a stiffness, for which the lemma is evaluated part by part
_N_TOLERANCE = 11  # poses of the motion at which a `StiffnessTolerance` is judged


@on_one_thread
def stiffness_margin(
    arm: Arm | str | Path,
    design: Design | Controller | str | Path,
    *,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    pose: Mapping[str, float] | None = None,
    n_path: int = N_PATH,
    errors: Mapping[str, float] | None = None,
    stiffness: Mapping[str, float] | None = None,
    orders: Sequence[BasisChoice] = (),
    unknown_damping: bool = False,
    run: bool = False,
    certify: bool = False,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[str], None] | None = None,
) -> StiffnessMargin:
    """Find how wrong the stiffness of a design's model may be.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it except for its stiffness, and the design; or their names or
        paths. Of a controller its design counts, on the basis of its plant.
    true_arm, truth_basis, design_basis
        As in `compare`. Errors are relative to the stiffness of `arm`.
    pose
        Joint variables [rad or m] by name of a pose to judge instead of the final one, under the
        law of the gross motion.
    n_path
        Number of poses along the motion; 0 leaves the motion out.
    errors
        Kinds of independent errors and their sizes [-], see `structured_loop`; None for none.
    stiffness
        Assumed stiffness K_hat/K [-] by part, link or spring, see `part_errors`; None for none.
    orders
        Other discretisations of the design, to be judged on the same truth.
    unknown_damping
        Whether the controller is designed for the arm without its damping.
    run
        Whether to run the nonlinear loop just beyond the worst case of independent errors.
    certify
        Whether to prove the exact margins in interval arithmetic, piece by piece.
    time_limit
        Time [s] for the bounds of independent errors at all poses together, after which they stop
        with what is proven so far; `MuBounds.stopped` then says so.
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the design has no feedback, the arm is rigid, or an error or a part is unknown.
    DesignError
        When the loop is unstable without any error; the message names the mode.

    Examples
    --------
    >>> import flexctl
    >>> margin = flexctl.stiffness_margin("planar-two-link", "two-link-decoupling", n_path=0)
    >>> round(margin.exact.alpha_upper, 4)
    0.0056
    """
    if isinstance(design, Controller):
        design_basis, design = design_basis or design.plant.basis, design.design
    arm, design = load_model(arm), load_design(design)
    n_path = checks.whole("n_path", n_path, least=0)
    checks.kind("pose", pose, Mapping, type(None))
    if stiffness is not None:
        checks.kind("stiffness", stiffness, Mapping)
    for name, ratio in (stiffness or {}).items():
        checks.number(f"stiffness.{name}", ratio)
    checks.kind("orders", orders, list, tuple, hint="of BasisChoice")
    for basis in orders:
        checks.kind("orders", basis, BasisChoice)
    checks.functions(progress=progress)
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
    say = progress or (lambda _words: None)
    study = _Study(
        case=case,
        pose=pose,
        stiffness=stiffness,
        orders=tuple(orders),
        certify=certify,
        say=say,
    )
    independent = IndependentStudy(
        case=case,
        errors=errors or {},
        run=run,
        time_limit=time_limit,
        pose_chosen=pose is not None,
        say=say,
    )
    return study.margin(independent)


def _assumed(case: Case) -> tuple[str, ...]:
    """Assumptions of all margins of a case, in sentences."""
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


_CERTIFIED = (
    "what is proven in interval arithmetic is proven of the linear loops with all entries off by "
    f"up to {RELATIVE_ERROR:g} of their size; it says nothing of the nonlinear arm, nor of dry "
    "friction"
)


def _lemma(judged: PoseLoop) -> Lemma:
    """Lemma of the controller's model at the pose."""
    plant = judged.closed.controller.plant.nominal
    return stiffness_lemma(plant, plant.straight(judged.joints))


def _partial_lemmas(judged: PoseLoop) -> dict[str, Lemma]:
    """Lemmas of single links and modes; empty for a mesh with many parts, which takes minutes."""
    plant = judged.closed.controller.plant.nominal
    if len(plant.stiffness_parts) > _MOST_PARTS:
        return {}
    groups = {group.name: group.parts for group in (*by_link(plant), *by_mode(plant))}
    return lemma_by_part(plant, plant.straight(judged.joints), groups)


@dataclass(frozen=True, kw_only=True)
class _Study:
    """Poses, assumed stiffness and discretisations for which the margins of a case are computed."""

    case: Case
    pose: Mapping[str, float] | None
    stiffness: Mapping[str, float] | None
    orders: tuple[BasisChoice, ...]
    certify: bool
    say: Callable[[str], None]

    def margin(self, independent: IndependentStudy) -> StiffnessMargin:
        """Find all margins: of the judged pose, of the motion, and of independent errors."""
        case = self.case
        self.say("the linear fractional transformation of the loop")
        closed = case.closed
        if self.stiffness:
            part_errors(closed.controller.plant, self.stiffness)  # refuses before any work
        judged, path = self.judged(closed), self.along(closed)
        certified, path = self.certified(judged, path)
        growth, unknown = self.growth(closed, path)
        model = closed.controller.plant.nominal
        return StiffnessMargin(
            model=case.setup.design_arm.name,
            design=case.design.name,
            truth=closed.truth.basis,
            basis=closed.controller.plant.basis,
            pose=dict(zip(closed.truth.joints, judged.joints.tolist(), strict=True)),
            pose_chosen=self.pose is not None,
            second_loop=bool(judged.second_loop_weight),
            lemma=_lemma(judged),
            partial=_partial_lemmas(judged),
            true_arm_lemma=lemma_of_true_arm(
                model, case.setup.true_arm, model.straight(judged.joints)
            ),
            assumed_stiffness=self.assumed_stiffness(judged, path),
            exact=judged.interval,
            rates=judged.rates,
            locus=judged.locus,
            path=path,
            path_growth=growth,
            certified=certified,
            orders=tuple(self.at_order(basis) for basis in self.orders),
            independent=independent.bounds(judged, path),
            unknown_damping=case.unknown_damping,
            assumptions=(
                *_assumed(case),
                *((_CERTIFIED,) if self.certify else ()),
                *((f"the growth over the motion was not found: {unknown}",) if unknown else ()),
                *closed.assumptions,
            ),
        )

    def judged(self, closed: ClosedLoop) -> PoseLoop:
        """Return the loop at the chosen pose, or at the final one under the second loop."""
        if self.pose is not None:
            return loop_at(closed, closed.truth.pose(self.pose)[: closed.truth.m], 0.0)
        return final_loop(closed)

    def along(self, closed: ClosedLoop) -> tuple[PoseMargin, ...]:
        """Find both margins at the poses of the motion: the lemma's and the exact one."""
        count = self.case.n_path
        if not count:
            return ()
        times, poses = motion_poses(closed.controller.reference, count)
        self.say(f"{len(times)} poses along the motion" if len(times) > 1 else "the final pose")
        stars = stars_along(closed.controller.plant.nominal, poses)
        triples = zip(times.tolist(), poses, stars.tolist(), strict=True)
        return tuple(_at_pose(closed, *triple) for triple in triples)

    def certified(
        self, judged: PoseLoop, path: tuple[PoseMargin, ...]
    ) -> tuple[CertifiedErrors | None, tuple[PoseMargin, ...]]:
        """Prove the exact margins at the judged pose and along the motion, where that is asked."""
        if not self.certify:
            return None, path
        closed, weight = judged.closed, judged.second_loop_weight
        here = JudgedPose(joints=judged.joints, second_loop_weight=weight, interval=judged.interval)
        times = np.array([pose.t for pose in path])
        poses = closed.controller.reference.sample(times)[0].T if path else ()
        there = [
            JudgedPose(
                joints=joints,
                second_loop_weight=0.0,
                interval=pose.interval,
                why=_UNSTABLE if pose.growing else pose.reason,
            )
            for joints, pose in zip(poses, path, strict=True)
        ]
        self.say(f"proofs at {1 + len(path)} poses" if path else "proof at the judged pose")
        first, *others = certify_poses(closed, [here, *there])
        return first, tuple(
            replace(pose, certified=own) for pose, own in zip(path, others, strict=True)
        )

    def growth(
        self, closed: ClosedLoop, path: Sequence[PoseMargin]
    ) -> tuple[PathGrowth | None, str]:
        """Growth of a disturbance over the motion, where a pose does not tolerate 10 %.

        None where all poses do, and where it cannot be computed, with the reason.
        """
        known = [pose.interval for pose in path if pose.interval]
        if len(known) < max(len(path), 2) or min(i.alpha_upper for i in known) >= ERROR:
            return None, ""
        self.say("growth of a disturbance over the motion")
        return growth_or_reason(closed)

    def assumed_stiffness(
        self, judged: PoseLoop, path: Sequence[PoseMargin]
    ) -> AssumedStiffness | None:
        """Judge the assumed stiffness at the judged pose and along the motion; None without one."""
        if not self.stiffness:
            return None
        closed, times = judged.closed, np.array([pose.t for pose in path])
        self.say("the assumed stiffness")
        poses = closed.controller.reference.sample(times)[0].T if path else ()
        return judge_assumed(judged, list(zip(times.tolist(), poses, strict=True)), self.stiffness)

    def at_order(self, basis: BasisChoice) -> OrderMargin:
        """Find the margins at the judged pose of the design repeated on another discretisation."""
        self.say(f"the design repeated on {basis.order} {basis.kind}")
        here = partial(OrderMargin, basis=basis)
        try:
            judged = self.judged(self.case.close(basis=basis))
            here = partial(here, abscissa=judged.abscissa)
        except (DesignError, ComputationError, InputError) as error:
            return here(interval=None, abscissa=np.nan, alpha_star=np.nan, why=str(error))
        here = partial(here, alpha_star=_lemma(judged).alpha_star)
        try:
            return here(interval=judged.interval)
        except DesignError as error:
            return here(interval=None, why=str(error))


def stars_along(plant: Plant, poses: Array) -> Array:
    """Margin of the lemma (N,) at poses (N, m), under gravity about the equilibrium at each.

    NaN where there is none: the arm has no equilibrium there, or its links buckle.
    """
    straight = plant.straight(poses.T)
    if not any(plant.arm.gravity):
        return lemma_along(plant, straight).alpha_star
    stars = np.full(len(poses), np.nan)
    for k, q in enumerate(straight.T):
        with suppress(ComputationError):
            stars[k] = stiffness_lemma(plant, q).alpha_star
    return stars


def _at_pose(closed: ClosedLoop, t: float, joints: Array, alpha_star: float) -> PoseMargin:
    """Exact margin at a pose of the motion, or why there is none."""
    here = partial(PoseMargin, t=t, alpha_star=alpha_star)
    try:
        return here(interval=loop_at(closed, joints, 0.0).interval)
    except NoEquilibriumError:
        return here(interval=None, why=_NO_REST, reason=_NO_REST)
    except NoMarginError as error:
        reason, growing = error.reason, error.growing
        return here(interval=None, why=str(error), reason=reason, growing=growing)
    except DesignError as error:
        return here(interval=None, why=str(error), reason=str(error))


_ALIKE = 1e-6  # relative difference of ends of poses that count as one
_UNSTABLE = "the loop is unstable there without error"
_NO_REST = "the loop has no equilibrium at its reference"


@dataclass(frozen=True, kw_only=True)
class StiffnessTolerance:
    """Both stiffness margins of a loop in brief; `StiffnessMargin` has more.

    Attributes
    ----------
    lemma
        The lemma of the controller's model at the final pose.
    exact
        Stable interval of the complete loop at the final pose, under the second loop if there is
        one; None where the loop is unstable without error, or it could not be computed.
    path_t, path_upper
        Time [s] of the pose of the motion that tolerates the least overestimate, and that
        overestimate [-]; None and NaN where a pose is unstable without error.
    path_proven
        Whether the ends of all poses are exact, none from a continuation of the equilibrium.
    path_lower_t, path_lower
        The same of the least underestimate tolerated: the largest of the lower ends of the poses
        [-], -1 where every underestimate is tolerated.
    path_growth
        Growth of a small disturbance over the motion with an overestimate of 10 %; None where all
        poses tolerate it, there is no motion, or it could not be computed.
    not_computed
        Why the margin at the final pose ("exact") or along the motion ("path") could not be
        computed, beside a loop that is unstable without an error.
    """

    lemma: Lemma
    exact: Interval | None
    path_t: float | None
    path_upper: float
    path_proven: bool = True
    path_lower_t: float | None = None
    path_lower: float = np.nan
    path_growth: PathGrowth | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)


def judge_stiffness(
    loop: ClosedLoop, poses: LinearPoses | None = None
) -> StiffnessTolerance | None:
    """Find both margins of a loop; None for an open loop and for a rigid arm.

    `poses` are linear models of the loop, where these are known.

    Raises
    ------
    ComputationError
        When the law is a nonlinear external one, whose use of the stiffness is unknown.
    """
    controller = loop.controller
    if controller.design.open_loop or not controller.plant.stiffness_parts:
        return None
    if controller.external and controller.external.nonlinear:
        raise ComputationError(
            "the law's gains depend on what it measures: whether it computes with a stiffness, "
            "and which, is not known"
        )
    plant = controller.plant
    uncertain = with_free_stiffness(loop)
    known = None if any(plant.stiffness_error.values()) else poses
    final = known.final if known and known.final.rest and not known.final.rest.falls else None
    times, joints = motion_poses(controller.reference, _N_TOLERANCE)
    moving = known if controller.reference.duration else None
    path = [moving.at(t) if moving else None for t in times]
    reasons: dict[str, str] = {}
    loops = [
        _judged(partial(loop_at, uncertain, q, 0.0, at), "path", reasons)
        for q, at in zip(joints, path, strict=True)
    ]
    worst, upper, proven = _nearest_end(loops, 1, reasons)
    worst_below, lower, _ = _nearest_end(loops, -1, reasons)
    growth = None
    if upper < ERROR:
        growth, unknown = growth_or_reason(uncertain, known=path)
        reasons |= {"exact.path_growth": unknown} if unknown else {}
    return StiffnessTolerance(
        lemma=stiffness_lemma(plant, plant.straight(controller.reference.final)),
        exact=_judged(lambda: final_loop(uncertain, final).interval, "exact", reasons),
        path_t=None if worst is None else float(times[worst]),
        path_upper=upper,
        path_proven=proven,
        path_lower_t=None if worst_below is None else float(times[worst_below]),
        path_lower=lower,
        path_growth=growth,
        not_computed=reasons,
    )


def _nearest_end(
    loops: Sequence[PoseLoop | None], sign: int, reasons: dict[str, str]
) -> tuple[int | None, float, bool]:
    """Pose whose end on this side is nearest to 0, that end [-], and whether all are proven.

    None and NaN where a pose has no margin, or its end could not be computed.
    """
    nearest, worst, proven = np.inf, 0, True
    last = len(loops) - 1
    # where margins rise or fall along the motion one of its ends is the worst, and others are
    # followed no further than there
    for k in dict.fromkeys((0, last, last // 2, *range(last + 1))):
        # next to the limit of another pose an equilibrium is nearly singular, and hard to find
        within, loop = (1 - _ALIKE) * nearest, loops[k]
        end = loop and _judged(partial(loop.end, sign, within), "path", reasons)
        if not end:
            return None, np.nan, True
        proven = proven and end[1]  # that others are no nearer must be so too
        if k == 0 or sign * end[0] < nearest:
            nearest, worst = sign * end[0], k
    return worst, sign * nearest, proven


def with_free_stiffness(loop: ClosedLoop) -> ClosedLoop:
    """Return a loop whose law has free errors of its stiffness; gains stay."""
    controller = loop.controller
    plant = controller.plant.of_any_stiffness
    if isinstance(controller.recipe, Recipe):
        return replace(loop, controller=replace(controller, plant=plant))
    return replace(loop, controller=design_on(plant, controller.design))


def _judged(margin: Callable[[], _T], part: str, reasons: dict[str, str]) -> _T | None:
    """Margin at a pose; None where there is none; a failure is noted as of this part."""
    try:
        return margin()
    except NoMarginError:
        return None
    except (ComputationError, DesignError) as error:
        reasons.setdefault(part, str(error))
        return None
