"""What a remedy is sought for: an arm, a design, and the poses at which its loop is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from flexctl.catalogue import Arm, BasisChoice, Design
from flexctl.checks import Array
from flexctl.design import design_controller
from flexctl.errors import InputError
from flexctl.loop.affine_family import PoseFamily, family_at
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.comparison import default_truth
from flexctl.loop.gain_family import GainFactors, close_family
from flexctl.loop.margin import without_damping
from flexctl.loop.pose_loop import PoseLoop, loop_at
from flexctl.loop.requirement import Variants
from flexctl.plant import Plant, StiffnessError, assemble_plant

_NODE = 0.1  # damping ratio


@dataclass(frozen=True, kw_only=True)
class Case:
    """An arm as its designer knows it, as it is, and a design for it.

    Attributes
    ----------
    arm, design
        As in `find_margin`.
    truth_arm, truth_basis, design_basis
        As there; None for the defaults.
    unknown_damping
        Whether the controller is made for the arm without its damping.
    n_path
        Poses along the motion, at equal times, under the law of the gross motion; the last is the
        final one, and with 1 it is the only one. 0 leaves that law out where there is a second
        loop, under which the final pose is judged besides.
    """

    arm: Arm
    design: Design
    truth_arm: Arm | None = None
    truth_basis: BasisChoice | None = None
    design_basis: BasisChoice | None = None
    unknown_damping: bool = False
    n_path: int = 11

    def __post_init__(self) -> None:
        """Refuse what has no margin."""
        if self.design.open_loop:
            came = self.design.method
            raise InputError(f"{self.design.label}: wanted a design with feedback, came {came}")
        if self.n_path < 0:
            raise InputError(f"n_path: wanted no negative number of poses, came {self.n_path}")

    @cached_property
    def truth(self) -> Plant:
        """The truth plant."""
        basis = self.truth_basis or default_truth(self.arm, self.basis)
        return assemble_plant(self.truth_arm or self.arm, basis, interpreted=True)

    @property
    def basis(self) -> BasisChoice:
        """Discretisation of the design plant."""
        return self.design_basis or self.design.basis

    def close(self, design: Design | None = None) -> ClosedLoop:
        """Close the loop of this design, or of another for the same arm, its stiffness unknown."""
        controller = design_controller(
            without_damping(self.arm) if self.unknown_damping else self.arm,
            design or self.design,
            self.basis,
            interpreted=True,
            stiffness_error=StiffnessError(values=None),
        )
        return close_around(controller, self.truth)

    def changed(self, change: Callable[[Arm], Arm]) -> Case:
        """Return the same for an arm changed in fact and as the controller knows it."""
        body = self.truth_arm and change(self.truth_arm)
        return replace(self, arm=change(self.arm), truth_arm=body)


def path_poses(closed: ClosedLoop, count: int) -> Array:
    """Joint variables (count, m) along the motion, at equal times, the final pose last."""
    motion = closed.controller.reference
    if count <= 1 or not motion.duration:
        return motion.final[None, :]
    return motion.sample(np.linspace(0, motion.duration, count))[0].T


def judged_loops(closed: ClosedLoop, count: int) -> Iterator[PoseLoop]:
    """Loops of a design at the final pose, under its second loop if it has one, and on its way.

    They are made as they are asked for, the final pose first.
    """
    if closed.controller.feedback is not None:
        yield loop_at(closed, closed.controller.reference.final, 1.0)
        if not count:
            return
    for joints in reversed(path_poses(closed, count)):
        yield loop_at(closed, joints, 0.0)


def gain_families(case: Case) -> tuple[PoseFamily, ...]:
    """Loops of a design under any joint gains in the gross motion, final pose first.

    With integral gains, which act under the second loop too, it is judged there as well.
    """
    nodes = close_family(case.design, case.close)
    own = nodes[0].controller
    poses = reversed(path_poses(nodes[0], case.n_path))
    found = [family_at(nodes, joints, 0.0) for joints in poses]
    if own.feedback is not None and own.n_integral:
        found.append(family_at(nodes, own.reference.final, 1.0))
    return tuple(found)


def under_gains(families: Sequence[PoseFamily], by: GainFactors) -> Iterator[PoseLoop]:
    """Loops at all poses under the same gains, made as they are asked for."""
    return (family.under(by.weights[: len(family.laws)]) for family in families)


def damped(case: Case) -> Variants:
    """Loops by the damping ratio of all links.

    Laws without a second loop, a fast loop or an observer compute with the damping, and are affine
    in it as the arm is; those that have gains of their own from a Riccati equation are made anew.
    """

    def at(ratio: float) -> Case:
        return case.changed(lambda arm: with_damping(arm, ratio))

    design = case.design
    if design.second_loop or design.fast_loop or design.instruments:
        return rebuilt(at)
    nodes = [at(ratio).close() for ratio in (0.0, _NODE)]
    poses = reversed(path_poses(nodes[0], case.n_path))
    families = [family_at(nodes, joints, 0.0) for joints in poses]
    return lambda ratio: (
        family.under(np.array([1 - ratio / _NODE, ratio / _NODE])) for family in families
    )


def with_damping(arm: Arm, ratio: float) -> Arm:
    """Return the arm with one damping ratio of all modes of its links; springs keep theirs."""
    links = tuple(
        link.model_copy(update={"damping_ratio": (ratio,)}) if link.flexible else link
        for link in arm.links
    )
    return arm.model_copy(update={"links": links})


def rebuilt(case_of: Callable[[float], Case]) -> Variants:
    """Return variants whose arm or design is made anew for every value; the last few are kept."""

    @lru_cache(maxsize=4)
    def close(value: float) -> ClosedLoop:
        return case_of(value).close()

    def loops(value: float) -> Iterator[PoseLoop]:
        yield from judged_loops(close(value), case_of(value).n_path)

    return loops
