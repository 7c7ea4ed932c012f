"""Variants of a loop that remedies are sought among, at the poses at which they are judged."""

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

_NODE = 0.1  # damping ratio


def path_poses(closed: ClosedLoop, count: int) -> Array:
    """Joint variables (k, m) of `motion_poses`."""
    return motion_poses(closed.controller.reference, count)[1]


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
    families = [family_at(nodes, joints, 0.0) for joints in poses]
    if own.feedback is not None and own.n_integral:
        families.append(family_at(nodes, own.reference.final, 1.0))
    return tuple(families)


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


def rebuilt(case_of: Callable[[float], Case]) -> Variants:
    """Return variants whose arm or design is made anew for every value; the last few are kept."""

    @lru_cache(maxsize=4)
    def close(value: float) -> ClosedLoop:
        return case_of(value).close()

    def loops(value: float) -> Iterator[PoseLoop]:
        yield from judged_loops(close(value), case_of(value).n_path)

    return loops


@dataclass(frozen=True, kw_only=True)
class GainFactors:
    """By what the joint gains of a design are multiplied [-]; all joints alike."""

    Gp: float = 1.0
    Gv: float = 1.0
    Gi: float = 1.0

    @property
    def weights(self) -> Array:
        """Weights (4,) of J_0, J_p, J_v and J_i, of sum 1."""
        moved = np.array([self.Gp - 1, self.Gv - 1, -2 * (self.Gi - 1)])
        return np.array([1 - moved.sum(), *moved])


_NODES = (GainFactors(), GainFactors(Gp=2.0), GainFactors(Gv=2.0), GainFactors(Gi=0.5))


def faster(s: float) -> GainFactors:
    """Bandwidth s times as large, at the same damping ratios: s^2 Gp, s Gv, s^3 Gi."""
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
    """Close the loops of a design that those under all other gains follow from, its own first.

    `close` makes the loop of a design with errors of its stiffness that are unknown.
    """
    integral = any(design.joint_gains.Gi or ())
    nodes = _NODES if integral else _NODES[:3]
    return tuple(close(with_gains(design, node)) for node in nodes)
