"""Families of loops that are affine in a parameter, from the loops at a few nodes.

A closed loop at rest is x' = A x + B tau with the derivatives J(delta) of its law, which depend on
the error delta of the stiffness. Where J and the damping D of the arm are affine in the parameter,
and mass and stiffness constant, weights w of sum 1 give both from the nodes k,

    J(delta) = sum w_k J_k(delta),   D = sum w_k D_k,

for every delta, and so the loop with delta pulled out. The one-sample map of a sampled loop is
linear in the torques; its exponential is that of the combined matrices of the arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.loop import ClosedLoop, LinearLoop, ModeNames, linearise_loop, name_modes
from flexctl.robustness import PoseLoop, RestingLaw, all_together, pull_out_of

_ROUND_OFF = 64 * np.finfo(float).eps  # relative change of an entry that counts as none


@dataclass(frozen=True, kw_only=True)
class PoseFamily:
    """A loop at one pose, at the nodes of a family.

    Attributes
    ----------
    closed, joints, second_loop_weight
        The closed loop of the first node, joint variables (m,) [rad or m], and 1 under the second
        loop, else 0.
    linear, laws
        The linear loop of each node, and the derivatives J of its law over errors (p,).
    names
        Names of the modes of a loop with so many states.
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
        checks.shape("weights", weights, (len(self.laws),))
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


class _Combined:
    """J of a law with weights (nodes,) of the laws of the nodes."""

    def __init__(
        self, laws: Sequence[Callable[[Array], Array]], weights: Array, parts: int
    ) -> None:
        self._laws, self._weights, self.parts = laws, weights, parts

    def __call__(self, errors: Array) -> Array:
        return _combine([law(errors) for law in self._laws], self._weights)


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
