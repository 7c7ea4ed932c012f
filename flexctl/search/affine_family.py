"""Loops that are affine in a parameter: all of them from those at a few nodes.

A closed loop at rest is x' = A x + B tau with the derivatives J(delta) of its law, by the error
delta of the stiffness. Where J and the damping D of the arm are affine in what is varied, with
mass and stiffness as they are, weights w of sum 1 give both from nodes,

    J(delta) = sum w_k J_k(delta),   D = sum w_k D_k,

for every delta, hence the loop with delta pulled out of it. Torques enter one sample of a sampled
loop linearly; its exponential is taken of the arm's combined matrices.
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

_ROUND_OFF = 64 * np.finfo(float).eps  # of an entry: nothing that is varied reaches it


@dataclass(frozen=True, kw_only=True)
class PoseFamily:
    """A loop at joint variables (m,), of a weight of the second loop: what it is at the nodes."""

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    linear: tuple[LinearLoop, ...]
    laws: tuple[Callable[[Array], Array], ...]
    names: Callable[[int], ModeNames]

    def under(self, weights: Array) -> PoseLoop:
        """Return the loop in which the nodes have these weights (nodes,), of sum 1.

        Names of motions are those of the first node.
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
        K, L, E, F = (
            _combine([getattr(one, name) for one in self.linear], weights)
            for name in ("feedback", "integral_gain", "E", "F")
        )
        D = _combine([one.plant.D for one in self.linear], weights)
        plant = replace(self.linear[0].plant, D=D)
        kept = {"plant": plant, "feedback": K, "integral_gain": L, "driven_by": E, "own": F}
        return replace(self.linear[0], **kept)


def family_at(closed: Sequence[ClosedLoop], joints: Array, second_loop_weight: float) -> PoseFamily:
    """Linearise the loops of the nodes at joint variables (m,), at rest."""
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
    """J of a law between or beyond those of the nodes."""

    def __init__(
        self, laws: Sequence[Callable[[Array], Array]], weights: Array, parts: int
    ) -> None:
        self._laws, self._weights, self.parts = laws, weights, parts

    def __call__(self, errors: Array) -> Array:
        return _combine([law(errors) for law in self._laws], self._weights)


def _combine(nodes: Sequence[Array], weights: Array) -> Array:
    """Sum up J_0 and the weighted differences from it, without those that are round-off."""
    first, total = nodes[0], nodes[0].copy()
    for node, weight in zip(nodes[1:], weights[1:], strict=True):
        moved = node - first
        size = np.abs(node) + np.abs(first)
        total += weight * np.where(np.abs(moved) > _ROUND_OFF * size, moved, 0.0)
    return total


def _remembered(law: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the law with its values kept: it is asked for at a few errors again and again."""
    kept: dict[bytes, Array] = {}

    def ask(errors: Array) -> Array:
        key = np.asarray(errors, dtype=float).tobytes()
        if key not in kept:
            kept[key] = law(errors)
        return kept[key]

    return ask
