"""Clamped-mass modes that follow the pose of the arm beyond, by projection of fixed shapes.

M, J and D of a link's tip load depend on the joints beyond it, and so do its modes: [TG95]'s
time-dependent frequency equation of arms with more than one revolute joint.  Such modes are
written in fixed shapes, psi_i(xi; theta) = sum of B_k(xi) C_ki(theta), so that the coordinates of
the arm in the shapes B are a function q = g(y) of y = [joints; rotors; amplitudes of the modes].
With G = dg/dy the arm's equations f(q, q', q'') = B tau in the shapes B become

    G^T f(g, G y', G y'' + (dG/dt) y') = B tau,

whatever made them.  What follows from d(psi)/dtheta is the part of G that C's derivatives are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath
from flexctl.beam.root_modes import RootModes, fit_root_modes
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.plant.assembly import assemble_bodies, inertia_expression, load_beyond
from flexctl.plant.elimination import eliminate
from flexctl.plant.plant import Plant

_MOST_JOINTS = 3  # beyond a link: its table of roots has a grid point for each of their poses


@dataclass(frozen=True, kw_only=True)
class PosePlant:
    """An arm whose turning links have the clamped-mass modes of its present pose.

    Attributes
    ----------
    fine
        The arm in fixed shapes, in which the modes are written.
    mixes
        By line, such as ``link1.y``: C (K, n) as a function of the joint variables (m, 1).
    counted
        Whether what follows from the modes' change counts, in velocity, inertia and elastic forces.
        Without it the equations are those of modes at rest, taken at the present pose: no energy
        belongs to them.
    """

    fine: Plant
    mixes: Mapping[str, ca.Function]
    counted: bool = True

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of all entries of y."""
        names = list(self.fine.coordinates[: self.fine.rigid])
        for line, shapes in _lines(self.fine):
            count = self.mixes[line].size2_out(0) if line in self.mixes else len(shapes)
            names += [f"{line}.{i + 1}" for i in range(count)] if line in self.mixes else shapes
        return tuple(names)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @cached_property
    def position(self) -> ca.Function:
        """Function y -> q, coordinates in fixed shapes."""
        y = ca.SX.sym("y", self.n)
        return ca.Function("position", [y], [self._spread(y) @ y], {"cse": True})

    def function(self, name: str) -> ca.Function:
        """Return a function of y, v, a (n, 1) and tau (m, 1), named and meant as those of `Plant`.

        One of "mass_matrix", "inverse_dynamics", "forward_dynamics", "energies", "elastic_force"
        and "tip".
        """
        if name not in self._made:
            inputs, outputs = _PARTS[name](self._terms)
            dense = [ca.densify(x) for x in outputs]
            self._made[name] = ca.Function(name, inputs, dense, {"cse": True})
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, ca.Function]:
        return {}

    @cached_property
    def _terms(self) -> _Terms:
        y, v, a = (ca.SX.sym(name, self.n) for name in ("y", "v", "a"))
        q = self._spread(y) @ y
        J = ca.jacobian(q, y) if self.counted else self._spread(y)
        drift = ca.jtimes(J @ v, y, v) if self.counted else ca.SX.zeros(self.fine.n)
        return _Terms(
            fine=self.fine.casadi_functions,
            y=y,
            v=v,
            a=a,
            tau=ca.SX.sym("tau", self.fine.m),
            B=ca.DM(self.B),
            q=q,
            J=J,
            drift=drift,
        )

    @cached_property
    def B(self) -> Array:
        """Input matrix (n, m)."""
        return np.eye(self.n)[:, self.fine.drives]

    def modes_at(self, line: str, joints: Array) -> Array:
        """Return C (K, n) of one line at joint variables (m,)."""
        return np.array(self.mixes[line](joints))

    def _spread(self, y: ca.SX) -> ca.SX:
        """Return S (fine n, n) in q = S(theta) y."""
        joints = y[: self.fine.m]
        blocks = [ca.SX.eye(self.fine.rigid)]
        for line, shapes in _lines(self.fine):
            mixed = self.mixes.get(line)
            blocks.append(mixed(joints) if mixed else ca.SX.eye(len(shapes)))
        return ca.diagcat(*blocks)


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """Symbols y, v, a, tau, and the fine plant's q, G = J and (dG/dt) v."""

    fine: Mapping[str, ca.Function]
    y: ca.SX
    v: ca.SX
    a: ca.SX
    tau: ca.SX
    B: ca.DM
    q: ca.SX
    J: ca.SX
    drift: ca.SX

    @cached_property
    def M(self) -> ca.SX:
        """Mass matrix (n, n), one expression on both sides of its diagonal."""
        M = self.J.T @ self.fine["mass_matrix"](self.q) @ self.J
        return ca.densify(ca.triu2symm(ca.triu(ca.densify(M))))

    @cached_property
    def free(self) -> ca.SX:
        """Forces where no coordinate is accelerated (n, 1)."""
        return self.J.T @ self.fine["inverse_dynamics"](self.q, self.J @ self.v, self.drift)

    @cached_property
    def forward(self) -> ca.SX:
        """Accelerations (n, 1) by LDL'."""
        n = self.y.numel()
        system = eliminate(self.M, {i: f"coordinate {i + 1}" for i in range(n)})
        return system.solve(system.reduce(self.free - self.B @ self.tau), ca.SX.zeros(n))


