"""External laws: matrices or a CasADi function, with errors of named signals as inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.laws import (
    ExternalLaw,
    LawParts,
    Recipe,
    Signals,
    in_commands,
    law_function,
    law_signals,
    rigid_gravity_torque,
)
from flexctl.control.measured_signals import LawInput, desired_signals, read_inputs
from flexctl.control.reference import ReferenceMotion
from flexctl.control.saturation import holding_limits
from flexctl.errors import InputError
from flexctl.model import Design, StateSpace, load_matrices
from flexctl.plant import Plant


def state_space_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Build the law z' = A z + B e, tau = c + C z + D e of errors e, or that of a function.

    A sampled law gives z+ instead of z'; it is written as z' = (z+ - z)/T, whose Euler step of
    length T is exact. c are the gravity torques of the undeflected arm at the desired joints, or
    zero. Raises InputError when matrices or function do not fit the arm's joints and measurements.
    """
    choice = design.state_space
    assert choice is not None
    inputs = read_inputs(plant, design, choice.measures)
    law = _Outside(plant=plant, design=design, choice=choice, inputs=inputs)
    return law.of_function() if choice.function is not None else law.of_matrices()


@dataclass(frozen=True, kw_only=True)
class _Outside:
    """Builder of an external law."""

    plant: Plant
    design: Design
    choice: StateSpace
    inputs: tuple[LawInput, ...]

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the positions that are measured (p,)."""
        return tuple(dict.fromkeys(entry.position for entry in self.inputs))

    def of_matrices(self) -> LawParts:
        """Make the law of A, B, C, D."""
        M = vars(load_matrices(self.design, self.plant.m))
        states, nonzero = len(M["A"]), {name: np.argwhere(X) for name, X in M.items()}

        def write(plant: Plant, signals: Signals) -> ca.Function:
            own = replace(self, plant=plant)
            signals = own._signals(signals, states)
            e, z = own._inputs(signals), signals.z
            X = {k: _filled(signals.numbers[k], at, M[k].shape) for k, at in nonzero.items()}
            tau = _add_products(_add_products(own._feedforward(signals), X["C"], z), X["D"], e)
            moved = _add_products(_add_products(ca.SX.zeros(states), X["A"], z), X["B"], e)
            return own._law(signals, tau, moved)

        numbers = {name: M[name][tuple(at.T)] for name, at in nonzero.items()}
        structure = (self._structure, {name: at.tolist() for name, at in nonzero.items()})
        recipe = Recipe(write=write, numbers=numbers, structure=structure)
        return self._parts(recipe, states, ExternalLaw(measures=self.positions))

    def of_function(self) -> LawParts:
        """Make the law of a CasADi function (t, z, q_d, v_d, a_d, y) -> (tau, z' or z+)."""
        f = self.choice.function
        self._check_sizes(f)
        signals = self._signals(law_signals(self.plant, integral=False), f.numel_in(1))
        y = self._inputs(signals)
        arguments = [signals.s, signals.z, signals.q_d, signals.v_d, signals.a_d, y]
        given = _expanded(f, self.design.label).call(arguments)
        tau, moved = (ca.densify(ca.vec(x)) for x in given)
        results, state = ca.vertcat(tau, moved), ca.vertcat(signals.z, signals.q, signals.v)
        external = ExternalLaw(
            measures=self.positions,
            timed=bool(ca.depends_on(results, signals.s)),
            nonlinear=bool(ca.depends_on(ca.jacobian(results, state), state)),
        )
        law = self._law(signals, self._feedforward(signals) + tau, moved)
        return self._parts(law, signals.z.numel(), external)

    def _check_sizes(self, f: Any) -> None:
        """Refuse a function whose inputs and outputs are not those of (t, z, q_d, v_d, a_d, y)."""
        m, expected = self.plant.m, "(t, z, q_d, v_d, a_d, y) -> (tau, z')"
        if f.n_in() != 6 or f.n_out() != 2:
            got = f"{f.n_in()} inputs and {f.n_out()} outputs"
            raise InputError(f"{self.design.label}: system: expected {expected}, got {got}")
        n_z = f.numel_in(1)
        fits = [1, n_z, m, m, m, len(self.inputs)], [m, n_z]
        sizes = [f.numel_in(k) for k in range(6)], [f.numel_out(k) for k in range(2)]
        if sizes != fits:
            why, got = f"{expected} of sizes {fits[0]} -> {fits[1]}", f"{sizes[0]} -> {sizes[1]}"
            raise InputError(f"{self.design.label}: system: expected {why}, got {got}")

    def _signals(self, signals: Signals, n_states: int) -> Signals:
        """Symbols of the law, with measured positions and their rates (p, 1) in place of q, v."""
        p = len(self.positions)
        own = {"z": ca.SX.sym("z", n_states), "q": ca.SX.sym("y", p), "v": ca.SX.sym("y_rate", p)}
        return replace(signals, **own)

    @property
    def _structure(self) -> tuple[object, ...]:
        """What the law depends on besides its matrices."""
        entries = [(entry.position, entry.rate, entry.kind) for entry in self.inputs]
        return (*entries, self._gravity, self.design.loop.sample_time)

    def _inputs(self, signals: Signals) -> ca.SX:
        """Give the inputs e (k, 1) of the law: errors, measurements, desired values.

        A function gets measurements in place of errors: it knows the desired motion.
        """
        desired, gravity = (signals.q_d, signals.v_d, signals.a_d), self._gravity
        position, speed = desired_signals(self.plant, self.positions, desired, gravity=gravity)
        entries = []
        for entry in self.inputs:
            reference = self._chosen(entry, position, speed)
            read = self._chosen(entry, signals.q, signals.v)
            error = reference - read if self.choice.function is None else read
            kinds = {"error": error, "measured": read, "desired": reference}
            entries.append(kinds[entry.kind])
        return ca.vertcat(*entries)

    def _chosen(self, entry: LawInput, position: ca.SX, speed: ca.SX) -> ca.SX:
        """Entry of positions or of their rates (p, 1) that an input names."""
        return (speed if entry.rate else position)[self.positions.index(entry.position)]

    @property
    def _gravity(self) -> bool:
        return self.choice.feedforward == "gravity"

    def _feedforward(self, signals: Signals) -> ca.SX:
        """Commands (m, 1) that are added to those of the law."""
        if self._gravity:
            return in_commands(self.plant, rigid_gravity_torque(self.plant, signals.q_d))
        return ca.SX.zeros(self.plant.m)

    def _law(self, signals: Signals, tau: ca.SX, moved: ca.SX) -> ca.Function:
        """Build the law; `moved` is z' (n_z, 1), or z+ if sampled."""
        period = self.design.loop.sample_time
        z_rate = (moved - signals.z) / period if period else moved
        return law_function(signals.inputs, tau, z_rate)

    def _parts(self, law: ca.Function | Recipe, n_states: int, external: ExternalLaw) -> LawParts:
        """Put law and assumptions together."""
        return LawParts(
            law=law,
            n_state=n_states,
            assumptions=tuple(self._assumptions(n_states, external)),
            external=external,
        )

    def _assumptions(self, n_states: int, external: ExternalLaw) -> Iterator[str]:
        """Yield known and unknown properties of the law."""
        states = f"{n_states} state{'s' * (n_states != 1)} of its own, zero at the start"
        gravity = "; the gravity torques of the undeflected arm are fed forward" * self._gravity
        yield f"the law was made elsewhere, with {states if n_states else 'no states'}{gravity}"
        if n_states and np.isfinite(holding_limits(self.plant.arm)).any():
            yield "its states run on while a torque is at its limit: it knows no limits"
        if external.timed:
            yield "the law depends on time itself: only its run can be judged"
        if external.nonlinear:
            yield "its gains depend on what it measures: what model it has is not known"
        elif self.plant.stiffness_parts:
            yield self._of_stiffness

    @property
    def _of_stiffness(self) -> str:
        """State which stiffness errors affect the law."""
        if self.choice.function is not None:
            return "the law is taken to compute with no stiffness: it has gains only"
        if self._gravity and set(self.positions) & set(self.plant.rotors):
            return "of the stiffness the law uses that of the springs, for the rotors under gravity"
        return "the law computes with no stiffness: no error of one reaches it"


def _filled(values: ca.SX, places: Array, shape: tuple[int, ...]) -> ca.SX:
    """Return the matrix of this shape with values (k, 1) at these places (k, 2), else zero."""
    M = ca.SX(*shape)
    for value, (i, j) in zip(ca.vertsplit(values), places.tolist(), strict=True):
        M[i, j] = value
    return M


def _add_products(start: ca.SX, M: ca.SX, x: ca.SX) -> ca.SX:
    """Start (k, 1) + M x, term by term in the order of x, so that zeros cost nothing."""
    rows = ca.SX(start)
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            if M.sparsity().has_nz(i, j):
                rows[i] += M[i, j] * x[j]
    return rows


def _expanded(f: Any, label: str) -> ca.Function:
    """Return a function of elementary operations; refuse one that calls others, as solvers do."""
    expected = "a CasADi function of elementary operations (one that Function.expand takes)"
    try:
        expanded = f if f.is_a("SXFunction") else f.expand()
    except RuntimeError as error:
        words = str(error).strip().splitlines()[-1]
        raise InputError(f"{label}: system: expected {expected}, got: {words}") from error
    calls = getattr(ca, "OP_CALL", None)
    if any(expanded.instruction_id(k) == calls for k in range(expanded.n_instructions())):
        raise InputError(f"{label}: system: expected {expected}, got one that calls another")
    return expanded
