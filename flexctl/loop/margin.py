"""How wrong the stiffness of a controller's model may be: the lemma, the exact margin, and mu.

alpha = K_hat/K - 1: the arm keeps the stiffness K of its file, and K_hat stands wherever the
controller computes with one. M_hat = M, D_hat = D unless the damping is unknown to it, and gains
stay those of alpha = 0. The loop is linear, at rest, at frozen poses; all its terms count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from flexctl.catalogue import Arm, BasisChoice, Design
from flexctl.checks import Array
from flexctl.design import Controller, design_controller, lemma_along, stiffness_lemma
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop.arm_errors import add_arm_errors, damping_errors, payload_error
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.comparison import default_truth
from flexctl.loop.evaluation import N_PATH
from flexctl.loop.growth import axis_tolerance, growth_rates
from flexctl.loop.margin_record import (
    Interval,
    Locus,
    Loss,
    Margin,
    ModeRate,
    OrderMargin,
    PoseMargin,
    StructuredAt,
)
from flexctl.loop.mode_names import ModeNames, in_words, name_modes
from flexctl.loop.model_errors import all_together, by_link, by_mode, pull_out
from flexctl.loop.real_crossings import RealCrossing, stable_interval
from flexctl.loop.structured import structured
from flexctl.loop.uncertain import UncertainLoop
from flexctl.plant import Plant, StiffnessError, assemble_plant, linearise

ORDERS = tuple(
    BasisChoice(kind=kind, order=order) for kind in ("modes", "elements") for order in (1, 2, 3, 4)
)
_N_LOCUS = 161
_WIDEST = 3.0  # error up to which loci are drawn where nothing ends them
_LOWEST = -0.95


def find_margin(
    arm: Arm,
    design: Design,
    *,
    truth_arm: Arm | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    pose: Mapping[str, float] | None = None,
    n_path: int = N_PATH,
    errors: Mapping[str, float] | None = None,
    orders: Sequence[BasisChoice] = (),
    unknown_damping: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Margin:
    """Find how wrong the stiffness of a design's model may be.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it but for its stiffness, and the design.
    truth_arm, truth_basis, design_basis
        As in `compare`. Errors are counted from the stiffness of `arm`.
    pose
        Joint variables to judge at in place of the final pose, under the law of the gross motion.
    n_path
        Number of poses along the motion; 0 leaves it out.
    errors
        What may be wrong independently and by how much an error of 1 is: "modes" or "links" of the
        model's stiffness, "damping" and "payload" of the arm; none leaves that out.
    orders
        Discretisations of the design to be judged on the same truth.
    unknown_damping
        Whether the controller is made for the arm without its damping.
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the design measures nothing or the arm is rigid.
    DesignError
        When the loop is unstable without any error; the mode is named.
    """
    if design.open_loop:
        raise InputError(f"{design.label}: wanted a design with feedback, came {design.method}")
    study = _Study(
        arm=without_damping(arm) if unknown_damping else arm,
        body=truth_arm or arm,
        design=design,
        basis=truth_basis or default_truth(arm, design_basis or design.basis),
        say=progress or (lambda _words: None),
    )
    study.say("the loop with its errors pulled out")
    loop = study.close(design_basis or design.basis)
    judged = study.judge(loop, pose)
    path = study.along(loop, n_path)
    return Margin(
        model=arm.name,
        design=design.name,
        truth=study.basis,
        basis=loop.controller.plant.basis,
        pose=dict(zip(loop.truth.joints, judged.joints.tolist(), strict=True)),
        second_loop=bool(judged.share),
        lemma=stiffness_lemma(
            loop.controller.plant.nominal, loop.controller.plant.straight(judged.joints)
        ),
        exact=judged.interval,
        rates=judged.rates,
        locus=judged.locus,
        path=path,
        orders=tuple(study.at_order(basis) for basis in orders),
        structured=study.structured(loop, judged, path, errors or {}),
        unknown_damping=unknown_damping,
        assumptions=(*_assumed(unknown_damping), *loop.assumptions),
    )


def _assumed(unknown_damping: bool) -> tuple[str, ...]:
    known = (
        "the damping of the arm is unknown to the controller, which is made for the undamped arm"
        if unknown_damping
        else "the controller knows the arm's damping and cancels it with the rest of its model"
    )
    return (
        "alpha = K_hat/K - 1: the arm has the stiffness K of its file, the controller computes "
        "with K_hat; its masses are right, its gains are those of alpha = 0",
        known,
        "linear, at rest at frozen poses of the reference",
    )


def without_damping(arm: Arm) -> Arm:
    """Return the arm with no damping in its links and springs."""
    links = []
    for link in arm.links:
        joint = link.flexible_joint
        undamped = joint and joint.model_copy(update={"damping": 0.0})
        update = {"damping_ratio": (0.0,), "flexible_joint": undamped}
        links.append(link.model_copy(update=update))
    return arm.model_copy(update={"links": tuple(links)})


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """The loop at one pose with its error alpha pulled out, and what came of it."""

    joints: Array
    share: float
    loop: UncertainLoop
    names: ModeNames
    interval: Interval

    @property
    def rates(self) -> tuple[ModeRate, ...]:
        """Growth of every swinging mode to first order, the fastest growing first."""
        values, rates = growth_rates(self.loop)
        swinging = np.flatnonzero(values.imag > 0)
        ordered = swinging[np.argsort(-rates.real[swinging])]
        return tuple(
            ModeRate(
                mode=self.names.name(self.loop.A, complex(values[k])),
                value=complex(values[k]),
                rate=complex(rates[k]),
            )
            for k in ordered
        )

    @property
    def locus(self) -> Locus:
        """Eigenvalues over errors on both sides of the interval."""
        low, high = self.interval.alpha_lower, self.interval.alpha_upper
        low = max(2 * low if low > -1 and low else -0.5, _LOWEST)
        high = min(2 * high if np.isfinite(high) and high else 1.0, _WIDEST)
        alpha = np.union1d(np.linspace(low, high, _N_LOCUS), 0.0)
        return Locus(alpha=alpha, poles=tuple(self.loop.poles(np.array([x])) for x in alpha))


@dataclass(frozen=True, kw_only=True)
class _Study:
    """What a margin is asked of: the arm as designed for, as it is, and the design."""

    arm: Arm
    body: Arm
    design: Design
    basis: BasisChoice
    say: Callable[[str], None]
    _truths: dict[str, Plant] = field(default_factory=dict)

    @property
    def truth(self) -> Plant:
        """The truth plant, made once."""
        if not self._truths:
            self._truths[""] = assemble_plant(self.body, self.basis, interpreted=True)
        return self._truths[""]

    def close(self, basis: BasisChoice) -> ClosedLoop:
        """Close the loop of a controller whose stiffness is unknown."""
        return close_around(
            design_uncertain(self.arm, self.design, basis),
            self.truth,
        )

    def judge(self, loop: ClosedLoop, pose: Mapping[str, float] | None) -> _Judged:
        """Find the exact interval at a pose, or at the final one under the second loop."""
        controller = loop.controller
        if pose is not None:
            return _judge(loop, loop.truth.pose(pose)[: loop.truth.m], 0.0)
        share = float(controller.feedback is not None)
        return _judge(loop, controller.reference.final, share)

    def along(self, loop: ClosedLoop, count: int) -> tuple[PoseMargin, ...]:
        """Find both margins at `count` poses along the motion."""
        motion = loop.controller.reference
        times = np.linspace(0, motion.duration, count if motion.duration else min(count, 1))
        poses = motion.sample(times)[0]
        if not count:
            return ()
        self.say(f"{count} poses along the motion")
        plant = loop.controller.plant.nominal
        stars = lemma_along(plant, plant.straight(poses)).alpha_star
        found = []
        for t, joints, star in zip(times.tolist(), poses.T, stars.tolist(), strict=True):
            try:
                interval, why = _judge(loop, joints, 0.0).interval, ""
            except DesignError as error:
                interval, why = None, str(error)
            found.append(PoseMargin(t=t, alpha_star=star, interval=interval, why=why))
        return tuple(found)

    def at_order(self, basis: BasisChoice) -> OrderMargin:
        """Find the same of the gain set made on another plant."""
        self.say(f"the gain set made on {basis.order} {basis.kind}")
        try:
            loop = self.close(basis)
            judged = self.judge(loop, None)
        except (DesignError, ComputationError, InputError) as error:
            return OrderMargin(basis=basis, interval=None, abscissa=np.nan, why=str(error))
        abscissa = float(judged.loop.poles(np.zeros(1)).real.max())
        return OrderMargin(basis=basis, interval=judged.interval, abscissa=abscissa)

    def structured(
        self,
        loop: ClosedLoop,
        judged: _Judged,
        path: Sequence[PoseMargin],
        errors: Mapping[str, float],
    ) -> tuple[StructuredAt, ...]:
        """Bound independent errors at the judged pose, and at the worst one of the motion."""
        if not errors:
            return ()
        end = loop.controller.reference.duration
        at = [(end, "the judged pose", judged.joints, judged.share, judged.interval)]
        stable = [pose for pose in path if pose.interval and pose.t < end]
        worst = min(stable, key=lambda pose: pose.interval.width if pose.interval else 0.0, default=None)
        if worst and worst.interval:
            joints = loop.controller.reference.sample(np.array([worst.t]))[0][:, 0]
            at.append((worst.t, "the worst pose of the motion", joints, 0.0, worst.interval))
        return tuple(
            self._structured(loop, joints, share, errors, t, where)
            for t, where, joints, share, interval in at
            if not interval.marginal
        )

    def _structured(
        self,
        loop: ClosedLoop,
        joints: Array,
        share: float,
        errors: Mapping[str, float],
        t: float,
        where: str,
    ) -> StructuredAt:
        self.say(f"independent errors at {where}")
        uncertain = structured_loop(loop, joints, share, errors)
        found = structured(uncertain, crossings=_frequencies(uncertain), first_crossing=_first)
        names, worst = name_modes(loop, joints, uncertain.size), found.worst_case
        mode = names.name(uncertain.matrix(worst.delta), worst.eigenvalue) if worst else ""
        return StructuredAt(t=t, where=where, second_loop=bool(share), found=found, mode=mode)


def design_uncertain(arm: Arm, design: Design, basis: BasisChoice) -> Controller:
    """Make the controller of a design with a stiffness that its law takes as an input."""
    unknown = StiffnessError(values=None)
    return design_controller(arm, design, basis, interpreted=True, stiffness_error=unknown)


def _judge(loop: ClosedLoop, joints: Array, share: float) -> _Judged:
    """Pull the error alpha out of the loop at a pose and find the interval that it bears."""
    uncertain = pull_out(loop, joints, share, all_together(loop.controller.plant))
    names = name_modes(loop, joints, uncertain.size)
    require_stable(uncertain, names, loop)
    found = stable_interval(uncertain)
    interval = Interval(
        lower=_loss(found.at_lower, uncertain, names),
        upper=_loss(found.at_upper, uncertain, names),
        unmoved=tuple(names.name(uncertain.A, value) for value in found.fixed if value.imag >= 0),
        unknowns=found.unknowns,
        counted=found.counted,
    )
    return _Judged(joints=joints, share=share, loop=uncertain, names=names, interval=interval)


def require_stable(uncertain: UncertainLoop, names: ModeNames, loop: ClosedLoop) -> None:
    """Refuse a loop that is unstable although nothing is wrong.

    Raises
    ------
    DesignError
        With the mode that grows, how fast, and at what frequency.
    """
    values = uncertain.poles(np.zeros(len(uncertain.parameters)))
    grows = values.real > axis_tolerance(values)
    if not grows.any():
        return
    worst = values[grows][values[grows].real.argmax()]
    rate = "" if uncertain.sample_time else f" at {worst.real:.3g} 1/s"
    swing = f", swinging at {uncertain.frequency(worst):.4g} rad/s" if worst.imag else ""
    raise DesignError(
        f"{loop.controller.design.label} on {loop.truth.basis.order} {loop.truth.basis.kind}: "
        "margin: wanted a loop that is stable without an error, came one in which "
        f"{in_words(names.name(uncertain.A, worst))} grows{rate}{swing}"
    )


def _loss(crossing: RealCrossing | None, loop: UncertainLoop, names: ModeNames) -> Loss | None:
    if crossing is None:
        return None
    matrix, value = loop.matrix(np.array([crossing.delta])), crossing.eigenvalue
    mode = names.name(matrix, value) if np.isfinite(value) else "torque on its way"
    return Loss(alpha=crossing.delta, frequency=crossing.frequency, mode=mode)


def structured_loop(
    loop: ClosedLoop, joints: Array, share: float, errors: Mapping[str, float]
) -> UncertainLoop:
    """Pull independent errors out of a loop at a pose: see `find_margin`.

    Raises
    ------
    InputError
        When an error is not known, or nothing can be wrong.
    """
    plant, groups = loop.controller.plant, []
    unknown = set(errors) - {"modes", "links", "damping", "payload"}
    if unknown:
        wanted = "modes, links, damping or payload"
        raise InputError(f"errors: wanted {wanted}, came {', '.join(sorted(unknown))}")
    if "modes" in errors and "links" in errors:
        raise InputError("errors: wanted modes or links, not both, as links hold their modes")
    if "modes" in errors:
        groups = by_mode(plant, errors["modes"])
    if "links" in errors:
        groups = by_link(plant, errors["links"])
    found = pull_out(loop, joints, share, groups)
    own = [*_arm_errors(loop, joints, errors)]
    return add_arm_errors(found, linearise(loop.truth, loop.truth.straight(joints)), own) if own else found


def _arm_errors(loop: ClosedLoop, joints: Array, errors: Mapping[str, float]):
    linear = linearise(loop.truth, loop.truth.straight(joints))
    if "payload" in errors:
        yield from payload_error(loop.truth, linear, errors["payload"])
    if "damping" in errors:
        yield from damping_errors(loop.truth, linear, errors["damping"])


def _frequencies(loop: UncertainLoop) -> list[float]:
    """Frequencies [rad/s] at which single errors, and all alike, first destabilise the loop."""
    p = len(loop.parameters)
    found = []
    for direction in (*np.eye(p), np.ones(p)):
        if loop.owner[direction[loop.owner] != 0].size:
            interval = stable_interval(loop.along(direction))
            found += [c.frequency for c in (interval.at_lower, interval.at_upper) if c]
    return found


def _first(loop: UncertainLoop) -> float:
    """Smallest t > 0 at which a loop of one error is unstable."""
    return stable_interval(loop).upper
