"""Variants of a loop among which remedies are searched, at all judged poses.

A closed loop at rest is x' = A x + B tau with the derivatives J(delta) of its law, which depend on
the error delta of the stiffness. Where J and the damping D of the arm are affine in a parameter,
and mass and stiffness constant, weights w of sum 1 give both from the nodes k,

    J(delta) = sum w_k J_k(delta),   D = sum w_k D_k,

for every delta, and so the loop with delta pulled out. The one-sample map of a sampled loop is
linear in the torques; its exponential is that of the combined matrices of the arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from flexctl.checks import Array
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    ModeNames,
    linearise_loop,
    motion_poses,
    name_modes,
)
from flexctl.model import Design, Gains, with_damping
from flexctl.robustness import Case, PoseLoop, RestingLaw, all_together, loop_at, pull_out_of
from flexctl.search.tolerance_search import Variants

_NODE = 0.1  # damping ratio of the second node of a family
_ROUND_OFF = 64 * np.finfo(float).eps  # relative change of an entry that counts as none


def judged_poses(closed: ClosedLoop, count: int) -> list[tuple[Array, float]]:
    """Joint variables (m,) of all judged poses with the weight of the second loop there.

    The final pose under the second loop if there is one, then `count` poses of the motion, the end
    first.
    """
    poses = [(joints, 0.0) for joints in _path_poses(closed, count)]
    if closed.controller.feedback is None:
        return poses
    return [(closed.controller.reference.final, 1.0), *(poses if count else [])]


def judged_loops(closed: ClosedLoop, count: int) -> Iterator[PoseLoop]:
    """Yield the loops of a design at all judged poses: see `judged_poses`."""
    return (loop_at(closed, joints, weight) for joints, weight in judged_poses(closed, count))


def _path_poses(closed: ClosedLoop, count: int) -> Array:
    """Joint variables (k, m) at `count` poses along the motion, the final pose first."""
    return motion_poses(closed.controller.reference, count)[1][::-1]


def gain_families(case: Case) -> tuple[PoseFamily, ...]:
    """Families of the loops of a design over its joint gains, the final pose first.

    They are under the law of the gross motion; with integral gains, which act under the second loop
    too, the final pose under that loop is the last.
    """
    nodes = close_family(case)
    own = nodes[0].controller
    families = [family_at(nodes, joints, 0.0) for joints in _path_poses(nodes[0], case.n_path)]
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
    families = [family_at(nodes, joints, 0.0) for joints in _path_poses(nodes[0], case.n_path)]
    return lambda ratio: (
        family.under(np.array([1 - ratio / _NODE, ratio / _NODE])) for family in families
    )


def rebuilt(case_of: Callable[[float], Case]) -> Variants:
    """Variants whose controller is redesigned for every value; the last few are cached."""

    @lru_cache(maxsize=4)
    def close(value: float) -> ClosedLoop:
        return case_of(value).close()

    return lambda value: judged_loops(close(value), case_of(value).n_path)


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


def close_family(case: Case) -> tuple[ClosedLoop, ...]:
    """Close the loops at the nodes of the family over the joint gains, the design's own first."""
    nodes = _NODES if any(case.design.joint_gains.Gi or ()) else _NODES[:3]
    return tuple(case.close(with_gains(case.design, node)) for node in nodes)


@dataclass(frozen=True, kw_only=True)
class PoseFamily:
    """A loop at one pose, at the nodes of a family.

    `closed` is the closed loop of the first node, `linear` and `laws` are the linear loop of each
    node and the derivatives J of its law over errors (p,); `names` gives the names of the modes of
    a loop with so many states.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    linear: tuple[LinearLoop, ...]
    laws: tuple[Callable[[Array], Array], ...]
    names: Callable[[int], ModeNames]

    def under(self, weights: Array) -> PoseLoop:
        """Return the loop with these weights (nodes,) of the nodes, of sum 1.

        Its modes have the names of those of the first node.
        """
        plant = self.closed.controller.plant
        law = _Combined(self.laws, weights, len(plant.stiffness_parts))
        loop = pull_out_of(law, self.closed, self._combined(weights), all_together(plant))
        return PoseLoop(
            closed=self.closed,
            joints=self.joints,
            second_loop_weight=self.second_loop_weight,
            loop=loop,
            names=self.names(loop.size),
        )

    def _combined(self, weights: Array) -> LinearLoop:
        """Linear loop with weights (nodes,), without error."""
        K, L, E, F = (
            _combine([getattr(one, name) for one in self.linear], weights)
            for name in ("feedback", "integral_gain", "E", "F")
        )
        D = _combine([one.plant.D for one in self.linear], weights)
        plant = replace(self.linear[0].plant, D=D)
        kept = {"plant": plant, "feedback": K, "integral_gain": L, "driven_by": E, "own": F}
        return replace(self.linear[0], **kept)


def family_at(closed: Sequence[ClosedLoop], joints: Array, second_loop_weight: float) -> PoseFamily:
    """Linearise the loops of the nodes at rest at joint variables (m,)."""
    linear = [linearise_loop(loop, joints, second_loop_weight) for loop in closed]
    pairs = zip(closed, linear, strict=True)
    return PoseFamily(
        closed=closed[0],
        joints=joints,
        second_loop_weight=second_loop_weight,
        linear=tuple(linear),
        laws=tuple(
            _remembered(RestingLaw(loop, joints, second_loop_weight, own)) for loop, own in pairs
        ),
        names=lru_cache(maxsize=1)(partial(name_modes, closed[0], joints)),
    )


@dataclass(frozen=True)
class _Combined:
    """J of a law with weights (nodes,) of the laws of the nodes."""

    laws: Sequence[Callable[[Array], Array]]
    weights: Array
    parts: int

    def __call__(self, errors: Array) -> Array:
        return _combine([law(errors) for law in self.laws], self.weights)


def _combine(nodes: Sequence[Array], weights: Array) -> Array:
    """Sum of the first node and the weighted differences from it that exceed round-off."""
    first, total = nodes[0], nodes[0].copy()
    for node, weight in zip(nodes[1:], weights[1:], strict=True):
        moved = node - first
        size = np.abs(node) + np.abs(first)
        total += weight * np.where(np.abs(moved) > _ROUND_OFF * size, moved, 0.0)
    return total


def _remembered(law: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the law with a cache, as it is evaluated repeatedly at the same few errors."""
    kept: dict[bytes, Array] = {}

    def evaluate(errors: Array) -> Array:
        key = np.asarray(errors, dtype=float).tobytes()
        if key not in kept:
            kept[key] = law(errors)
        return kept[key]

    return evaluate
