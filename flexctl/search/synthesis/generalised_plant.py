"""A python-control plant as an interconnection, and a gain as a python-control controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.search.synthesis.interconnection import Interconnection, System

Channels = int | Sequence[int] | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class GeneralisedPlant:
    """A plant (w, u) -> (z, y) with the names of its signals; `sample_time` None if continuous."""

    A: Array
    B: Array
    C: Array
    D: Array
    w: tuple[int, ...]  # columns of B and D
    u: tuple[int, ...]
    z: tuple[int, ...]  # rows of C and D
    y: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dt: Any

    def interconnection(self, order: int) -> Interconnection:
        """Return its parts, to be closed by a controller of an order."""
        A, B, C, D = self.A, self.B, self.C, self.D
        w, u, z, y = (list(part) for part in (self.w, self.u, self.z, self.y))
        return Interconnection(
            A=A,
            B1=B[:, w],
            B=B[:, u],
            C1=C[z],
            C=C[y],
            D11=D[np.ix_(z, w)],
            D12=D[np.ix_(z, u)],
            D21=D[np.ix_(y, w)],
            D=D[np.ix_(y, u)],
            order=order,
            sampled=self.sampled,
        )

    @property
    def sampled(self) -> bool:
        """Whether it is in discrete time."""
        return bool(self.dt)

    @property
    def period(self) -> float | None:
        """Sample time [s], 1 if it is sampled at no given rate."""
        return None if not self.dt else 1.0 if self.dt is True else float(self.dt)

    def controller(self, K: Array, order: int) -> Any:
        """Return the gain [Dk Ck; Bk Ak] as a `control.StateSpace` from y to u."""
        m, p = (size - order for size in K.shape)
        names = [self.outputs[i] for i in self.y], [self.inputs[i] for i in self.u]
        parts = K[m:, p:], K[m:, :p], K[:m, p:], K[:m, :p]
        return _state_space(*parts, self.dt, *names)

    def closed(self, system: System) -> Any:
        """Return a closed loop as a `control.StateSpace` from w to z.

        Without w it has one input of zeros, as python-control refuses some systems without inputs.
        """
        inputs, outputs = [self.inputs[i] for i in self.w], [self.outputs[i] for i in self.z]
        B, D = system.B, system.D
        if not inputs:
            inputs, B, D = ["none"], np.zeros((len(B), 1)), np.zeros((len(D), 1))
        return _state_space(system.A, B, system.C, D, self.dt, inputs, outputs)


def _state_space(
    A: Array, B: Array, C: Array, D: Array, dt: Any, inputs: list[str], outputs: list[str]
) -> Any:
    import control  # takes a second to import

    return control.ss(A, B, C, D, dt, inputs=inputs, outputs=outputs, remove_useless_states=False)


def state_space(argument: str, system: Any) -> Any:
    """Return a `control.StateSpace` or `TransferFunction` as the former."""
    import control

    if isinstance(system, control.TransferFunction):
        try:
            system = control.ss(system)
        except ValueError as error:
            raise InputError(f"{argument}: {error}") from error
    if not isinstance(system, control.StateSpace):
        raise InputError(f"{argument}: expected a control.StateSpace, got {type(system).__name__}")
    return system


def read_plant(
    plant: Any, measured: Channels | None, controlled: Channels | None
) -> GeneralisedPlant:
    """Read a `control.StateSpace` or `TransferFunction` with its channels told apart.

    `measured` and `controlled` are numbers of the last outputs y and inputs u, as in
    `control.hinfsyn`, or names or indices of them.
    """
    plant = state_space("plant", plant)
    if not plant.nstates:
        raise InputError("plant: expected at least one state, got none")
    inputs, outputs = tuple(plant.input_labels), tuple(plant.output_labels)
    y = _indices("nmeas", measured, outputs)
    u = _indices("ncon", controlled, inputs)
    parts = [np.asarray(part, dtype=float) for part in (plant.A, plant.B, plant.C, plant.D)]
    if not all(np.isfinite(part).all() for part in parts):
        raise InputError("plant: expected finite matrices, got others")
    return GeneralisedPlant(
        A=parts[0],
        B=parts[1],
        C=parts[2],
        D=parts[3],
        w=tuple(i for i in range(len(inputs)) if i not in u),
        u=u,
        z=tuple(i for i in range(len(outputs)) if i not in y),
        y=y,
        inputs=inputs,
        outputs=outputs,
        dt=plant.dt,
    )


def _indices(argument: str, given: Channels | None, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return indices of channels that are given by number, names or indices."""
    if given is None:
        raise InputError(f"{argument}: expected the number of channels, or their names, got None")
    if isinstance(given, np.ndarray):
        given = given.tolist()  # that of an array () is one number
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if not 1 <= given <= len(names):
            raise InputError(f"{argument}: expected 1 to {len(names)}, got {given}")
        return tuple(range(len(names) - int(given), len(names)))
    if not isinstance(given, str | Sequence):
        raise InputError(f"{argument}: expected a number, or names or indices, got {given!r:.60}")
    several: Any = [given] if isinstance(given, str) else given
    found = [_index(argument, one, names) for one in several]
    if len(set(found)) < len(found):
        raise InputError(f"{argument}: expected each channel once, got {given!r:.60}")
    if not found:
        raise InputError(f"{argument}: expected at least one channel, got none")
    return tuple(found)


def _index(argument: str, one: Any, names: tuple[str, ...]) -> int:
    """Return the index of one channel."""
    if isinstance(one, str):
        if one not in names:
            raise InputError(f"{argument}: expected some of {', '.join(names)}, got {one!r}")
        return names.index(one)
    whole = isinstance(one, int | np.integer) and not isinstance(one, bool)
    if not whole or not 0 <= one < len(names):
        raise InputError(f"{argument}: expected indices in 0 .. {len(names) - 1}, got {one!r:.60}")
    return int(one)
