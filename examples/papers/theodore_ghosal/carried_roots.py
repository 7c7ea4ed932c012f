"""The differential form of the frequency equation, integrated with the motion.

A sliding link's wave numbers are states beside q and v: with s = ln l and the frequency equation
f(beta, s) = 0

    beta' = -(f_s / f_beta) l' / l,

and its modes are taken for the beta that is carried, whether it is a root or not.  Nothing brings
it back to the root: that is this form's own error.  Source: [TG95], (40) to (47), corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from examples.papers.theodore_ghosal.root_rate import equation_by_load
from flexctl.beam.frequency_equation import equation_terms, roots_along
from flexctl.beam.sliding_shapes import LengthShapes, RootShapes
from flexctl.body.body import Body, free_length
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.plant.energies import chain_energies
from flexctl.plant.lagrange import Lagrange
from flexctl.plant.plant import Plant, assemble_plant


@dataclass(frozen=True, kw_only=True, eq=False)
class _CarriedShapes(LengthShapes):
    """Modes of wave numbers `beta` (n, 1) that are known at s = `place` alone, both symbols.

    Beside it they change as the differential form has it.  Two terms of Taylor's series are enough:
    no equation of motion differentiates shapes more than twice by the length.
    """

    own: RootShapes
    beta: ca.SX
    place: ca.SX

    @property
    def names(self) -> tuple[str, ...]:
        return self.own.names

    def mix_at(self, log_length: Any) -> list[list[Any]]:
        way = log_length - self.place
        C, rate, second = self._series
        mix = C + rate * way + second * way**2 / 2
        return [ca.horzsplit(row) for row in ca.vertsplit(mix)]

    @cached_property
    def _series(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """C (K, n) and its first and second derivatives by s along the differential form."""
        at = ca.vertcat(self.beta, self.place)
        along = ca.vertcat(_root_rate(self.own, self.beta, self.place), 1)
        rows = self.own.modes.mix_of(ca.vertsplit(self.beta), self.own.load_at(self.place))
        C = ca.vertcat(*[ca.horzcat(*row) for row in rows])
        rate = ca.jtimes(ca.vec(C), at, along)
        second = ca.jtimes(rate, at, along)
        return C, ca.reshape(rate, C.shape), ca.reshape(second, C.shape)


def _root_rate(own: RootShapes, beta: ca.SX, s: ca.SX) -> ca.SX:
    """dbeta/ds (n, 1): of the loads, M goes as e^-s, J as e^(-3 s) and D as e^(-2 s)."""
    load = own.load_at(s)
    changes = [-load[0], -3 * load[1], -2 * load[2]]
    rates = []
    for root in ca.vertsplit(beta):
        _, slope = equation_terms(root, load)
        by_load = equation_by_load(root, load)
        forcing = sum(a * b for a, b in zip(by_load, changes, strict=True))
        rates.append(-forcing / slope)
    return ca.vertcat(*rates)


@dataclass(frozen=True, kw_only=True)
class CarriedPlant:
    """An arm that slides, with the wave numbers of one sliding link as further states.

    Attributes
    ----------
    plant
        The same arm by root finding: all that does not depend on how beta is had.
    link
        Index of the link.
    motion
        Function (q, v, tau, beta) -> a, beta' of (n, 1), (n, 1), (m, 1), (k, 1).
    """

    plant: Plant
    link: int
    motion: ca.Function

    @cached_property
    def shapes(self) -> RootShapes:
        """The link's modes by root finding."""
        return _shapes(self.plant.bodies[self.link])

    def roots(self, joint: float) -> Array:
        """Return the roots (k,) [-] of the frequency equation at one joint variable [m]."""
        length = joint + self.plant.bodies[self.link].link.dh.d
        return roots_along(self.shapes.modes.n, self.shapes.line.loads([length]))[0]


def carry_roots(arm: Arm, order: int) -> CarriedPlant:
    """Make the equations of motion of an arm together with those of its wave numbers.

    Parameters
    ----------
    arm
        Arm with one sliding link that has a tip load and limits of position.
    order
        Number of modes per link and plane.

    Raises
    ------
    InputError
        When no link, or more than one, slides and carries something, or its planes carry unlike
        things.
    """
    plant = assemble_plant(arm, BasisChoice(order=order, sliding="roots"), interpreted=True)
    sliding = [j for j, body in enumerate(plant.bodies) if body.mixes]
    if len(sliding) != 1 or len({id(x) for x in plant.bodies[sliding[0]].mixes.values()}) != 1:
        raise InputError(
            f"{arm.name}: expected one sliding link with one tip load for its wave numbers to be "
            f"carried, got {len(sliding)}"
        )
    j = sliding[0]
    beta, place = ca.SX.sym("beta", order), ca.SX.sym("place")
    own = _shapes(plant.bodies[j])
    carried = _CarriedShapes(
        own=own,
        beta=beta,
        place=place,
        shortest=own.shortest,
        longest=own.longest,
        base=own.base,
    )
    body = replace(plant.bodies[j], mixes=dict.fromkeys(plant.bodies[j].mixes, carried))
    bodies = (*plant.bodies[:j], body, *plant.bodies[j + 1 :])
    q, v = ca.SX.sym("q", plant.n), ca.SX.sym("v", plant.n)
    tau = ca.SX.sym("tau", plant.m)
    engine = Lagrange(
        energies=chain_energies(arm, bodies, q, v),
        q=q,
        v=v,
        coordinates=plant.coordinates,
        B=ca.SX(ca.sparsify(ca.DM(plant.B))),
    )
    length = free_length(body, q[j])
    rate = _root_rate(own, beta, place) * v[j] / length
    outputs = ca.substitute([engine.forward_dynamics(tau), rate], [place], [ca.log(length)])
    motion = ca.Function("motion", [q, v, tau, beta], outputs, {"cse": True})
    return CarriedPlant(plant=plant, link=j, motion=motion)


def _shapes(body: Body) -> RootShapes:
    own = next(iter(body.mixes.values()))
    if not isinstance(own, RootShapes):
        raise InputError(f"{body.link.name}: expected modes by root finding, got others")
    return own


def root_errors(carried: CarriedPlant, joints: Array, betas: Array) -> Array:
    """Return how far carried wave numbers (k, N) are off at joint variables (N,), relative."""
    exact = np.array([carried.roots(float(joint)) for joint in joints]).T
    return betas / exact - 1
