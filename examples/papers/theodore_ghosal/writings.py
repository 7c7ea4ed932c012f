"""The mass matrices of [TG95]'s arms in several writings, and what each of them costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from examples.papers.theodore_ghosal.algorithm import (
    SmallChain,
    element_matrices,
    lay_chain,
    link_matrix,
    payload_matrix,
)
from examples.papers.theodore_ghosal.expansion import Expansion, multiply_out
from flexctl.beam.reduction import CraigBampton
from flexctl.beam.shapes import Shapes
from flexctl.body.body import Body
from flexctl.checks import Array
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.assembly import assemble_bodies
from flexctl.plant.energies import chain_energies
from flexctl.plant.operations import Operations, count_operations, count_written_out, lower_triangle
from flexctl.plant.recursion import Recursion

Kind = Literal["modes", "elements", "tip"]
PAYLOAD = 0.0828  # kg, table 3
Cost = tuple[int, int]
"""Multiplications and additions."""
_ROUND_OFF = 1e-10  # of a tip value that a combination of shapes is solved for


@cache
def bare_arm(name: str) -> Arm:
    """Load one of the arms of table 2, such as ``rr``, without payload."""
    arm = load_model(f"theodore-ghosal-{name}")
    return arm.model_copy(update={"payload": arm.payload.model_copy(update={"mass": 0.0})})


def in_planes(name: str, *planes: str) -> Arm:
    """Return such an arm whose flexible links bend in one plane each."""
    arm, directions = bare_arm(name), iter(planes)
    links = [
        link.model_copy(update={"EI": {next(directions): max(link.EI.values())}, "tip_load": None})
        if link.EI
        else link
        for link in arm.links
    ]
    return arm.model_copy(update={"links": tuple(links)})


def shaped(arm: Arm, kind: Kind, order: int) -> list[Body]:
    """Give an arm shapes; ``tip``: those of as many modes, with the tip as coordinates.

    Deflection and slope of the tip take the place of two amplitudes; the span is the same.
    """
    basis = BasisChoice(kind="elements" if kind == "elements" else "modes", order=order)
    bodies = assemble_bodies(arm, basis)
    return [_at_the_tip(body) for body in bodies] if kind == "tip" else list(bodies)


def _at_the_tip(body: Body) -> Body:
    planes = {
        direction: ExactTip(base=CraigBampton(base=shapes, kept=len(shapes.names) - 2))
        for direction, shapes in body.planes.items()
    }
    return replace(body, planes=planes)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactTip(Shapes):
    """Shapes whose deflection and slope at the tip are the whole numbers they are meant to be.

    Of a combination they are so but for round-off, and each 1e-16 would cost a multiplication.
    """

    base: Shapes

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.names

    @property
    def power(self) -> NDArray[np.int64]:
        """Those of the base, (n,)."""
        return self.base.power

    @property
    def breaks(self) -> Array:
        """Those of the base."""
        return self.base.breaks

    @property
    def points_per_panel(self) -> int:
        """That of the base."""
        return self.base.points_per_panel

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (n, k)."""
        found = self.base.evaluate(xi, derivative)
        meant = (xi == 1) & (derivative < 2) & (np.abs(found - np.round(found)) < _ROUND_OFF)
        return np.where(meant, np.round(found), found)


@dataclass(frozen=True, kw_only=True)
class Writings:
    """What M(q) costs, each entry once; all but the payload's without payload.

    Attributes
    ----------
    shared
        The recursion's graph, common subexpressions evaluated once.
    lagrange
        The graph of Lagrange's equations.
    tree, lagrange_tree
        The same, every entry written out by itself.
    expanded, payload
        Algorithm 1 of [TG95] for links and joints, and for the payload, multiplied out.
    first_order, payload_first_order
        The same without products of elastic coordinates.
    """

    shared: Cost
    lagrange: Cost
    tree: Cost
    lagrange_tree: Cost
    expanded: Cost
    first_order: Cost
    payload: Cost
    payload_first_order: Cost


@cache
def writings(name: str, kind: Kind, order: int = 2) -> Writings:
    """Count M(q) of an arm of table 2 in all writings."""
    arm = bare_arm(name)
    bodies = shaped(arm, kind, order)
    chain = lay_chain(bodies)
    graphs = [_recursion(arm, bodies, chain), _lagrange(arm, bodies, chain)]
    trees = [count_written_out(lower_triangle(graph)) for graph in graphs]
    links, load = multiply_out(link_matrix(chain)), multiply_out(payload_matrix(chain, PAYLOAD))
    return Writings(
        shared=cost(count_operations(graphs[0])),
        lagrange=cost(count_operations(graphs[1])),
        tree=cost(trees[0]),
        lagrange_tree=cost(trees[1]),
        expanded=cost(links.count()),
        first_order=cost(_first_order(chain, links)),
        payload=cost(load.count()),
        payload_first_order=cost(_first_order(chain, load)),
    )


def expanded(arm: Arm, kind: Kind = "modes", order: int = 2) -> Cost:
    """Count Algorithm 1, multiplied out, of any arm."""
    return cost(multiply_out(link_matrix(lay_chain(shaped(arm, kind, order)))).count())


@cache
def by_element(name: str, order: int = 2) -> Cost:
    """Count Algorithm 1 of every element by itself, without products of elastic coordinates."""
    chain = lay_chain(shaped(bare_arm(name), "elements", order))
    pieces = [multiply_out(piece) for piece in element_matrices(chain, order)]
    return cost(*(_first_order(chain, piece) for piece in pieces))


def cost(*operations: Operations) -> Cost:
    """Multiplications and additions of several counts together."""
    return sum(one.mul for one in operations), sum(one.add for one in operations)


def says(*costs: Cost) -> str:
    """Write counts as the paper does."""
    return " and ".join(f"{mul}/{add}" for mul, add in costs)


def _first_order(chain: SmallChain, found: Expansion) -> Operations:
    elastic = range(len(chain.lines), chain.q.shape[0])
    return found.up_to(1, elastic).count()


def _recursion(arm: Arm, bodies: list[Body], chain: SmallChain) -> ca.Function:
    M = Recursion(arm=arm, bodies=bodies, q=chain.q, v=chain.v).mass_matrix()
    return ca.Function("mass_matrix", [chain.q], [ca.densify(M)], {"cse": True})


def _lagrange(arm: Arm, bodies: list[Body], chain: SmallChain) -> ca.Function:
    kinetic = chain_energies(arm, bodies, chain.q, chain.v).kinetic
    M = ca.hessian(kinetic, chain.v)[0]
    return ca.Function("mass_matrix", [chain.q], [ca.densify(M)], {"cse": True})
