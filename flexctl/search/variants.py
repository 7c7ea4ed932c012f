"""Variants of a loop among which remedies are searched, at all judged poses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop, motion_poses
from flexctl.model import Design, Gains, with_damping
from flexctl.robustness import Case, PoseLoop, loop_at
from flexctl.search.affine_family import PoseFamily, family_at
from flexctl.search.requirement import Variants

_NODE = 0.1  # damping ratio of the second node of a family


def path_poses(closed: ClosedLoop, count: int) -> Array:
    """Joint variables (k, m) [rad or m] at `count` poses along the motion."""
    return motion_poses(closed.controller.reference, count)[1]


def judged_loops(closed: ClosedLoop, count: int) -> Iterator[PoseLoop]:
    """Yield the loops of a design at all judged poses, the final pose first.

    The final pose under the second loop if there is one, then `count` poses of the motion.
    """
    if closed.controller.feedback is not None:
        yield loop_at(closed, closed.controller.reference.final, 1.0)
        if not count:
            return
    for joints in reversed(path_poses(closed, count)):
        yield loop_at(closed, joints, 0.0)


def gain_families(case: Case) -> tuple[PoseFamily, ...]:
    """Families of the loops of a design over its joint gains, the final pose first.

    They are under the law of the gross motion; with integral gains, which act under the second loop
    too, the final pose under that loop is the last.
    """
    nodes = close_family(case.design, case.close)
    own = nodes[0].controller
    poses = reversed(path_poses(nodes[0], case.n_path))
    families = [family_at(nodes, joints, 0.0) for joints in poses]
    if own.feedback is not None and own.n_integral:
        families.append(family_at(nodes, own.reference.final, 1.0))
    return tuple(families)


def under_gains(families: Sequence[PoseFamily], by: GainFactors) -> Iterator[PoseLoop]:
    """Loops at all poses under the same gain factors."""
    return (family.under(by.weights[: len(family.laws)]) for family in families)


def damped(case: Case) -> Variants:
    """Variants over the damping ratio of all links.

    Laws without a second loop, a fast loop or an observer are affine in the damping, as the arm is,
    and follow from two nodes. Laws with gains from a Riccati equation are redesigned.
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


def rebuilt(case_of: Callable[[float], Case]) -> Variants:
    """Variants whose controller is redesigned for every value; the last few are cached."""

    @lru_cache(maxsize=4)
    def close(value: float) -> ClosedLoop:
        return case_of(value).close()

    def loops(value: float) -> Iterator[PoseLoop]:
        yield from judged_loops(close(value), case_of(value).n_path)

    return loops


@dataclass(frozen=True, kw_only=True)
class GainFactors:
    """Factors of the joint gains of a design [-], the same for all joints."""

    Gp: float = 1.0
    Gv: float = 1.0
    Gi: float = 1.0

    @property
    def weights(self) -> Array:
        """Weights (4,) of the nodes `_NODES`, J_0, J_p, J_v and J_i, of sum 1."""
        moved = np.array([self.Gp - 1, self.Gv - 1, -2 * (self.Gi - 1)])
        return np.array([1 - moved.sum(), *moved])


_NODES = (GainFactors(), GainFactors(Gp=2.0), GainFactors(Gv=2.0), GainFactors(Gi=0.5))


def faster(s: float) -> GainFactors:
    """Factors for s times the bandwidth at the same damping ratios: s^2 Gp, s Gv, s^3 Gi."""
    return GainFactors(Gp=s**2, Gv=s, Gi=s**3)


def scale_gains(gains: Gains, by: GainFactors) -> Gains:
    """Return gains multiplied by factors."""
    integral = tuple(by.Gi * g for g in gains.Gi) if gains.Gi else gains.Gi
    return Gains(
        Gp=tuple(by.Gp * g for g in gains.Gp), Gv=tuple(by.Gv * g for g in gains.Gv), Gi=integral
    )


def with_gains(design: Design, by: GainFactors) -> Design:
    """Return a design with its joint gains multiplied by factors."""
    return design.model_copy(update={"gains": scale_gains(design.joint_gains, by)})


def close_family(design: Design, close: Callable[[Design], ClosedLoop]) -> tuple[ClosedLoop, ...]:
    """Close the loops at the nodes of the family over the joint gains, the design's own first.

    `close` closes the loop of a design with the errors of its stiffness as inputs.
    """
    integral = any(design.joint_gains.Gi or ())
    nodes = _NODES if integral else _NODES[:3]
    return tuple(close(with_gains(design, node)) for node in nodes)
