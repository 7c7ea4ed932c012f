"""The arm with a chosen discretisation: its equations of motion as CasADi functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.body import Body
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Arm, BasisChoice, load_model, nearest, pick_basis
from flexctl.plant.assembly import assemble_bodies, check_joints, default_joints, joint_range
from flexctl.plant.compilation import Evaluator, Wanted, backend, group_library, load_evaluators
from flexctl.plant.energies import chain_energies
from flexctl.plant.equations import Equations
from flexctl.plant.friction import JointFriction
from flexctl.plant.functions import LIBRARIES, MATRICES, PlantFunctions, share_functions
from flexctl.plant.lagrange import Lagrange
from flexctl.plant.library_cache import record_digest, source_digest
from flexctl.plant.motors import without_command_limits
from flexctl.plant.parameters import (
    STIFFNESS_ERROR,
    Numbers,
    blank_numbers,
    change_numbers,
    expand_names,
    is_stiffness_error,
    pack_numbers,
    with_symbols,
)
from flexctl.plant.python_control import nonlinear_system
from flexctl.plant.recursion import Recursion
from flexctl.plant.sliding import check_followed, followed_range
from flexctl.plant.stiffness_error import part_energies, stiffness_parts
from flexctl.plant.validity import STEEPEST_NODE, check_slopes, require_balance
from flexctl.records import Summary

EngineName = Literal["recursion", "lagrange"]

_WORDS = {"summary", "source", "expect", "truth", "name", "path"}  # not part of the physics


@dataclass(frozen=True, kw_only=True, repr=False)
class Plant(Summary):
    """Equations of motion M(q) a + h(q, v) + c(q) + k(q) + D(q) v + f(v) = B tau of one arm.

    q = [joint variables; rotor angles; elastic coordinates] has n entries, tau one per joint (m); a
    joint with a rotor is driven by it through a spring.  f is the dry friction of the joints, D has
    the viscous one.  tau are torques, or the commands [A or V] of motors: then B has the torques
    per command, and D the dampers of back-EMF.  Numeric methods take and return arrays: q, v, a
    (n,), tau (m,); SI units, radians.  They accept any q: if the rotation vector of a tip that
    bends in space is longer than pi, its series and all results are wrong.

    Attributes
    ----------
    arm
        Continuous data.
    basis
        Discretisation of every flexible link and plane.
    bodies
        Links with their shapes, from the base outwards.
    engine
        Engine of the kinetic terms: "recursion", or its independent check "lagrange".
    interpreted
        Whether the functions stay in the CasADi virtual machine even where a compiler is found:
        for a fine mesh of which only eigenvalues are needed.
    parameters
        Names of the k numbers that are free; together they are the last input of every CasADi
        function. Numeric methods take them from `arm` and `stiffness_error`; see `at`.
    stiffness_error
        Relative errors K_hat/K - 1 [-] of all parts of this model's stiffness, by name.
    shaped_for
        The arm that the shapes of modes were made for, if its numbers have changed since; None
        where they are those of `arm`.
    friction
        Whether the joints have the friction of `arm`; plants of controllers have none.

    Examples
    --------
    >>> import flexctl
    >>> plant = flexctl.assemble_plant("single-link-hub", modes=2)
    >>> plant.mass_matrix(plant.pose({"joint1": 0.5})).shape
    (3, 3)
    """

    arm: Arm
    basis: BasisChoice
    bodies: tuple[Body, ...]
    engine: EngineName = "recursion"
    interpreted: bool = False
    parameters: tuple[str, ...] = ()
    stiffness_error: Mapping[str, float] = field(default_factory=dict)
    shaped_for: Arm | None = None
    friction: bool = True

    def __repr__(self) -> str:
        return f"Plant({self.arm.name}, {self.basis.label}, n={self.n}, m={self.m})"

    def _facts(self) -> dict[str, Any]:
        return {
            "model": self.arm.name,
            "basis": self.basis.label,
            "coordinates": ", ".join(self.coordinates),
            "actuators": ", ".join(self.joints),
            "parameters": ", ".join(self.parameters),
            "engine": self.engine,
            "backend": self.backend,
        }

    def at(self, values: Mapping[str, ArrayLike]) -> Plant:
        """Return the plant with other values of free numbers, by key; the rest stays as it is.

        It shares all functions with this one. Shapes of modes that assume a tip load stay those of
        this plant, see `rebuilt`. Raises InputError for a number that is not free.
        """
        changed = change_numbers(self._own, self.parameters, values)
        arm, errors = changed.arm, changed.stiffness_error
        bodies = tuple(
            replace(body, link=link) for body, link in zip(self.bodies, arm.links, strict=True)
        )
        shaped_for = self.shaped_for or self.arm
        other = replace(self, arm=arm, bodies=bodies, stiffness_error=errors, shaped_for=shaped_for)
        for name in ("functions", "content"):  # they hold for all values
            other.__dict__[name] = getattr(self, name)
        other.__dict__["_own"] = changed
        return other

    def rebuilt(self) -> Plant:
        """Return the plant with the shapes of its own arm: its functions are derived anew."""
        if self.shaped_for is None:
            return self
        return replace(self, bodies=assemble_bodies(self.arm, self.basis), shaped_for=None)

    @cached_property
    def _own(self) -> Numbers:
        return Numbers.of(self.arm, self.stiffness_error)

    @cached_property
    def folded(self) -> Plant:
        """The plant with all numbers as constants in its functions, as operations are counted."""
        return replace(self, parameters=()) if self.parameters else self

    @property
    def has_free_errors(self) -> bool:
        """Whether errors of the stiffness are free numbers."""
        return any(map(is_stiffness_error, self.parameters))

    @cached_property
    def numbers(self) -> Array:
        """Values (k,) of the free numbers."""
        return pack_numbers(self._own, self.parameters)

    @cached_property
    def equilibria(self) -> dict[bytes, tuple[Array, Array]]:
        """What `find_equilibrium` has found with these numbers, by the bytes of its start."""
        return {}

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the joint variables, which are also those of the actuators."""
        return tuple(f"joint{j + 1}" for j in range(len(self.bodies)))

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of all entries of q."""
        elastic = (name for body in self.bodies for name in body.coordinates)
        return (*self.joints, *self.rotors, *elastic)

    @cached_property
    def rotors(self) -> tuple[str, ...]:
        """Names of the rotor angles, of flexible joints only: rotor2 drives joint2."""
        return tuple(f"rotor{j + 1}" for j in self.arm.rotors)

    @cached_property
    def drives(self) -> tuple[int, ...]:
        """Entry of q on which each torque acts (m,): the joint's own, or its rotor's."""
        rotor_of = {j: self.m + k for k, j in enumerate(self.arm.rotors)}
        return tuple(rotor_of.get(j, j) for j in range(self.m))

    @property
    def rigid(self) -> int:
        """Number of entries of q before the elastic ones: joint variables and rotor angles."""
        return self.m + len(self.rotors)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def m(self) -> int:
        """Number of joints, each with one actuator."""
        return len(self.bodies)

    @cached_property
    def selection(self) -> Array:
        """Matrix (n, m): torques act on joints or their rotors, the links being clamped."""
        return np.eye(self.n)[:, self.drives]

    @cached_property
    def torque_per_command(self) -> Array:
        """Torque or force per unit of the command of each actuator (m,): 1 without a motor."""
        return np.array([link.torque_per_command for link in self.arm.links])

    @cached_property
    def motor_damping(self) -> Array:
        """Dampers (m,) of the back-EMF of motors whose voltage is commanded; part of D."""
        return np.array([link.motor_damping for link in self.arm.links])

    @cached_property
    def joint_damping(self) -> Array:
        """Dampers (n, n) at drives and joints that no stiffness changes: `motor_damping`, friction.

        Of friction the viscous part; they are part of D.
        """
        D = self.selection * self.motor_damping @ self.selection.T
        for j, link in enumerate(self.arm.links if self.friction else ()):
            if (own := link.friction) is not None:
                row = self.drives[j] if own.side == "motor" else j
                D[row, row] += link.friction_ratio**2 * own.viscous
        return D

    @cached_property
    def torque_limit(self) -> Array:
        """Largest torques or forces (m,) at the driven coordinates, by torque and current."""
        return np.array([link.torque_limit for link in self.arm.links])

    @cached_property
    def B(self) -> Array:
        """Input matrix (n, m) of the commands: `selection` times `torque_per_command`."""
        return self.selection * self.torque_per_command

    @cached_property
    def valid_range(self) -> tuple[Array, Array]:
        """Lowest and highest coordinates (n,) for which the model holds at all.

        At least a thousandth of a sliding beam is free, as its frequencies grow without bound when
        it vanishes in the hub, and a hundredth of its length may slip out at the far end; modes
        that follow the length end with the range that they were computed for; no deflection is
        longer than its line, no slope of a node beyond `STEEPEST_NODE`. Runs, poses and equilibria
        keep the tips of lines within `STEEPEST`, which ranges of modal coordinates cannot express.
        """
        lowest, highest = joint_range(self.arm)
        beam = np.array([link.length for link in self.arm.links])
        lines = [
            STEEPEST_NODE if power else body.link.length
            for body in self.bodies
            for direction in body.planes
            for power in body.power(direction)
        ]
        rotors = np.full(len(self.rotors), np.inf)
        first, last = followed_range(self.bodies)
        lowest = np.maximum(lowest + 1e-3 * beam, first)
        highest, far = np.minimum(highest + 1e-2 * beam, last), np.array(lines)
        return np.concatenate([lowest, -rotors, -far]), np.concatenate([highest, rotors, far])

    @cached_property
    def backend(self) -> str:
        """How functions are evaluated: compiled C or the CasADi virtual machine."""
        return backend(interpreted=self.interpreted)

    @cached_property
    def content(self) -> str:
        """Everything that determines the equations, as text: the key of the compile cache.

        Bodies enter by their own numbers, as they may be built for another arm than this one.
        """
        free = f" free {self.parameters}" if self.parameters else ""
        own, links = blank_numbers(self._own, self.parameters, [body.link for body in self.bodies])
        errors = own.stiffness_error.values()
        wrong = f" errors {tuple(errors)}" if any(errors) else ""
        bodies = record_digest(
            [
                (without_command_limits(link), body.planes, body.mixes)
                for body, link in zip(self.bodies, links, strict=True)
            ]
        )
        in_arm = tuple(map(without_command_limits, own.arm.links))
        arm = own.arm.model_copy(update={"links": in_arm}).model_dump_json(exclude=_WORDS)
        without = "" if self.friction or not self.arm.has_friction else " without friction"
        return (
            f"{source_digest()} {self.engine} {arm} {self.basis!r} {bodies}{wrong}{free}{without}"
        )

    @property
    def without_friction(self) -> Plant:
        """The same without the friction of its joints, as controllers are designed on."""
        if not (self.friction and self.arm.has_friction):
            return self
        return replace(self, friction=False)

    @cached_property
    def nominal(self) -> Plant:
        """Return the model without errors of its stiffness, from which gains are designed."""
        if not self.has_free_errors and not any(self.stiffness_error.values()):
            return self
        names = tuple(k for k in self.parameters if not is_stiffness_error(k))
        errors = dict.fromkeys(self.stiffness_error, 0.0)
        return replace(self, parameters=names, stiffness_error=errors)

    @cached_property
    def of_any_stiffness(self) -> Plant:
        """Return the same with the errors of all parts of the stiffness as free numbers, zero."""
        model = self.nominal
        names = (*model.parameters, *expand_names(model._own, (STIFFNESS_ERROR,)))
        return replace(model, parameters=names, interpreted=True)

    def loaded(self, times: float) -> Plant:
        """Return this plant with its payload's mass and inertia multiplied by `times`.

        It keeps its shapes, which may assume the payload of the arm's file; nothing is rebuilt.
        """
        load = self.arm.payload
        inertia = times * np.array(load.inertia)
        return self._any_payload.at({"payload.mass": times * load.mass, "payload.inertia": inertia})

    @cached_property
    def _any_payload(self) -> Plant:
        load = expand_names(self._own, ("payload.mass", "payload.inertia"))
        return replace(self, parameters=load, interpreted=True)

    @property
    def equations(self) -> Equations:
        """The terms of the equations of motion as CasADi SX expressions.

        Plants of the same content share them, such as those of designs compared on one arm.
        """
        return self.casadi_functions.equations

    @cached_property
    def casadi_functions(self) -> PlantFunctions:
        """All functions of the plant, by name, as CasADi functions with dense results.

        In addition to those that have a method here, for integrators: "terms" (q, v) -> M, D +
        df/dv, d(c + k)/dq, each (n, n), "balance" (q, v, a, tau) -> M a + h + c + k + D v + f - B
        tau, "momentum" (q, v, tau) -> dT/dv, d(T - V)/dq - D v - f + B tau; of the actuators
        "torque" (v, tau) -> torques (m,) and "power" (q, v, tau) -> what they supply, and what the
        arm's own dampers and friction take [W]. For friction with bristles "bristles" (v, before,
        c_w) and "bristled_dynamics" (q, v, tau, push) -> a, see `friction`: all other functions
        leave out the force of bristles, and that of joints that slip and stick by events.
        """
        return share_functions(self.content, self._make_equations)

    def _make_equations(self) -> Equations:
        q, v = ca.SX.sym("q", self.n), ca.SX.sym("v", self.n)
        selection = ca.SX(ca.sparsify(ca.DM(self.selection)))
        own, bodies, free = self._with_symbols()
        arm, errors = own.arm, ca.vertcat(ca.SX(0, 1), *own.stiffness_error.values())
        sum_up = cache(lambda: chain_energies(arm, bodies, q, v))
        engine = (
            Recursion(arm=arm, bodies=bodies, q=q, v=v)
            if self.engine == "recursion"
            else Lagrange(energies=sum_up(), q=q, v=v, coordinates=self.coordinates, B=selection)
        )
        a, tau = ca.SX.sym("a", self.n), ca.SX.sym("tau", self.m)
        wrong = {} if errors.is_zero() else {"parts": part_energies(bodies, q), "errors": errors}
        friction = JointFriction(bodies=bodies if self.friction else (), drives=self.drives, v=v)
        return Equations(
            q=q,
            v=v,
            a=a,
            tau=tau,
            selection=selection,
            engine=engine,
            sum_up=sum_up,
            friction=friction,
            arm=arm,
            free=free,
            **wrong,
        )

    def _with_symbols(self) -> tuple[Numbers, tuple[Body, ...], ca.SX]:
        """Return numbers and bodies with symbols in place of the free ones, and the symbols."""
        if not self.parameters:
            return self._own, self.bodies, ca.SX(0, 1)
        own_numbers, free = with_symbols(self._own, self.parameters)
        bodies = []
        for body, link in zip(self.bodies, own_numbers.arm.links, strict=True):
            own = [
                symbol
                for name, symbol in zip(self.parameters, ca.vertsplit(free), strict=True)
                if name.startswith(f"{body.link.name}.")
            ]
            symbols = ca.vertcat(ca.SX(0, 1), *own)
            bodies.append(replace(body, symbolic=link, symbols=symbols))
        return own_numbers, tuple(bodies), free

    @property
    def free_input(self) -> list[ca.SX]:
        """The free numbers as symbols (k, 1), the last input of functions, if there are any."""
        return self.equations.free_input

    @property
    def stiffness_parts(self) -> tuple[str, ...]:
        """Names of the parts with an independent stiffness error: springs, modes of lines."""
        return tuple(self.stiffness_error)

    @cached_property
    def functions(self) -> Mapping[str, Evaluator]:
        """Evaluators of the functions that have a method, compiled where a compiler is found."""
        known = self.casadi_functions.evaluators
        how = f"{self.backend} {os.environ.get('FLEXCTL_CACHE')}"
        if how not in known:
            known[how] = load_evaluators(
                self.content,
                LIBRARIES,
                self.casadi_functions,
                matrices=MATRICES,
                interpreted=self.interpreted,
            )
        return known[how]

    @property
    def libraries(self) -> list[Wanted]:
        """What is compiled for every task: terms of the equations and their derivatives."""
        if self.interpreted:
            return []
        functions = self.casadi_functions
        return [group_library(self.content, names, functions) for names in LIBRARIES[:2]]

    def _call(self, name: str, *arguments: Array) -> Any:
        """Evaluate a function; the values of the free numbers, if any, are its last argument."""
        free = (self.numbers,) if self.parameters else ()
        return self.functions[name](*arguments, *free)

    @property
    def forward_dynamics_function(self) -> ca.Function:
        """CasADi function (q, v, tau) -> a of M a = B tau - h - c - k - D v - f by LDL'."""
        return self.casadi_functions["forward_dynamics"]

    def mass_matrix(self, q: Array) -> Array:
        """Mass matrix M(q), (n, n)."""
        return self._call("mass_matrix", q)

    def bias(self, q: Array, v: Array) -> Array:
        """Coriolis and centrifugal forces h(q, v), (n,)."""
        return self._call("bias", q, v)

    def gravity(self, q: Array) -> Array:
        """Gravity forces c(q) = dV_gravity/dq, (n,)."""
        return self._call("gravity", q)

    def elastic_force(self, q: Array) -> Array:
        """Elastic forces k(q) = dV_strain/dq, (n,); also on a prismatic joint's row."""
        return self._call("elastic_force", q)

    def damping(self, q: Array) -> Array:
        """Damping matrix D(q), (n, n), with viscous friction."""
        return self._call("damping", q)

    def tangent_stiffness(self, q: Array) -> Array:
        """Stiffness d(c + k)/dq about q, (n, n)."""
        return self._call("tangent_stiffness", q)

    def elastic_stiffness(self, q: Array) -> Array:
        """Stiffness dk/dq of the links alone, (n, n)."""
        return self._call("elastic_stiffness", q)

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Generalised forces M a + h + c + k + D v + f, (n,); their rows `drives` are of B tau."""
        return self._call("inverse_dynamics", q, v, a)

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Accelerations a (n,) under the joint torques, or commands of motors, tau (m,).

        Raises
        ------
        ComputationError
            When the mass matrix is singular at q, or so ill-conditioned that the accelerations do
            not satisfy the equations of motion.
        """
        for name, values in {"q": q, "v": v, "tau": tau}.items():
            checks.finite(name, values)
        a = np.asarray(self._call("forward_dynamics", q, v, tau))
        require_balance(self, q, v, tau, a)
        return a

    def torque(self, v: Array, tau: Array) -> Array:
        """Torques or forces (m,) of the actuators under commands tau (m,), at rates v (n,).

        With the back-EMF and the current limits of motors. Several states (n, N) give (m, N).
        """
        if all(link.motor is None for link in self.arm.links):
            return tau
        own = [self.numbers] if self.parameters else []
        found = np.array(self.casadi_functions["torque"](v, tau, *own))
        return found.reshape(np.shape(tau))

    def derivatives(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Exact derivatives of the accelerations a(q, v, tau): by q, v (n, n) and by tau (n, m).

        They are the lower blocks of A and B of the linear model about any state of a motion. Dry
        friction is taken as constant, as its slope where a rate changes sign is no damping.
        """
        return self._call("derivatives", q, v, tau)

    def derivatives_at_rest(self, q: Array) -> tuple[Array, Array, Array]:
        """Return the same for an equilibrium at q, at a fraction of the cost."""
        return self._call("derivatives_at_rest", q)

    def energies(self, q: Array, v: Array) -> tuple[float, float, float]:
        """Kinetic, strain and gravitational energy [J]."""
        kinetic, strain, gravity = self._call("energies", q, v)
        return float(kinetic[0]), float(strain[0]), float(gravity[0])

    def tip(self, q: Array) -> Array:
        """Position of the arm's tip in the base frame, (3,) [m]."""
        return self._call("tip", q)

    def deflections_jacobian(self, q: Array) -> Array:
        """Return the derivative of the line-end deflections by q, (lines, n)."""
        return self._call("deflections_jacobian", q)

    def tip_jacobian(self, q: Array) -> Array:
        """Return the derivative of the tip's position by q, (3, n)."""
        return self._call("tip_jacobian", q)

    def line_tips(self, q: Array) -> Array:
        """Return the ends of the links' lines in the base frame, (3, links) [m]."""
        return self._call("line_tips", q)

    def line_tips_jacobian(self, q: Array) -> Array:
        """Return the derivative of `line_tips`, stacked link by link, by q, (3 links, n)."""
        return self._call("line_tips_jacobian", q)

    def deflections(self, q: Array) -> tuple[Array, Array]:
        """Deflections [m] and slopes [-] at the ends of the lines, ordered as `lines`."""
        return self._call("deflections", q)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Flexible lines by link and direction of deflection, such as ``link2.y``."""
        return tuple(f"{body.link.name}.{d}" for body in self.bodies for d in body.planes)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of models made for python-control: joints, tip, deflections."""
        return (*self.joints, "tip.x", "tip.y", "tip.z", *self.lines)

    def pose(self, named: Mapping[str, float] | None = None) -> Array:
        """Coordinates q (n,) from named values; joints not named rest at `default_joints`.

        Rotors that are not named are where their springs are unloaded.

        Raises
        ------
        InputError
            When a name is no coordinate, or a value no number, a sliding link's free length is
            impossible, or the tip of a line is steeper than the theory of the beam allows.
        """
        named = {} if named is None else named
        checks.kind("pose", named, Mapping)
        checks.texts("pose", named)
        for name, value in named.items():
            if name not in self.coordinates:
                raise InputError(
                    f"pose.{name}: expected a coordinate of {self.arm.name} "
                    f"({nearest(name, self.coordinates)}), got {name!r}"
                )
            checks.number(f"pose.{name}", value)
        joints = zip(self.joints, default_joints(self.arm), strict=True)
        q = self.straight(np.array([named.get(name, value) for name, value in joints]))
        for name, value in named.items():
            q[self.coordinates.index(name)] = value
        check_joints(self.arm, q[: self.m])
        check_followed(self.bodies, q[: self.m])
        check_slopes(self, q)
        return q

    def straight(self, joints: Array) -> Array:
        """Coordinates q (n,) of the undeformed arm at the given joint variables (m,).

        Links are undeflected and springs unloaded, the rotors at their joints' values. Several
        poses (m, N) give (n, N).
        """
        joints = np.asarray(joints, dtype=float)
        elastic = np.zeros((self.n - self.rigid, *joints.shape[1:]))
        return np.concatenate([joints, joints[list(self.arm.rotors)], elastic])

    def to_nonlinear(self) -> Any:
        """Make a `control.NonlinearIOSystem`: inputs tau, states q, v, outputs joints and tip.

        Raises InputError where friction has states of its own, or joints stick by events.
        """
        return nonlinear_system(self)


def assemble_plant(
    arm: Arm | str | Path,
    basis: BasisChoice | None = None,
    *,
    modes: int | None = None,
    elements: int | None = None,
    engine: EngineName = "recursion",
    interpreted: bool = False,
    parameters: tuple[str, ...] = (),
) -> Plant:
    """Discretise every flexible link of an arm.

    Parameters
    ----------
    arm
        Continuous data of the arm, its catalogue name or path.
    basis, modes, elements
        Discretisation per link and plane: a record, or a number of modes or of elements; two modes
        by default.
    engine
        "recursion", or "lagrange" as an independent check.
    interpreted
        Do not compile, even with a compiler: see `Plant`.
    parameters
        Numbers that stay free, by their keys, such as ``payload.mass`` or ``link1.EI.y`` of the
        arm, or ``stiffness_error`` of a model of it; see `Plant.at`.

    Raises
    ------
    InputError
        When the engine is unknown, the basis does not fit a link, or a number cannot be free.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.assemble_plant("single-link-hub", modes=3).coordinates
    ('joint1', 'link1.y.1', 'link1.y.2', 'link1.y.3')
    """
    arm = load_model(arm)
    basis = pick_basis(basis, modes, elements) or BasisChoice()
    if engine not in get_args(EngineName):
        raise InputError(
            f"engine: expected one of {', '.join(get_args(EngineName))}, got {engine!r}"
        )
    bodies = assemble_bodies(arm, basis)
    errors = dict.fromkeys(stiffness_parts(bodies), 0.0)
    parameters = expand_names(Numbers.of(arm, errors), parameters)
    return Plant(
        arm=arm,
        basis=basis,
        bodies=bodies,
        engine=engine,
        interpreted=interpreted,
        parameters=parameters,
        stiffness_error=errors,
    )