_PARTS: dict[str, Callable[[_Terms], tuple[list[ca.SX], list[ca.SX]]]] = {
    "mass_matrix": lambda e: ([e.y], [e.M]),
    "inverse_dynamics": lambda e: ([e.y, e.v, e.a], [e.M @ e.a + e.free]),
    "forward_dynamics": lambda e: ([e.y, e.v, e.tau], [e.forward]),
    "energies": lambda e: ([e.y, e.v], [*e.fine["energies"](e.q, e.J @ e.v)]),
    "elastic_force": lambda e: ([e.y], [e.J.T @ e.fine["elastic_force"](e.q)]),
    "tip": lambda e: ([e.y], [e.fine["tip"](e.q)]),
}


def assemble_pose_plant(arm: Arm, basis: BasisChoice, *, counted: bool = True) -> PosePlant:
    """Give every turning link with a tip load the clamped-mass modes of the arm's present pose.

    Loads are what `tip_load.include` names of the links beyond, rigid at the present joint
    variables, within the limits of position of these joints.  Lines that twist do so in the modes
    of the reference pose.

    Parameters
    ----------
    arm
        Arm whose links beyond a tip load have limits of position.
    basis
        Modes, and their number per link and plane.
    counted
        See `PosePlant`.

    Raises
    ------
    InputError
        When the basis is not of modes, a link varies along itself, a limit is missing, or more
        than three joints follow.
    ComputationError
        When a load varies too much within the limits.  Source: [TG95], 2.1.1 and 4.2.
    """
    if basis.kind != "modes":
        raise InputError(f'basis.kind: expected "modes" to follow the pose, got {basis.kind!r}')
    bodies, mixes = [], {}
    for j, body in enumerate(assemble_bodies(arm, basis)):
        planes = dict(body.planes)
        for direction in body.bent if _follows(arm, j) else ():
            modes = _modes(arm, j, direction, basis.order)
            planes[direction] = modes.base
            mixes[f"{body.link.name}.{direction}"] = _mix(arm, j, direction, modes)
        bodies.append(replace(body, planes=planes))
    fine = Plant(arm=arm, basis=basis, bodies=tuple(bodies), interpreted=True)
    return PosePlant(fine=fine, mixes=mixes, counted=counted)


def _lines(fine: Plant) -> list[tuple[str, list[str]]]:
    """Lines of a plant with the names of their coordinates."""
    return [
        (f"{body.link.name}.{d}", [f"{body.link.name}.{d}.{name}" for name in body.names(d)])
        for body in fine.bodies
        for d in body.planes
    ]


def _follows(arm: Arm, j: int) -> bool:
    """Whether what link j carries changes with the pose."""
    link = arm.links[j]
    return link.joint == "revolute" and link.tip_load is not None and j + 1 < len(arm.links)


def _modes(arm: Arm, j: int, direction: str, order: int) -> RootModes:
    link = arm.links[j]
    if not link.plain:
        raise InputError(f"{link.name}: expected a uniform link, whose modes can follow the pose")
    beyond = range(j + 1, len(arm.links))
    if len(beyond) > _MOST_JOINTS:
        raise InputError(
            f"{link.name}: expected at most {_MOST_JOINTS} joints beyond modes that follow the "
            f"pose, got {len(beyond)}"
        )
    limits = [_limits(arm, i) for i in beyond]
    low, high = (np.array(ends) for ends in zip(*limits, strict=True))
    return fit_root_modes(order, _loads(arm, j, direction), low, high)


def _limits(arm: Arm, i: int) -> tuple[float, float]:
    link = arm.links[i]
    if link.limits.position is None:
        raise InputError(
            f"{link.name}.limits.position: expected the range of the modes of the links before it, "
            "got nothing"
        )
    return link.limits.position[0], link.limits.position[1]


def _load(arm: Arm, j: int, direction: str, joints: ca.SX) -> ca.SX:
    """M, J, D and M J - D^2 [-] of link j's tip load as expressions of the joints (4, 1)."""
    link = arm.links[j]
    unit = link.mass_per_length * link.length
    mass, turning, moment = load_beyond(arm, j, direction, inertia_expression(arm, j, joints))
    M, J, D = mass / unit, turning / (unit * link.length**2), moment / (unit * link.length)
    return ca.vertcat(M, J, D, M * J - D**2)


def _loads(arm: Arm, j: int, direction: str) -> Callable[[Array], LoadPath]:
    """Make the function from variables (k, d) of the joints beyond link j to its k loads."""
    joints = ca.SX.sym("joints", len(arm.links))
    load = ca.Function("load", [joints], [ca.densify(_load(arm, j, direction, joints))])

    def loads(parameters: Array) -> LoadPath:
        poses = np.zeros((len(arm.links), len(parameters)))
        poses[j + 1 :] = parameters.T
        found = np.array(load(poses)).T
        for M, J, D, _ in found:
            TipLoad(mass=M, inertia=J, offset=D)  # refuses what no body can be
        return LoadPath(value=found[:, :3], determinant=found[:, 3:])

    return loads


def _mix(arm: Arm, j: int, direction: str, modes: RootModes) -> ca.Function:
    joints = ca.SX.sym("joints", len(arm.links))
    M, J, D, H = ca.vertsplit(_load(arm, j, direction, joints))
    rows = modes.mix_at(ca.vertsplit(joints[j + 1 :]), (M, J, D, H))
    C = ca.vertcat(*[ca.horzcat(*row) for row in rows])
    return ca.Function("mix", [joints], [C], {"cse": True})
